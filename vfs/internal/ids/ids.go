package ids

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

const (
	// idLease is how many numbers a process takes at once: enough that the
	// shared counter is no contention, few enough to waste at a crash.
	idLease = 4096
	// idReserve is more than one operation takes (a directory for every
	// component of a key): with so many in hand no transaction has to lease
	// within itself.
	idReserve = 1024
)

// Allocator hands out numbers for inodes, contents and blobs, none twice.
type Allocator struct {
	kv      cluster.KV
	mu      sync.Mutex
	next    atomic.Uint64 // changed under mu
	skipped atomic.Uint64 // of those before next
	end     uint64
	leasing *leasing // under way

	using  sync.Mutex
	uses   map[uint64]int // under way, by next when they began
	doubts []uint64       // that ended in doubt, likewise, in their order
}

// leasing is a range that is being taken, for all who wait for it.
type leasing struct {
	done chan struct{}
	err  error
}

// Init starts with nothing leased; next is behind all that was handed out before.
func (a *Allocator) Init(ctx context.Context, kv cluster.KV) error {
	a.kv = kv
	err := kv.View(ctx, func(r cluster.Reader) error {
		n, err := record.Counters(r, record.CounterNumber, record.CounterSkipped)
		if err != nil {
			return err
		}
		a.end = n[0]
		a.next.Store(n[0])
		a.skipped.Store(n[1])
		return nil
	})
	return fserr.Map(err)
}

// Take returns a number that was never returned before, by any process.
func (a *Allocator) Take(ctx context.Context) (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.next.Load() == a.end {
		if err := a.lease(ctx); err != nil {
			return 0, err
		}
	}
	return a.next.Add(1) - 1, nil
}

// Reserve sees to it that operations find their numbers leased.
func (a *Allocator) Reserve(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.end-a.next.Load() >= idReserve {
		return nil
	}
	return a.lease(ctx)
}

// lease waits for a range that is being taken, which it begins if need be. That goes on when
// ctx ends, since others may wait for it. mu is held, but not meanwhile.
func (a *Allocator) lease(ctx context.Context) error {
	l := a.leasing
	if l == nil {
		l = &leasing{done: make(chan struct{})}
		a.leasing = l
		go a.takeRange(context.WithoutCancel(ctx), l)
	}
	a.mu.Unlock()
	defer a.mu.Lock()
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeRange moves the shared counter on. It must be durable before a number is
// used, whatever durability the caller asked for. It is urgent: all connections to the
// store may be those of transactions that wait in Take.
func (a *Allocator) takeRange(ctx context.Context, l *leasing) {
	var from, skipped uint64
	err := a.kv.Update(cluster.Urgent(cluster.Strict(ctx)), func(t cluster.Txn) error {
		got, err := t.GetMany([][]byte{record.CounterKey(record.CounterNumber), record.CounterKey(record.CounterSkipped)})
		if err != nil {
			return err
		}
		from, skipped = record.FirstNumber, 0
		for i, n := range []*uint64{&from, &skipped} {
			switch b := got[i]; {
			case b == nil:
			case len(b) != 8:
				return fmt.Errorf("%w: number counter", fserr.ErrCorrupt)
			default:
				*n = binary.BigEndian.Uint64(b)
			}
		}
		return t.Set(record.CounterKey(record.CounterNumber), binary.BigEndian.AppendUint64(nil, from+idLease))
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leasing = nil
	if l.err = fserr.Map(err); err == nil {
		a.next.Store(from)
		a.end = from + idLease
		a.skipped.Store(skipped)
	}
	close(l.done)
}

// Release gives back what was leased and not used, if nobody leased after.
// Only the count of files profits, so a failure loses nothing.
func (a *Allocator) Release(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, end := a.next.Load(), a.end
	if next == end {
		return
	}
	a.end = next // also after a commit of unknown outcome: a new lease decides
	_ = a.kv.Update(ctx, func(t cluster.Txn) error {
		b, err := t.Get(record.CounterKey(record.CounterNumber))
		if err != nil || len(b) != 8 || binary.BigEndian.Uint64(b) != end {
			return err
		}
		return t.Set(record.CounterKey(record.CounterNumber), binary.BigEndian.AppendUint64(nil, next))
	})
}

// Used returns the number before which all were taken, as far as this process
// knows, or skipped.
func (a *Allocator) Used() uint64 { return a.next.Load() }

// Count returns how many numbers were taken at the most, as far as this process
// knows.
func (a *Allocator) Count() uint64 { return a.next.Load() - a.skipped.Load() }

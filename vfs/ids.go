package vfs

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"ogw/vfs/internal/record"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
)

const (
	// idLease is how many numbers a process takes at once: enough that the
	// shared counter is no contention, few enough to waste at a crash.
	idLease = 4096
	// idReserve is more than one operation takes (a directory for every
	// component of a key): with so many in hand no transaction has to lease
	// within itself.
	idReserve = 1024
	// firstFreeID follows the root's number.
	firstFreeID = uint64(RootIno) + 1
)

// idAllocator hands out numbers for inodes, contents and blobs, none twice.
type idAllocator struct {
	kv        cluster.KV
	mu        sync.Mutex
	next, end uint64
}

// init starts with nothing leased; next tells what was handed out before.
func (a *idAllocator) init(ctx context.Context, kv cluster.KV) error {
	a.kv = kv
	err := kv.View(ctx, func(r cluster.Reader) (err error) {
		a.next, err = record.Counter(r, "id")
		a.end = a.next
		return err
	})
	return fserr.Map(err)
}

// take returns a number that was never returned before, by any process.
func (a *idAllocator) take(ctx context.Context) (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == a.end {
		if err := a.lease(ctx); err != nil {
			return 0, err
		}
	}
	a.next++
	return a.next - 1, nil
}

// reserve sees to it that operations find their numbers leased.
func (a *idAllocator) reserve(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.end-a.next >= idReserve {
		return nil
	}
	return a.lease(ctx)
}

// lease moves the shared counter on. It must be durable before a number is
// used, whatever durability the caller asked for.
func (a *idAllocator) lease(ctx context.Context) error {
	var from uint64
	err := a.kv.Update(cluster.Strict(context.WithoutCancel(ctx)), func(t cluster.Txn) error {
		b, err := t.Get(record.CounterKey("id"))
		if err != nil {
			return err
		}
		from = firstFreeID
		if b != nil {
			if len(b) != 8 {
				return fmt.Errorf("%w: number counter", ErrCorrupt)
			}
			from = binary.BigEndian.Uint64(b)
		}
		return t.Set(record.CounterKey("id"), binary.BigEndian.AppendUint64(nil, from+idLease))
	})
	if err != nil {
		return fserr.Map(err)
	}
	a.next, a.end = from, from+idLease
	return nil
}

// release gives back what was leased and not used, if nobody leased after.
// Only the count of files profits, so a failure loses nothing.
func (a *idAllocator) release(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == a.end {
		return
	}
	next, end := a.next, a.end
	a.end = a.next // also after a commit of unknown outcome: a new lease decides
	_ = a.kv.Update(ctx, func(t cluster.Txn) error {
		b, err := t.Get(record.CounterKey("id"))
		if err != nil || len(b) != 8 || binary.BigEndian.Uint64(b) != end {
			return err
		}
		return t.Set(record.CounterKey("id"), binary.BigEndian.AppendUint64(nil, next))
	})
}

package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/cluster/pause"
	"ogw/vfs/internal/record"
)

const (
	// BeatEvery is the time between two beats.
	BeatEvery = 2 * time.Second
	// LapseAfter is the age of the last acknowledged beat from which on a gateway
	// answers nothing. It is shorter than EvictAfter by more than two clocks of
	// one rate come apart in that time.
	LapseAfter = 8 * time.Second
	// EvictAfter is how long a beat stands still, as another gateway sees it,
	// before that may take the store over.
	EvictAfter = 10 * time.Second
	// beatTimeout bounds one beat, its retries included.
	beatTimeout = 2 * BeatEvery
	// leaveTimeout bounds the last transaction of a gateway that ends.
	leaveTimeout = 5 * time.Second
)

var (
	errLapsed = fmt.Errorf("%w: the metadata store did not acknowledge that this gateway is alive for %v", cluster.ErrUnavailable, LapseAfter)
	errLost   = fmt.Errorf("%w: this gateway stood still, and another one has taken the store over", cluster.ErrUnavailable)
)

// Lease is the right of this process to use a store that others could use, too.
// It holds as long as the process beats.
type Lease struct {
	kv    cluster.KV // not fenced
	log   *slog.Logger
	clock func() time.Duration

	id    uint64
	key   []byte // of the fence
	value []byte

	acked atomic.Int64 // clock before the last acknowledged beat was sent
	gone  chan struct{}
	lose  func() // closes gone, once

	stop context.CancelFunc
	beat sync.WaitGroup
}

// Join waits until nobody else uses the store, and takes the lease. It returns
// cluster.ErrInUse, with who it is, if another gateway is alive.
func Join(ctx context.Context, kv cluster.KV, me record.Gateway, log *slog.Logger) (*Lease, error) {
	l, err := newLease(kv, me, log)
	if err != nil {
		return nil, err
	}
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.beat.Go(func() { l.run(run) })
	return l, nil
}

func newLease(kv cluster.KV, me record.Gateway, log *slog.Logger) (*Lease, error) {
	me.ID = rand.Uint64()
	value, err := me.Encode()
	if err != nil {
		return nil, err
	}
	l := &Lease{kv: kv, log: log, clock: bootClock, id: me.ID, key: record.FenceKey(me.ID), value: value, gone: make(chan struct{})}
	l.lose = sync.OnceFunc(func() { close(l.gone) })
	return l, nil
}

// take looks at the others until they are gone.
func (l *Lease) take(ctx context.Context) error {
	w := newWatch()
	for told := false; ; {
		before := l.clock()
		others, err := look(ctx, l.kv)
		if err != nil {
			return err
		}
		w.saw(before, l.clock(), others)
		if g := w.alive(); g != nil {
			return inUse(g)
		}
		if w.still(before) {
			done, err := l.register(ctx, others)
			if done || err != nil {
				return err
			}
			continue
		}
		if !told {
			l.log.Warn("the store was not left by the gateway that used it last; waiting whether that is alive",
				"host", others[0].Host, "pid", others[0].PID, "wait", EvictAfter)
			told = true
		}
		if err := pause.For(ctx, lookEvery); err != nil {
			return err
		}
	}
}

func inUse(g *record.Gateway) error {
	return fmt.Errorf("%w: on host %s, process %d, ogw %s, since %s; one at a time can use it",
		cluster.ErrInUse, g.Host, g.PID, g.Version, g.Started.UTC().Format(time.RFC3339))
}

// register takes the place of others, and returns false if one of them moved
// meanwhile, or somebody else was faster.
func (l *Lease) register(ctx context.Context, others []sighting) (done bool, err error) {
	before := l.clock()
	err = l.kv.Update(ctx, func(t cluster.Txn) error {
		done = false
		now, err := sightings(t)
		if err != nil {
			return err
		}
		// A fence of our own is a commit whose answer was lost.
		if len(now) == 1 && now[0].ID == l.id {
			done = true
			return nil
		}
		if !same(now, others) {
			return nil
		}
		for _, o := range others {
			if err := errors.Join(t.Delete(record.FenceKey(o.ID)), t.Delete(record.BeatKey(o.ID))); err != nil {
				return err
			}
		}
		done = true
		return errors.Join(t.Set(l.key, l.value), record.SetBeat(t, l.id, 1))
	})
	if err != nil || !done {
		return false, err
	}
	l.acked.Store(int64(before))
	for _, o := range others {
		l.log.Warn("the gateway that used the store stood still, this one takes it over", "host", o.Host, "pid", o.PID)
	}
	return true, nil
}

// run beats until ctx ends or the fence is gone.
func (l *Lease) run(ctx context.Context) {
	failing := false
	for pause.For(ctx, BeatEvery) == nil {
		err := l.once(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errLost):
			l.log.Error("another gateway has taken the store over, since this one stood still")
			return
		case err != nil && !failing:
			l.log.Error("the metadata store does not answer; from 8 s on clients are refused until it does", "err", err)
		case err == nil && failing:
			l.log.Info("the metadata store answers again")
		}
		failing = err != nil
	}
}

// once beats. An outcome that is unknown is none: the next beat shows it.
func (l *Lease) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	before := l.clock()
	err := l.kv.Update(ctx, func(t cluster.Txn) error {
		if err := l.read(t); err != nil {
			return err
		}
		n, err := record.Beat(t, l.id)
		if err != nil {
			return err
		}
		return record.SetBeat(t, l.id, n+1)
	})
	if err == nil {
		l.acked.Store(int64(before))
	}
	return err
}

// expect has t commit only while the fence is there.
func (l *Lease) expect(t cluster.Txn) error { return t.Expect(l.key, l.value) }

// read looks at the fence.
func (l *Lease) read(t cluster.Txn) error {
	v, err := t.Get(l.key)
	if err != nil || bytes.Equal(v, l.value) {
		return err
	}
	l.lose()
	return errLost
}

// Live returns nil while nobody else can have taken the store over.
func (l *Lease) Live() error {
	select {
	case <-l.gone:
		return errLost
	default:
	}
	if l.clock()-time.Duration(l.acked.Load()) >= LapseAfter {
		return errLapsed
	}
	return nil
}

// Gone is closed when another gateway took the store over.
func (l *Lease) Gone() <-chan struct{} { return l.gone }

// Leave ends the lease, so that the next gateway need not wait. After a failure it
// waits for EvictAfter.
func (l *Lease) Leave() error {
	l.stop()
	l.beat.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	err := l.kv.Update(ctx, func(t cluster.Txn) error {
		if err := l.read(t); err != nil {
			return err
		}
		return errors.Join(t.Delete(l.key), t.Delete(record.BeatKey(l.id)))
	})
	l.lose() // whoever comes late
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

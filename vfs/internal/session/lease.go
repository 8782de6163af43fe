package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/cluster/bootclock"
	"ogw/cluster/pause"
	"ogw/vfs/internal/record"
)

const (
	// LapseAfter is the age of the last acknowledged beat from which on a gateway
	// answers nothing. It is shorter than EvictAfter by more than two clocks of
	// one rate come apart in that time.
	LapseAfter = 8 * time.Second
	// EvictAfter is how long a beat stands still, as another gateway sees it,
	// before that puts its gateway out.
	EvictAfter = 10 * time.Second
	// leaveTimeout bounds the last transaction of a gateway that ends.
	leaveTimeout = 5 * time.Second
)

var (
	errLapsed = fmt.Errorf("%w: the metadata store did not acknowledge that this gateway is alive for %v", cluster.ErrUnavailable, LapseAfter)
	errLost   = fmt.Errorf("%w: this gateway stood still, and another one has put it out", cluster.ErrUnavailable)
)

// Lease is the right of this process to use a store that others could use, too:
// alone, or beside others. It holds as long as the process beats.
type Lease struct {
	kv    cluster.KV // not fenced
	log   *slog.Logger
	clock func() time.Duration

	me    record.Gateway
	key   []byte                 // of the fence
	value atomic.Pointer[[]byte] // as the store has it, or had it before the last beat

	unable atomic.Bool // the blobs do not answer
	stays  atomic.Bool // the fence outlasts Leave

	acked atomic.Int64 // clock before the last acknowledged beat was sent
	gone  chan struct{}
	lose  func() // closes gone, once

	reads publisher
	peers peers
	asked asked
	tells cluster.Peers

	stop context.CancelFunc
	beat sync.WaitGroup
}

func newLease(kv cluster.KV, tells cluster.Peers, me record.Gateway, log *slog.Logger) (*Lease, error) {
	if me.ID == 0 {
		me.ID = rand.Uint64()
	}
	me.Format, me.Rules, me.Speaks = record.FormatVersion, record.OldestRules, record.RulesVersion
	if tells == nil || !me.Beside {
		tells = nobody{}
	}
	me.Address, me.Key = tells.Me()
	value, err := me.Encode()
	if err != nil {
		return nil, err
	}
	l := &Lease{kv: kv, log: log, clock: bootclock.Now, me: me, key: record.FenceKey(me.ID), gone: make(chan struct{}), tells: tells}
	l.reads.restoring = me.Restores
	l.value.Store(&value)
	l.lose = sync.OnceFunc(func() { close(l.gone) })
	l.peers.init()
	return l, nil
}

// blocks reports whether this process cannot be where o is.
func (l *Lease) blocks(o *record.Gateway) bool {
	return o.ID != l.me.ID && (!l.me.Beside || !o.Beside || o.Format != l.me.Format || o.Rules < record.OldestRules || o.Rules > record.RulesVersion)
}

// Rules returns those by which all go that are there, or come: that stands in the store.
func (l *Lease) Rules() uint16 { return uint16(l.peers.rules.Load()) }

// ended reports whether the process of a gateway is known to have ended. It answers nothing any
// more; what it asked the store for may still come, while its fence is there.
func (l *Lease) ended(id uint64) bool { return slices.Contains(l.me.Ended, id) }

// take looks at the others until those that it cannot be beside are gone.
func (l *Lease) take(ctx context.Context) error {
	w := newWatch(lookGap)
	for told := false; ; {
		before := l.clock()
		others, err := look(ctx, l.kv, l.blocks)
		if err != nil {
			return err
		}
		var watched []sighting
		for _, o := range others {
			if !l.ended(o.ID) {
				watched = append(watched, o)
			}
		}
		w.saw(before, l.clock(), watched)
		if g := w.alive(); g != nil {
			return l.inUse(g)
		}
		if len(w.still(before)) == len(watched) {
			done, err := l.register(ctx, others)
			if done || err != nil {
				return err
			}
			continue
		}
		if !told {
			l.log.Warn("the store was not left by the gateway that used it last; waiting whether that is alive",
				"host", watched[0].Host, "pid", watched[0].PID, "wait", EvictAfter)
			told = true
		}
		if err := pause.For(ctx, lookEvery); err != nil {
			return err
		}
	}
}

func (l *Lease) inUse(g *record.Gateway) error {
	why := "one at a time can use it"
	switch {
	case l.me.Beside && !g.Beside:
		why = "which uses it alone; this one would use it beside others"
	case l.me.Beside:
		why = fmt.Sprintf("which speaks format %d by rules %d, this one format %d by rules %d", g.Format, g.Rules, l.me.Format, record.RulesVersion)
	case g.Beside:
		why = "which uses it beside others; this one would use it alone"
	}
	return fmt.Errorf("%w: on host %s, process %d, ogw %s, since %s; %s",
		cluster.ErrInUse, g.Host, g.PID, g.Version, g.Started.UTC().Format(time.RFC3339), why)
}

// register takes the place of blockers, and returns false if one of them moved
// meanwhile, or somebody else was faster.
func (l *Lease) register(ctx context.Context, blockers []sighting) (done bool, err error) {
	before := l.clock()
	var first saying
	err = l.kv.Update(ctx, func(t cluster.Txn) error {
		done = false
		if fence, err := t.Get(l.key); err != nil || fence != nil {
			done = err == nil // a commit whose answer was lost
			return err
		}
		now, err := sightings(t, l.blocks)
		if err != nil || !same(now, blockers) {
			return err
		}
		for _, o := range blockers {
			if err := putOut(t, o.ID); err != nil {
				return err
			}
		}
		done = true
		if first, err = l.reads.begin(t); err != nil {
			return err
		}
		if l.me.Beside {
			if err := t.Set(record.ReadKey(l.me.ID), first.Encode()); err != nil {
				return err
			}
		}
		return errors.Join(t.Set(l.key, *l.value.Load()), t.Set(record.BeatKey(l.me.ID), record.Beat{Number: 1}.Encode()))
	})
	if err != nil || !done {
		return false, err
	}
	l.reads.begun(&first)
	l.acked.Store(int64(before))
	for _, o := range blockers {
		if l.ended(o.ID) {
			l.log.Info("the gateway before on this data folder has ended without leaving the store, this one takes it over", "pid", o.PID)
			continue
		}
		l.log.Warn("the gateway that used the store stood still, this one takes it over", "host", o.Host, "pid", o.PID)
	}
	return true, nil
}

// remove deletes what stands for a gateway.
func remove(t cluster.Txn, id uint64) error {
	return errors.Join(t.Delete(record.FenceKey(id)), t.Delete(record.BeatKey(id)), t.Delete(record.ReadKey(id)))
}

// putOut removes a gateway that stands still, which may have been about to name something.
func putOut(t cluster.Txn, id uint64) error { return errors.Join(remove(t, id), record.MarkLeft(t)) }

// expect has t commit only while the fence is there, as it was when t began.
func (l *Lease) expect(t cluster.Txn) error { return t.Expect(l.key, *l.value.Load()) }

// read looks at the fence, which only this process writes and others remove.
func (l *Lease) read(t cluster.Txn) error {
	v, err := t.Get(l.key)
	if err != nil || v != nil {
		return err
	}
	l.lose()
	return errLost
}

// Live returns nil while nobody else can have put this process out.
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

// Gone is closed when another gateway put this one out.
func (l *Lease) Gone() <-chan struct{} { return l.gone }

// Leave ends the lease, so that the next gateway need not wait. After a failure, and where
// the fence stays, it waits for EvictAfter. Nothing is being stored any more: of who was put
// out, the others look for what it stored after they had looked.
func (l *Lease) Leave() error {
	l.stop()
	l.beat.Wait()
	live := l.Live() == nil
	l.lose() // nothing is answered any more when the fence is gone
	ctx, cancel := context.WithTimeout(cluster.Urgent(context.Background()), leaveTimeout)
	defer cancel()
	err := l.kv.Update(ctx, func(t cluster.Txn) error {
		fence, err := t.Get(l.key)
		switch {
		case err != nil:
			return err
		case fence == nil:
			return record.SweepAgain(t, l.reads.said.First)
		case l.stays.Load():
			return l.fallSilent(t)
		case l.reads.unsettled():
			return putOut(t, l.me.ID)
		}
		return remove(t, l.me.ID)
	})
	if l.stays.Load() && live { // nobody can have put it out: only that it falls silent may fail
		return nil
	}
	return err
}

// fallSilent writes the fence anew as that of who cannot be reached, so that the next gateway on this
// machine need not try (cluster.Peers.Introduce), for longer than the fence stays.
func (l *Lease) fallSilent(t cluster.Txn) error {
	me := l.me
	me.Address, me.Key = "", nil
	me.Renewed++
	value, err := me.Encode()
	if err != nil {
		return err
	}
	return t.Set(l.key, value)
}

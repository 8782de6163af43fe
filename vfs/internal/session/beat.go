package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/cluster/pause"
	"ogw/vfs/internal/record"
)

const (
	// beatTimeout bounds one beat, its retries included: after one that hangs there is as
	// much time left for the next before LapseAfter as there was before it, BeatEvery.
	beatTimeout = 2 * BeatEvery
	// retryEvery is the least time from the beginning of a beat that failed to the next one.
	retryEvery = BeatEvery / 4
)

// run beats until ctx ends or the fence is gone. Who is beside others watches them. Pauses
// are counted from the beginning of a beat, so that what hung does not delay the next one.
func (l *Lease) run(ctx context.Context) {
	failing := false
	for due := l.clock() + BeatEvery; pause.For(ctx, due-l.clock()) == nil; {
		begun := l.clock()
		err := l.once(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errLost):
			l.log.Error("another gateway has put this one out, since it stood still")
			return
		case err != nil && !failing:
			l.log.Error("the metadata store does not answer; from 8 s on clients are refused until it does", "err", err)
		case err == nil && failing:
			l.log.Info("the metadata store answers again")
		}
		due = begun + BeatEvery
		if failing = err != nil; failing {
			due = begun + retryEvery
		} else if l.me.Beside {
			l.afterBeat(ctx)
		}
	}
}

// afterBeat is what one beside others does after a beat that was committed.
func (l *Lease) afterBeat(ctx context.Context) {
	if err := l.watchPeers(ctx); err != nil && ctx.Err() == nil {
		l.log.Warn("the other gateways cannot be watched, it is tried again", "err", err)
	}
	if let := l.reads.lets(); let != nil {
		l.beat.Go(let) // it may take longer than a beat may wait
	}
	if epoch, open := l.reads.wants(); epoch != 0 {
		l.beat.Go(func() { // as well
			defer l.reads.looked()
			if err := l.findOrphans(ctx, epoch, open); err != nil && ctx.Err() == nil {
				l.log.Warn("what is in use without links is not known, it is tried again", "err", err)
			}
		})
	}
}

// once beats. An outcome that is unknown is none: the next beat shows it.
func (l *Lease) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(cluster.Urgent(ctx), beatTimeout)
	defer cancel()
	before := l.clock()
	say := l.reads.next()
	var me record.Gateway
	var fence []byte // a new one
	err := l.kv.Update(ctx, func(t cluster.Txn) (err error) {
		if err := l.read(t); err != nil {
			return err
		}
		if me, fence, err = l.renewed(t, say.doubts+say.others > 0); err != nil {
			return err
		}
		beat, err := record.ReadBeat(t, l.me.ID)
		if err != nil {
			return err
		}
		beat.Number++
		beat.Unable = l.unable.Load()
		if l.me.Beside {
			if err := l.reads.say(t, l.me.ID, &say); err != nil {
				return err
			}
		}
		if fence != nil {
			if err := t.Set(l.key, fence); err != nil {
				return err
			}
		}
		if say.doubts > 0 {
			if err := record.MarkLeft(t); err != nil {
				return err
			}
		}
		return t.Set(record.BeatKey(l.me.ID), beat.Encode())
	})
	if err != nil {
		return err
	}
	l.acked.Store(int64(before))
	l.reads.learned(&say)
	if fence != nil {
		l.me.Renewed, l.me.Rules = me.Renewed, me.Rules
		l.peers.rules.Store(uint32(me.Rules))
		l.value.Store(&fence)
	}
	return nil
}

// renewed returns what the fence is to say, and its value, nil if it is to stay. That of who
// has doubts has another value: no transaction that began before it was written commits after.
func (l *Lease) renewed(r cluster.Reader, doubts bool) (me record.Gateway, value []byte, err error) {
	me = l.me
	if doubts {
		me.Renewed++
	}
	if l.peers.speak {
		all, err := record.Gateways(r)
		if err != nil {
			return me, nil, err
		}
		me.Rules = max(me.Rules, record.CommonRules(all))
	}
	if me.Renewed == l.me.Renewed && me.Rules == l.me.Rules {
		return me, nil, nil
	}
	value, err = me.Encode()
	return me, value, err
}

// Peer is a gateway, as another one sees it.
type Peer struct {
	record.Gateway
	// Still is how long its beat has stood still, by the clock of who looks.
	Still time.Duration `json:"still_ns"`
	// Told reports, of this gateway, whether all others tell it what they change, so that
	// it need not ask for what they do not.
	Told bool `json:"told,omitempty"`
}

// watchPeers looks at the others, and puts out those that stand still. It comes
// after a beat that was committed: while none is, the others cannot beat either, and
// that they stand still proves nothing.
func (l *Lease) watchPeers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(cluster.Urgent(ctx), beatTimeout)
	defer cancel()
	before := l.clock()
	list, err := l.lookAtAll(ctx)
	if err != nil {
		return err
	}
	l.peers.speak = !slices.ContainsFunc(list, func(s sighting) bool { return s.Latest() <= l.me.Rules })
	w := l.peers.watch
	w.saw(before, l.clock(), list)
	seen := make([]standing, len(list))
	for i := range list {
		seen[i] = w.seen[list[i].ID]
	}
	l.peers.seen.Store(&seen)
	if !l.peers.introduced.Load() {
		return nil
	}
	for _, s := range w.still(before) {
		if s.ID == l.me.ID {
			continue
		}
		if err := l.evict(ctx, s.sighting); err != nil {
			return err
		}
	}
	return l.succeed(ctx, list)
}

// succeed puts out those of a list that have ended, once this process has what they vouched for.
func (l *Lease) succeed(ctx context.Context, list []sighting) error {
	if !l.me.Restores || l.reads.isRestoring() {
		return nil
	}
	for _, s := range list {
		if !l.ended(s.ID) {
			continue
		}
		if err := l.evict(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// lookAtAll looks who uses the store, and has this process told by them what they change.
func (l *Lease) lookAtAll(ctx context.Context) (list []sighting, err error) {
	err = l.tells.Look(ctx, func(ctx context.Context) (peers []cluster.Peer, all bool, err error) {
		all = l.Rules() >= record.RulesTelling // before the look
		if list, err = look(ctx, l.kv, everybody); err != nil {
			return nil, false, err
		}
		peers = make([]cluster.Peer, len(list))
		for i := range list {
			peers[i] = cluster.Peer{ID: list[i].ID, Address: list[i].Address, Key: list[i].Key}
		}
		return peers, all, nil
	})
	return list, err
}

// glance is lookAtAll for who connects and is not known.
func (l *Lease) glance(ctx context.Context) error {
	_, err := l.lookAtAll(cluster.Urgent(ctx))
	return err
}

// introduce returns when what this process changes is told to all that answer from memory, or
// these know that it tells nothing.
func (l *Lease) introduce(ctx context.Context) error {
	err := l.tells.Introduce(ctx, l.me.Ended)
	if err == nil && l.me.Address == "" && l.me.Beside {
		err = l.awaitLooks(ctx)
	}
	l.peers.introduced.Store(err == nil)
	return err
}

// awaitLooks is introduce for one that tells nothing. Who comes later sees that.
func (l *Lease) awaitLooks(ctx context.Context) error {
	list, err := look(cluster.Urgent(ctx), l.kv, func(g *record.Gateway) bool { return g.Address != "" && !l.ended(g.ID) })
	if err == nil && len(list) == 0 {
		return nil
	}
	return pause.For(ctx, cluster.PeerWait)
}

// evict puts a gateway out, unless it moved or is gone.
func (l *Lease) evict(ctx context.Context, o sighting) error {
	out := false
	err := l.kv.Update(ctx, func(t cluster.Txn) error {
		out = false
		if err := l.read(t); err != nil {
			return err
		}
		fence, err := t.Get(record.FenceKey(o.ID))
		if err != nil || fence == nil {
			return err
		}
		beat, err := record.ReadBeat(t, o.ID)
		if err != nil || beat.Number != o.beat.Number {
			return err
		}
		out = true
		return putOut(t, o.ID)
	})
	switch {
	case err != nil || !out:
	case l.ended(o.ID):
		l.log.Info("the gateway before on this data folder is put out: it has ended", "pid", o.PID)
	default:
		l.log.Warn("a gateway stood still, and is put out", "host", o.Host, "pid", o.PID, "for", EvictAfter)
	}
	return err
}

// Peers returns the gateways that used the store at the last look, this one included,
// and none where it has the store alone or did not look yet.
func (l *Lease) Peers() (list []Peer) {
	seen := l.peers.seen.Load()
	if seen == nil {
		return nil
	}
	now := l.clock()
	for i := range *seen {
		s := &(*seen)[i]
		list = append(list, Peer{s.Gateway, now - s.since, s.ID == l.me.ID && l.tells.Told()})
	}
	return list
}

// everybody is who is watched.
func everybody(*record.Gateway) bool { return true }

// Leads reports whether this process does what one has to do for all: the oldest of
// those that serve, as far as clocks tell, and that the blobs answer, unless they answer
// none. Two may think so for a while: what they do is right all the same, only done twice.
func (l *Lease) Leads() bool {
	seen := l.peers.seen.Load()
	if seen == nil || !l.me.Serves {
		return false
	}
	me := standing{sighting: sighting{record.Gateway{ID: l.me.ID, Started: l.me.Started}, record.Beat{Unable: l.unable.Load()}}}
	for i := range *seen {
		s := &(*seen)[i]
		if s.Serves && s.ID != me.ID && s.before(&me) {
			return false
		}
	}
	return true
}

// before reports whether s leads rather than o.
func (s *standing) before(o *standing) bool {
	if s.beat.Unable != o.beat.Unable {
		return o.beat.Unable
	}
	return cmp.Or(s.Started.Compare(o.Started), cmp.Compare(s.ID, o.ID)) < 0
}

package session

import (
	"context"
	"errors"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/coherence"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// joinTelling joins as me, and returns how long that took, and what tells the others.
func joinTelling(t *testing.T, kv cluster.KV, me record.Gateway) (*Lease, *coherence.Client, time.Duration) {
	t.Helper()
	p, err := coherence.New(coherence.Options{Listen: "127.0.0.1:0", Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	begin := time.Now()
	ctx, cancel := context.WithTimeout(bg, 30*time.Second)
	defer cancel()
	l, err := Join(ctx, kv, p, me, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return l, p, time.Since(begin)
}

// kill ends a gateway as kill -9 does.
func kill(l *Lease, p *coherence.Client) {
	l.stop()
	l.beat.Wait()
	p.Close()
}

func thereIs(t *testing.T, kv cluster.KV, id uint64) bool {
	t.Helper()
	list, err := look(bg, kv, func(g *record.Gateway) bool { return g.ID == id })
	if err != nil {
		t.Fatal(err)
	}
	return len(list) == 1
}

// Who knows that a gateway has ended does not wait for it, and trusts nobody as long as that one's
// commits may come.
func TestNextAfterKill(t *testing.T) {
	t.Parallel()
	c := mem.New(mem.Options{})
	other, _, _ := joinTelling(t, c.KV, besideMember("other"))
	old, p, _ := joinTelling(t, c.KV, besideMember("old"))
	kill(old, p)

	me := besideMember("next")
	_, _, took := joinTelling(t, c.KV, me)
	if took < cluster.PeerWait*9/10 {
		t.Errorf("one that does not know of it was there after %v", took)
	}

	me.Ended = []uint64{old.me.ID}
	next, at, took := joinTelling(t, c.KV, me)
	if took > cluster.PeerWait/4 {
		t.Errorf("the next one took %v", took)
	}
	if !thereIs(t, c.KV, old.me.ID) || at.Told() {
		t.Errorf("told %v while commits of the one before may come", at.Told())
	}
	if err := errors.Join(next.Leave(), other.Leave()); err != nil {
		t.Error(err)
	}
}

// A gateway that is alive is waited for, whoever else has ended.
func TestNextBesideLiving(t *testing.T) {
	t.Parallel()
	c := mem.New(mem.Options{})
	ended, p, _ := joinTelling(t, c.KV, besideMember("ended"))
	kill(ended, p)
	me := besideMember("deaf")
	me.Ended = []uint64{ended.me.ID}
	deaf, p, _ := joinTelling(t, c.KV, me)
	p.Close() // nobody reaches it, and it beats
	me.Host = "next"
	next, _, took := joinTelling(t, c.KV, me)
	if took < cluster.PeerWait*9/10 {
		t.Errorf("it did not wait for one that is alive: %v", took)
	}
	if err := errors.Join(next.Leave(), deaf.Leave()); err != nil {
		t.Error(err)
	}
}

// The same for one that tells nothing.
func TestSilentNextAfterKill(t *testing.T) {
	t.Parallel()
	c := mem.New(mem.Options{})
	defer c.Close()
	old, _ := told(t, c.KV, "old")
	me := besideMember("next")
	for _, knows := range []bool{true, false} {
		if me.Ended = nil; knows {
			me.Ended = []uint64{old.me.ID}
		}
		begin := time.Now()
		l, err := Join(bg, c.KV, nil, me, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > cluster.PeerWait/4 == knows {
			t.Errorf("knows %v: it took %v", knows, took)
		}
		if err := l.Leave(); err != nil {
			t.Error(err)
		}
	}
}

// What a gateway that has ended vouches for stays until the next one has it, or the others have
// seen it stand still. A command takes nothing over.
func TestSucceeds(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	clock := &hand{}
	old, other := besideLease(t, c.KV, "old", clock), besideLease(t, c.KV, "other", clock)
	join := func(restores bool) *Lease {
		me := besideMember("next")
		me.Ended, me.Restores = []uint64{old.me.ID}, restores
		l, err := newLease(c.KV, nil, me, quiet)
		if err != nil {
			t.Fatal(err)
		}
		l.clock, l.stop = clock.now, func() {}
		if err := l.take(bg); err != nil {
			t.Fatal(err)
		}
		l.peers.introduced.Store(true)
		return l
	}
	command, server := join(false), join(true)
	round(t, other, command, server)
	round(t, other, command, server)
	if !thereIs(t, c.KV, old.me.ID) {
		t.Fatal("it is put out before the next one has what it vouches for")
	}
	server.reads.restored()
	round(t, other, command, server)
	if thereIs(t, c.KV, old.me.ID) {
		t.Error("it is not put out")
	}
	if !thereIs(t, c.KV, other.me.ID) || !thereIs(t, c.KV, command.me.ID) {
		t.Error("others are put out")
	}
	if err := set(old.Fenced(), "k", "late"); !errors.Is(err, errLost) {
		t.Errorf("a late commit: %v", err)
	}
}

// One that has the store alone takes it at once from one that has ended, and from nobody else.
func TestTakeoverFromEnded(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	a := leased(t, c.KV, "a", &hand{})
	me := member("b")
	me.Ended = []uint64{a.me.ID}
	begin := time.Now()
	b, err := Join(bg, c.KV, nil, me, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > lookEvery {
		t.Errorf("it took %v", took)
	}
	if err := set(a.Fenced(), "k", "late"); !errors.Is(err, errLost) {
		t.Errorf("a late commit: %v", err)
	}
	if _, err := Join(bg, c.KV, nil, me, quiet); !errors.Is(err, cluster.ErrInUse) {
		t.Errorf("beside one that is alive: %v", err)
	}
	if err := b.Leave(); err != nil {
		t.Error(err)
	}
}

// Of two that are in its way, one has ended, and the other one is waited for.
func TestTakeoverFromOneOfTwo(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	ended, still := besideLease(t, c.KV, "ended", &hand{}), besideLease(t, c.KV, "still", &hand{})
	me := member("alone")
	me.Ended = []uint64{ended.me.ID}
	l, err := newLease(c.KV, nil, me, quiet)
	if err != nil {
		t.Fatal(err)
	}
	clock := &hand{step: 900 * time.Millisecond}
	l.clock = clock.now
	if err := l.take(bg); err != nil {
		t.Fatal(err)
	}
	if clock.at < EvictAfter {
		t.Errorf("it did not wait for the one that may be alive: %v", clock.at)
	}
	if thereIs(t, c.KV, ended.me.ID) || thereIs(t, c.KV, still.me.ID) {
		t.Error("one of them is still there")
	}
}

package session

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// listener is the Peers of one gateway, which notes what it is told.
type listener struct {
	nobody
	saw     []cluster.Peer
	all     bool
	look    func(context.Context) error // set by told
	refuses error
	at      string // where others reach it, if not at host:1
}

func (p *listener) Me() (string, []byte) { return cmp.Or(p.at, "host:1"), []byte("key") }

func (p *listener) Look(ctx context.Context, look func(context.Context) ([]cluster.Peer, bool, error)) (err error) {
	p.saw, p.all, err = look(ctx)
	return err
}

func (p *listener) Introduce(context.Context, []uint64) error { return p.refuses }

// told returns a lease that does not beat by itself, and what it is told.
func told(t *testing.T, kv cluster.KV, host string) (*Lease, *listener) {
	t.Helper()
	p := &listener{}
	l, err := newLease(kv, p, besideMember(host), quiet)
	if err != nil {
		t.Fatal(err)
	}
	p.look = l.glance
	l.clock, l.stop = (&hand{}).now, func() {}
	if err := l.take(bg); err != nil {
		t.Fatal(err)
	}
	return l, p
}

func rulesOf(t *testing.T, kv cluster.KV, id uint64) (rules uint16) {
	t.Helper()
	list, err := look(bg, kv, func(g *record.Gateway) bool { return g.ID == id })
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	return list[0].Rules
}

// The rules rise when all can go by them, and from then on nobody comes who cannot.
func TestRulesRise(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	a, atA := told(t, c.KV, "a")
	old, err := newLease(c.KV, nil, besideMember("old"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	old.me.Speaks = 0
	value, err := old.me.Encode()
	if err != nil {
		t.Fatal(err)
	}
	old.value.Store(&value)
	old.clock, old.stop = a.clock, func() {}
	if err := old.take(bg); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		round(t, a)
		if atA.all || rulesOf(t, c.KV, a.me.ID) != record.OldestRules {
			t.Fatal("the rules rose beside one that does not know them")
		}
	}
	if len(atA.saw) != 2 {
		t.Errorf("it saw %v", atA.saw)
	}
	if err := old.Leave(); err != nil {
		t.Fatal(err)
	}
	b, atB := told(t, c.KV, "b")
	round(t, a, b) // which look, and then rise
	round(t, a, b)
	round(t, a, b)
	if !atA.all || !atB.all || rulesOf(t, c.KV, a.me.ID) != record.RulesVersion || rulesOf(t, c.KV, b.me.ID) != record.RulesVersion {
		t.Errorf("the rules did not rise: %v, %v", atA, atB)
	}
	if p := atB.saw[0]; p.Address != "host:1" || string(p.Key) != "key" {
		t.Errorf("it saw %+v", p)
	}
	if err := errors.Join(set(a.Fenced(), "k", "a"), set(b.Fenced(), "k", "b")); err != nil {
		t.Errorf("after the rules rose: %v", err)
	}
	third, _ := told(t, c.KV, "third")
	if third.blocks(&a.me) {
		t.Error("who knows the rules is kept out")
	}
	later := a.me
	if later.Rules++; !third.blocks(&later) {
		t.Error("it is beside one whose rules it does not know")
	}
}

// Beside one that tells, and knows no later rules, they rise as far as that can; when it is
// gone, further.
func TestRulesRiseInSteps(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	a, atA := told(t, c.KV, "a")
	before := besideLease(t, c.KV, "before", &hand{})
	before.me.Rules, before.me.Speaks = record.RulesTelling, record.RulesTelling
	value, err := before.me.Encode()
	if err == nil {
		err = set(c.KV, string(before.key), string(value))
	}
	if err != nil {
		t.Fatal(err)
	}
	if a.Rules() != record.OldestRules {
		t.Errorf("it begins by rules %d", a.Rules())
	}
	for range 4 {
		round(t, a)
	}
	if rules := rulesOf(t, c.KV, a.me.ID); !atA.all || rules != record.RulesTelling || a.Rules() != rules {
		t.Errorf("rules %d, %d, all tell: %v", rules, a.Rules(), atA.all)
	}
	if err := c.KV.Update(bg, func(x cluster.Txn) error { return remove(x, before.me.ID) }); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		round(t, a)
	}
	if rules := rulesOf(t, c.KV, a.me.ID); rules != record.RulesVersion || a.Rules() != rules {
		t.Errorf("rules %d, %d", rules, a.Rules())
	}
}

// One that comes while the rules are to rise is seen by that.
func TestRulesRiseLate(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	a, atA := told(t, c.KV, "a")
	round(t, a)
	old := besideLease(t, c.KV, "old", &hand{})
	old.me.Speaks = 0
	value, err := old.me.Encode()
	if err == nil {
		err = set(c.KV, string(old.key), string(value))
	}
	if err != nil {
		t.Fatal(err)
	}
	round(t, a)
	if atA.all || rulesOf(t, c.KV, a.me.ID) != record.OldestRules {
		t.Error("the rules rose beside one that came meanwhile")
	}
}

// Who connects and is not known has it look who is there.
func TestGlance(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	_, at := told(t, c.KV, "a")
	told(t, c.KV, "b")
	if err := at.look(bg); err != nil || len(at.saw) != 2 {
		t.Errorf("it saw %v, %v", at.saw, err)
	}
}

// Before the others know of it a gateway changes nothing of theirs.
func TestIntroduced(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	clock := &hand{}
	still, a := besideLease(t, c.KV, "still", clock), besideLease(t, c.KV, "a", clock)
	round(t, still, a)
	evicts := func() bool {
		t.Helper()
		for range EvictAfter/BeatEvery + 2 {
			clock.at += BeatEvery
			round(t, a)
		}
		list, err := look(bg, c.KV, everybody)
		if err != nil {
			t.Fatal(err)
		}
		return len(list) == 1
	}
	a.peers.introduced.Store(false)
	if evicts() {
		t.Error("it put another one out")
	}
	a.peers.introduced.Store(true)
	if !evicts() {
		t.Error("it put nobody out")
	}
	refused := errors.New("refused")
	if _, err := Join(bg, c.KV, &listener{refuses: refused}, besideMember("b"), quiet); !errors.Is(err, refused) {
		t.Errorf("it joined: %v", err)
	}
	if list, err := look(bg, c.KV, everybody); err != nil || len(list) != 1 {
		t.Errorf("it is still there: %v, %v", list, err)
	}
}

// late has the answer of an Update come late.
type late struct {
	cluster.KV
	answer func()
}

func (k *late) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	err := k.KV.Update(ctx, fn)
	if k.answer != nil {
		k.answer()
	}
	return err
}

// A gateway that leaves answers nothing any more when others cannot see it.
func TestLeaveThenGone(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	kv := &late{KV: c.KV}
	a := besideLease(t, kv, "a", &hand{})
	kv.answer = func() {
		if list, err := look(bg, c.KV, everybody); err != nil || len(list) != 0 {
			t.Errorf("%v, %v", list, err)
		}
		if err := a.Fenced().Peek(bg, func(cluster.Reader) error { return nil }); err == nil {
			t.Error("its fence is gone, and it answers")
		}
	}
	if err := a.Leave(); err != nil {
		t.Fatal(err)
	}
}

// One that tells nothing waits until those who may answer from memory have seen that.
func TestJoinSilent(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	silent := besideLease(t, c.KV, "silent", &hand{})
	join := func() time.Duration {
		t.Helper()
		begin := time.Now()
		l, err := Join(bg, c.KV, nil, besideMember("b"), quiet)
		if err == nil {
			err = l.Leave()
		}
		if err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
	if took := join(); took > cluster.PeerWait/2 {
		t.Errorf("beside one that is told nothing it took %v", took)
	}
	told(t, c.KV, "a")
	if took := join(); took < cluster.PeerWait {
		t.Errorf("it took %v", took)
	}
	if err := silent.Leave(); err != nil {
		t.Fatal(err)
	}
}

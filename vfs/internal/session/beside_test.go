package session

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"
)

func besideMember(host string) record.Gateway {
	me := member(host)
	me.Beside, me.Serves = true, true
	return me
}

// besideLease returns the lease of a gateway beside others, which does not beat by
// itself.
func besideLease(t *testing.T, kv cluster.KV, host string, clock *hand) *Lease {
	t.Helper()
	l, err := newLease(kv, nil, besideMember(host), quiet)
	if err != nil {
		t.Fatal(err)
	}
	l.clock, l.stop = clock.now, func() {}
	l.peers.introduced.Store(true)
	if err := l.take(bg); err != nil {
		t.Fatal(err)
	}
	return l
}

// round is a beat and a look of each.
func round(t *testing.T, list ...*Lease) {
	t.Helper()
	for _, l := range list {
		if err := errors.Join(l.once(bg), l.watchPeers(bg)); err != nil {
			t.Fatal(err)
		}
	}
}

// Gateways that say so are beside one another; one that wants the store alone is not.
func TestJoinBeside(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	a, b := besideLease(t, c.KV, "a", &hand{}), besideLease(t, c.KV, "b", &hand{})
	if err := errors.Join(set(a.Fenced(), "k", "a"), set(b.Fenced(), "k", "b")); err != nil {
		t.Fatal(err)
	}
	if list, err := look(bg, c.KV, everybody); len(list) != 2 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	beating, err := Join(bg, c.KV, nil, besideMember("c"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := beating.Leave(); err != nil {
			t.Error(err)
		}
	}()
	if err := errors.Join(a.Leave(), b.Leave()); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(bg, c.KV, nil, member("alone"), quiet); !errors.Is(err, cluster.ErrInUse) || !strings.Contains(err.Error(), "uses it beside others") {
		t.Errorf("alone beside another: %v", err)
	}
}

func TestJoinBesideAlone(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	alone, err := Join(bg, c.KV, nil, member("alone"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Join(bg, c.KV, nil, besideMember("b"), quiet)
	if !errors.Is(err, cluster.ErrInUse) || !strings.Contains(err.Error(), "uses it alone") {
		t.Errorf("beside one that has it alone: %v", err)
	}
	if err := alone.Leave(); err != nil {
		t.Fatal(err)
	}
}

// One that speaks another format is not beside.
func TestJoinBesideFormat(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	a := besideLease(t, c.KV, "a", &hand{})
	b, err := newLease(c.KV, nil, besideMember("b"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	b.me.Format++
	if !a.blocks(&b.me) || !b.blocks(&a.me) {
		t.Error("they are beside one another")
	}
}

// Who stands still is put out by the others, whose beats are committed meanwhile; the
// others stay.
func TestEvict(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	clock := &hand{}
	still, a, b := besideLease(t, c.KV, "still", clock), besideLease(t, c.KV, "a", clock), besideLease(t, c.KV, "b", clock)
	round(t, still, a, b)
	for n := 1; ; n++ {
		clock.at += BeatEvery
		round(t, a, b)
		list, err := look(bg, c.KV, everybody)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 2 {
			if d := time.Duration(n) * BeatEvery; d < EvictAfter {
				t.Errorf("it is put out after %v", d)
			}
			break
		}
		if n > 10 {
			t.Fatal("it stays")
		}
	}
	if err := set(still.Fenced(), "k", "late"); !errors.Is(err, errLost) && !errors.Is(err, errLapsed) {
		t.Errorf("a late write: %v", err)
	}
	if err := still.once(bg); !errors.Is(err, errLost) {
		t.Errorf("a late beat: %v", err)
	}
	round(t, a)
	if got := len(a.Peers()); got != 2 {
		t.Errorf("%d peers", got)
	}
}

// A store that takes no writes for long, while it is read, has nobody put out: not while it
// lasts, and not after.
func TestStoreStandsStill(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	clock := &hand{}
	a, b := besideLease(t, c.KV, "a", clock), besideLease(t, c.KV, "b", clock)
	round(t, a, b)
	clock.at += 5 * EvictAfter
	round(t, a) // the first that gets through
	clock.at += BeatEvery
	round(t, a, b)
	for range 3 {
		clock.at += BeatEvery
		round(t, a, b)
	}
	if list, err := look(bg, c.KV, everybody); len(list) != 2 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// settling is a Settle under way.
func settling(l *Lease) (done <-chan Held, failed <-chan error) {
	ok, bad := make(chan Held, 1), make(chan error, 1)
	go func() {
		if held, err := l.Settle(bg); err == nil {
			ok <- held
		} else {
			bad <- err
		}
	}()
	return ok, bad
}

// Settle waits for a view of another gateway, and returns what that goes on to read.
func TestSettle(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	clock := &hand{}
	a, b := besideLease(t, c.KV, "a", clock), besideLease(t, c.KV, "b", clock)
	var pins extents.Pins
	pins.Init()
	s := New(b, nil)
	s.Pin(&pins)
	old := s.Readers.Enter()
	done, failed := settling(a)
	beats := func(n int) {
		for range n {
			round(t, a, b)
			time.Sleep(lookEvery / 2)
		}
	}
	beats(6)
	select {
	case held := <-done:
		t.Fatalf("settled while an old view runs: %v", held)
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	pins.Pin(7)
	s.Readers.Leave(old)
	newer := s.Readers.Enter() // it keeps nobody waiting
	defer s.Readers.Leave(newer)
	for settled := false; !settled; {
		beats(1)
		pins.Pin(8) // only now, as of a view that knows
		pins.Unpin(8)
		select {
		case held := <-done:
			if settled = true; len(held.Contents) != 1 || !held.Contents[7] {
				t.Errorf("held: %v", held)
			}
		case err := <-failed:
			t.Fatal(err)
		default:
		}
	}
}

// A gateway that holds more than it can name has nothing removed until it holds less.
func TestSettleHoldsTooMuch(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	a := besideLease(t, c.KV, "a", &hand{})
	var pins extents.Pins
	pins.Init()
	New(a, nil).Pin(&pins)
	for i := range maxHeld + 1 {
		pins.Pin(record.ContentID(i + 1))
	}
	done, failed := settling(a)
	for range 4 {
		round(t, a)
		time.Sleep(lookEvery / 2)
	}
	if len(done) > 0 {
		t.Fatal("settled")
	}
	pins.Unpin(1)
	for len(done) == 0 && len(failed) == 0 {
		round(t, a)
		time.Sleep(lookEvery / 4)
	}
	if held := <-done; len(held.Contents) != maxHeld {
		t.Errorf("%d held", len(held.Contents))
	}
}

// opened is an open file that nobody wrote to.
type opened struct{}

func (opened) Written() bool { return false }
func (opened) Leave()        {}

// What a gateway has open or holds is named for as long as it does, since before the
// epoch or not.
func TestSettleInodes(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	clock := &hand{}
	a, b := besideLease(t, c.KV, "a", clock), besideLease(t, c.KV, "b", clock)
	var pins extents.Pins
	pins.Init()
	s := New(b, nil)
	s.Pin(&pins)
	h := s.Open.NewHolder()
	if err := h.Hold(bg, 8, 1, h.Mark()); err != nil {
		t.Fatal(err)
	}
	for _, ino := range []record.Ino{7, 9} {
		if _, err := s.Open.Acquire(bg, ino, func() File { return opened{} }); err != nil {
			t.Fatal(err)
		}
	}
	s.Open.Release(9)
	settle := func() map[record.Ino]bool {
		done, failed := settling(a)
		for len(done) == 0 && len(failed) == 0 {
			round(t, a, b)
			time.Sleep(lookEvery / 4)
		}
		select {
		case held := <-done:
			return held.Inodes
		case err := <-failed:
			t.Fatal(err)
		}
		return nil
	}
	if held := settle(); len(held) != 2 || !held[7] || !held[8] {
		t.Errorf("in use: %v", held)
	}
	s.Open.Release(7)
	h.Release(8, 1)
	if held := settle(); len(held) != 0 {
		t.Errorf("nothing is in use: %v", held)
	}
}

// A gateway that has more in use than it can name says no epoch.
func TestInUseTooMuch(t *testing.T) {
	var tab Table
	tab.init(nil)
	h := tab.NewHolder()
	for i := range 3 {
		if err := h.Hold(bg, record.Ino(i+1), 1, h.Mark()); err != nil {
			t.Fatal(err)
		}
	}
	if list, ok := tab.InUse(3); !ok || len(list) != 3 {
		t.Errorf("%v, %v", list, ok)
	}
	if list, ok := tab.InUse(2); ok {
		t.Errorf("%v", list)
	}
}

// The first number that may be in use is that of the oldest gateway.
func TestFirst(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	number := func(n uint64) {
		if err := c.KV.Update(bg, func(t cluster.Txn) error { return record.SetCounter(t, record.CounterNumber, n) }); err != nil {
			t.Fatal(err)
		}
	}
	number(5)
	a := besideLease(t, c.KV, "a", &hand{})
	number(9)
	b := besideLease(t, c.KV, "b", &hand{})
	first := func(l *Lease) (n uint64) {
		err := c.KV.View(bg, func(r cluster.Reader) (err error) {
			n, err = l.First(r)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := first(b); n != 5 {
		t.Errorf("first is %d", n)
	}
	if err := a.Leave(); err != nil {
		t.Fatal(err)
	}
	if n := first(b); n != 9 {
		t.Errorf("after the older one left: %d", n)
	}
}

// numbers are those of a gateway that names nothing, or is about to.
type numbers struct {
	oldest  uint64
	doubts  int
	settled int
}

func (n *numbers) Oldest() uint64                { return n.oldest }
func (n *numbers) Unsettled() (uses, doubts int) { return 0, n.doubts }
func (n *numbers) Settle(k int)                  { n.doubts, n.settled = n.doubts-k, n.settled+k }

func counter(t *testing.T, kv cluster.KV, name string) (n uint64) {
	t.Helper()
	err := kv.View(bg, func(r cluster.Reader) (err error) {
		n, err = record.Counter(r, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func setCounter(t *testing.T, kv cluster.KV, name string, n uint64) {
	t.Helper()
	if err := kv.Update(bg, func(t cluster.Txn) error { return record.SetCounter(t, name, n) }); err != nil {
		t.Fatal(err)
	}
}

// What a gateway left that is put out waits until each of the others says that it names
// nothing as old, while it lives.
func TestFirstRises(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	clock := &hand{}
	setCounter(t, c.KV, record.CounterNumber, 100)
	gone, a, b := besideLease(t, c.KV, "gone", clock), besideLease(t, c.KV, "a", clock), besideLease(t, c.KV, "b", clock)
	na, nb := &numbers{oldest: 120}, &numbers{oldest: 110}
	New(a, nil).Number(na)
	New(b, nil).Number(nb)
	setCounter(t, c.KV, record.CounterNumber, 200)
	first := func() (n uint64) {
		t.Helper()
		round(t, a, b)
		round(t, a, b)
		if err := c.KV.View(bg, func(r cluster.Reader) (err error) { n, err = a.First(r); return err }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	round(t, gone)
	if n := first(); n != 100 {
		t.Errorf("first is %d, and nothing waits for it", n)
	}
	for k := 0; counter(t, c.KV, record.CounterLeft) == 0; k++ {
		if k > 10 {
			t.Fatal("it is not put out, or its leftovers are not noted")
		}
		clock.at += BeatEvery
		round(t, a, b)
	}
	if n := counter(t, c.KV, record.CounterLeft); n != 200 {
		t.Errorf("what it left is below %d", n)
	}
	if n := first(); n != 110 {
		t.Errorf("first is %d", n)
	}
	na.oldest, nb.oldest = 300, 190
	if n := first(); n != 190 {
		t.Errorf("first is %d", n)
	}
	nb.oldest = 250
	if n := first(); n < 200 {
		t.Errorf("first is %d when nobody needs anything", n)
	}
	nb.oldest = 5 // it never falls
	if n := first(); n < 200 {
		t.Errorf("first fell to %d", n)
	}
}

// A transaction whose outcome nobody knows cannot commit after the doubt is settled; those
// that come after can.
func TestDoubtSettled(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	a := besideLease(t, c.KV, "a", &hand{})
	n := &numbers{oldest: 1, doubts: 2}
	New(a, nil).Number(n)
	setCounter(t, c.KV, record.CounterNumber, 7)
	late := *a.value.Load()
	again := false
	err := a.Fenced().Update(bg, func(txn cluster.Txn) error {
		if again {
			return errLate
		}
		again = true
		if err := a.once(bg); err != nil {
			return err
		}
		return txn.Set([]byte("k"), []byte("late"))
	})
	if !errors.Is(err, errLate) {
		t.Errorf("it committed after it was settled: %v", err)
	}
	if n.doubts != 0 || n.settled != 2 {
		t.Errorf("%d doubts are left, %d settled", n.doubts, n.settled)
	}
	if string(*a.value.Load()) == string(late) {
		t.Error("the fence is as it was")
	}
	if n := counter(t, c.KV, record.CounterLeft); n != 7 {
		t.Errorf("what is left is below %d", n)
	}
	if err := errors.Join(set(a.Fenced(), "k", "v"), a.once(bg), a.watchPeers(bg), set(a.Fenced(), "k", "w"), a.Leave()); err != nil {
		t.Error(err)
	}
	if list, err := look(bg, c.KV, everybody); len(list) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

var errLate = errors.New("it runs again")

// What is left of a gateway without a fence goes when another one comes; that of those who
// are there stays.
func TestStrays(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	a := besideLease(t, c.KV, "a", &hand{})
	reads := record.Reads{First: 1}
	if err := c.KV.Update(bg, func(t cluster.Txn) error {
		return errors.Join(t.Set(record.ReadKey(7), reads.Encode()), t.Set(record.BeatKey(8), record.Beat{Number: 5}.Encode()))
	}); err != nil {
		t.Fatal(err)
	}
	b, err := Join(bg, c.KV, nil, besideMember("b"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.KV.View(bg, func(r cluster.Reader) error {
		for key, want := range map[string]bool{
			string(record.ReadKey(7)): false, string(record.BeatKey(8)): false,
			string(record.ReadKey(a.me.ID)): true, string(record.BeatKey(a.me.ID)): true,
			string(record.ReadKey(b.me.ID)): true, string(record.BeatKey(b.me.ID)): true,
		} {
			if v, err := r.Get([]byte(key)); err != nil || (v != nil) != want {
				t.Errorf("%q is there: %v, %v", key, v != nil, err)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := errors.Join(a.once(bg), b.Leave()); err != nil {
		t.Error(err)
	}
}

// Who the blobs do not answer does not lead while they answer another one.
func TestUnableToLead(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	a, b := besideLease(t, c.KV, "a", &hand{}), besideLease(t, c.KV, "b", &hand{})
	a.me.Started, b.me.Started = time.Unix(1, 0), time.Unix(2, 0)
	for _, l := range []*Lease{a, b} {
		fence, err := l.me.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.KV.Update(bg, func(t cluster.Txn) error { return t.Set(l.key, fence) }); err != nil {
			t.Fatal(err)
		}
		l.value.Store(&fence)
	}
	sa, sb := New(a, nil), New(b, nil)
	want := func(when string, leads ...*Session) {
		t.Helper()
		round(t, a, b)
		round(t, a, b)
		for name, s := range map[string]*Session{"a": sa, "b": sb} {
			if s.Leads() != slices.Contains(leads, s) {
				t.Errorf("%s: %s leads: %v", when, name, s.Leads())
			}
		}
	}
	want("at first", sa)
	sa.Answered(false)
	if sa.Leads() {
		t.Error("it knows, and still leads")
	}
	want("the blobs do not answer the oldest", sb)
	sb.Answered(false)
	want("nor the other one", sa)
	sb.Answered(true)
	want("the other one again", sb)
	sa.Answered(true)
	want("and the oldest", sa)
}

// What a gateway vouches for when it ends is there until the others put it out; what it
// began before, and what it asks for then, is not done.
func TestStay(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	clock := &hand{}
	a, b := besideLease(t, c.KV, "a", clock), besideLease(t, c.KV, "b", clock)
	a.stays.Store(true)
	if err := a.Leave(); err != nil {
		t.Fatal(err)
	}
	if err := set(a.Fenced(), "k", "a"); err == nil {
		t.Error("it goes on")
	}
	if list, err := look(bg, c.KV, everybody); len(list) != 2 || err != nil {
		t.Fatalf("%v, %v", list, err)
	}
	for range 2 * int(EvictAfter/BeatEvery) {
		round(t, b)
		clock.at += BeatEvery
	}
	if list, err := look(bg, c.KV, everybody); len(list) != 1 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

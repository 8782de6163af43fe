package coherence

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
)

// keeper is somebody who keeps what he was lent until it ends or is recalled.
type keeper struct {
	loans    *loans
	recalled [][]uint64
}

func newKeeper(h *hand) *keeper {
	k := &keeper{loans: newLoans(newTrust(h.now))}
	call := func(numbers []uint64) { k.recalled = append(k.recalled, numbers) }
	k.loans.call.Store(&call)
	return k
}

// wantRecalled has the calls since the last time been these.
func (k *keeper) wantRecalled(t *testing.T, want ...[]uint64) {
	t.Helper()
	if !slices.EqualFunc(k.recalled, want, slices.Equal) {
		t.Errorf("recalled %v, want %v", k.recalled, want)
	}
	k.recalled = nil
}

// What holds is lent for as long as it does, at the most, and is recalled before it changes.
func TestLoans(t *testing.T) {
	h := &hand{at: time.Minute}
	k := newKeeper(h)
	l, trust := k.loans, k.loans.trust
	list := linesOf([][]byte{[]byte("key"), []byte("other")})
	lent := func(s Stamp, number uint64, list []Line, want time.Duration, when string) {
		t.Helper()
		if got := l.lend(s, number, list); got != want {
			t.Errorf("%s: lent for %v, want %v", when, got, want)
		}
	}
	lent(trust.Now(), 1, list, 0, "nobody tells")
	trust.extend(h.at + time.Second)
	read := trust.Now()
	all := time.Second - cluster.AnswerTime
	lent(read, 1, list, all, "all tell")
	lent(read, 2, list[:1], all, "all tell")
	h.at += time.Second / 2
	lent(read, 1, list, all-time.Second/2, "for half a second")
	trust.extend(h.at + time.Second)
	lent(read, 3, list[1:], all, "they go on")

	at := trust.begin(list[:1])
	l.recall(list[:1])
	k.wantRecalled(t, []uint64{1, 2})
	lent(read, 1, list, 0, "it changes")
	lent(trust.Now(), 1, list, 0, "it changes")
	trust.end(list[:1], at)
	lent(read, 1, list, 0, "read before")
	lent(trust.Now(), 4, list, all, "read since")
	l.recall(list[1:])
	k.wantRecalled(t, []uint64{1, 3, 4})
	l.recall(list[1:])
	k.wantRecalled(t)

	lent(trust.Now(), 5, list, all, "again")
	l.lapse()
	k.wantRecalled(t) // they have not stopped
	h.at += time.Second
	l.recall(list)
	k.wantRecalled(t) // it has ended by itself
	lent(trust.Now(), 6, list, 0, "it is over")
	l.lapse() // whose clock stood still may have it
	k.wantRecalled(t, []uint64{1, 4, 5})
	if l.count != 0 || len(l.list) != 0 {
		t.Errorf("%d loans of %d lines are left", l.count, len(l.list))
	}
}

// There is room for so many, until some have ended.
func TestManyLoans(t *testing.T) {
	h := &hand{at: time.Minute}
	k := newKeeper(h)
	k.loans.trust.extend(h.at + time.Second)
	now := k.loans.trust.Now()
	for i := range uint64(maxLoans) {
		if k.loans.lend(now, i, []Line{Line(i % lines)}) == 0 {
			t.Fatalf("not lent after %d", i)
		}
	}
	if k.loans.lend(now, maxLoans, []Line{0}) != 0 {
		t.Error("lent beyond the bound")
	}
	h.at += sweepEvery + time.Second
	k.loans.trust.extend(h.at + time.Second)
	if k.loans.lend(k.loans.trust.Now(), 1, []Line{0}) == 0 || k.loans.count != 1 {
		t.Errorf("%d loans after all have ended", k.loans.count)
	}
}

// Who recalls what another one is recalling waits for that.
func TestRecallTwice(t *testing.T) {
	h := &hand{at: time.Minute}
	l := newLoans(newTrust(h.now))
	begun, goOn := make(chan struct{}), make(chan struct{})
	call := func([]uint64) { close(begun); <-goOn }
	l.call.Store(&call)
	l.trust.extend(h.at + time.Second)
	if l.lend(l.trust.Now(), 1, []Line{7}) == 0 {
		t.Fatal("not lent")
	}
	var over atomic.Int32
	var wg sync.WaitGroup
	wg.Go(func() { l.recall([]Line{7}); over.Add(1) })
	<-begun
	wg.Go(func() { l.recall([]Line{7}); over.Add(1) })
	time.Sleep(20 * time.Millisecond)
	if over.Load() != 0 {
		t.Error("it did not wait")
	}
	close(goOn)
	wg.Wait()
}

// Who keeps something begins when he has the answer: until the lease ends it is recalled.
func TestLoanToTheEnd(t *testing.T) {
	h := &hand{at: time.Minute}
	k := newKeeper(h)
	k.loans.trust.extend(h.at + time.Second)
	d := k.loans.lend(k.loans.trust.Now(), 1, []Line{7})
	h.at += d + cluster.AnswerTime - 1
	k.loans.recall([]Line{7})
	k.wantRecalled(t, []uint64{1})
}

// What was lent is recalled before one who has come, and cannot be reached, changes anything.
func TestLoansAndNewcomer(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	a := g.newClient(1, loopback, "")
	var recalled atomic.Int32
	a.OnRecall(func([]uint64) { recalled.Add(1) })
	g.enter(a)
	eventually(t, "alone", a.Told)
	key := []byte("key")
	eventually(t, "lent", func() bool { return a.Keep(a.Moment(), 1, key) > 0 })
	b := g.newClient(2, loopback, "127.0.0.1:1")
	g.enter(b)
	change, err := b.Announce(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if recalled.Load() == 0 {
		t.Error("it is kept while it changes")
	}
	change.Done()
}

// One who has come, and cannot be reached, is served only when what was lent is given back, whoever saw
// that it has come.
func TestNewcomerWhileRecalled(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	a := g.newClient(1, loopback, "")
	begun, introduced := make(chan struct{}), make(chan struct{})
	var early atomic.Bool
	a.OnRecall(func([]uint64) {
		close(begun)
		select { // somebody takes his time to give it back
		case <-introduced:
			early.Store(true)
		case <-time.After(2 * redialPause):
		}
	})
	g.enter(a)
	eventually(t, "lent", func() bool { return a.Keep(a.Moment(), 1, []byte("key")) > 0 })
	b := g.newClient(2, loopback, "127.0.0.1:1")
	g.register(b)
	var looks sync.WaitGroup
	looks.Go(func() { g.look(a) }) // as a beat does
	<-begun
	if err := b.Introduce(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	close(introduced)
	looks.Wait()
	if early.Load() {
		t.Error("it may change what somebody still keeps")
	}
}

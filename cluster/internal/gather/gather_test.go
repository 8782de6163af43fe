package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// calls are the batches that a test's server was sent. Each takes a second.
type calls struct {
	mu   sync.Mutex
	list [][]int
	now  int
	most int // under way
}

// batch holds numbers that have the same remainder by ten.
type batch struct {
	calls *calls
	items []int
}

func (b *batch) Add(n int) bool {
	if len(b.items) > 0 && b.items[0]%10 != n%10 {
		return false
	}
	b.items = append(b.items, n)
	return true
}

func (b *batch) Send() {
	b.calls.mu.Lock()
	b.calls.list = append(b.calls.list, b.items)
	b.calls.now++
	b.calls.most = max(b.calls.most, b.calls.now)
	b.calls.mu.Unlock()
	time.Sleep(time.Second)
	b.calls.mu.Lock()
	b.calls.now--
	b.calls.mu.Unlock()
}

func group(at int) (*Group[int], *calls) {
	c := &calls{}
	return &Group[int]{Calls: at, New: func() Batch[int] { return &batch{calls: c} }}, c
}

// arrive has each of items asked for, in their order.
func arrive(ctx context.Context, t *testing.T, g *Group[int], items ...int) *sync.WaitGroup {
	var wg sync.WaitGroup
	for _, n := range items {
		wg.Go(func() {
			if sent, err := g.Do(ctx, n); !sent || err != nil {
				t.Errorf("%d: sent %v, %v", n, sent, err)
			}
		})
		synctest.Wait()
	}
	return &wg
}

// Who finds room goes at once, those who come meanwhile go together, and who does not go
// with them is the first of the next call.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := group(1)
		begin := time.Now()
		arrive(t.Context(), t, g, 1, 11, 12, 21, 31, 22).Wait()
		want := [][]int{{1}, {11, 21, 31}, {12, 22}}
		if !slices.EqualFunc(c.list, want, slices.Equal) || time.Since(begin) != 3*time.Second {
			t.Errorf("calls %v in %v, want %v in 3s", c.list, time.Since(begin), want)
		}
		arrive(t.Context(), t, g, 5).Wait()
		if len(c.list) != 4 || c.most != 1 {
			t.Errorf("calls %v, %d at a time", c.list, c.most)
		}
	})
}

func TestGroupCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := group(2)
		arrive(t.Context(), t, g, 1, 2, 3, 4, 13, 14, 23).Wait()
		if c.most != 2 || len(c.list) != 4 {
			t.Errorf("calls %v, %d at a time", c.list, c.most)
		}
	})
}

// Who gives up before it is sent is not sent. Who is on the way has its answer, unless the
// group lets it leave.
func TestGroupGivesUp(t *testing.T) {
	for _, leave := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g, c := group(1)
			g.Leave = leave
			ctx, cancel := context.WithCancel(t.Context())
			errs := make([]error, 2)
			sent := make([]bool, 2)
			var wg sync.WaitGroup
			for i := range 2 {
				wg.Go(func() { sent[i], errs[i] = g.Do(ctx, i) })
				synctest.Wait()
			}
			other := arrive(t.Context(), t, g, 7)
			cancel()
			begin := time.Now()
			wg.Wait()
			if took := time.Since(begin); leave != (took == 0) {
				t.Errorf("who gave up waited %v", took)
			}
			other.Wait()
			if sent[1] || !errors.Is(errs[1], context.Canceled) {
				t.Errorf("who waited: sent %v, %v", sent[1], errs[1])
			}
			if !sent[0] || errors.Is(errs[0], context.Canceled) != leave {
				t.Errorf("who was on the way: sent %v, %v", sent[0], errs[0])
			}
			if sent, err := g.Do(ctx, 8); sent || !errors.Is(err, context.Canceled) {
				t.Errorf("who had given up before: sent %v, %v", sent, err)
			}
			if want := [][]int{{0}, {7}}; !slices.EqualFunc(c.list, want, slices.Equal) {
				t.Errorf("calls %v, want %v", c.list, want)
			}
		})
	}
}

// However many do not go with the first, none is passed by for ever.
func TestGroupPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := group(1)
		items := []int{0}
		for n := range 5 * maxPassed {
			items = append(items, 10*n+n%7)
		}
		arrive(t.Context(), t, g, items...).Wait()
		total := 0
		for _, list := range c.list {
			total += len(list)
		}
		if total != len(items) || len(c.list) > 40 {
			t.Errorf("%d of %d in %d calls", total, len(items), len(c.list))
		}
	})
}

func TestFootprint(t *testing.T) {
	var f Footprint
	for _, c := range []struct {
		read, set, deleted []string
		fits               bool
	}{
		{[]string{"a", "b"}, []string{"b"}, nil, true},
		{[]string{"a"}, []string{"c"}, nil, true},  // both read a
		{nil, []string{"a"}, nil, false},           // which others read
		{nil, nil, []string{"a"}, false},           // the same
		{[]string{"c"}, nil, nil, false},           // which another one writes
		{nil, []string{"c"}, nil, true},            // nobody read it
		{nil, nil, []string{"c"}, false},           // others set it
		{[]string{"d"}, []string{"d"}, nil, true},  // refused ones leave nothing
		{nil, []string{"d"}, nil, false},           // who set it has read it
		{[]string{"e", "d"}, nil, nil, false},      //
		{nil, nil, []string{"e"}, true},            //
		{nil, []string{"e"}, nil, false},           // another one deletes it
		{nil, nil, []string{"e"}, false},           // the same
		{[]string{"x"}, []string{"y"}, nil, true},  //
		{[]string{"y"}, []string{"x"}, nil, false}, // each writes what the other one reads
	} {
		if got := f.Add(c.read, c.set, c.deleted); got != c.fits {
			t.Errorf("read %v, set %v, deleted %v: %v", c.read, c.set, c.deleted, got)
		}
	}
	if !f.Shared("c") || f.Shared("b") {
		t.Errorf("shared: c %t, b %t", f.Shared("c"), f.Shared("b"))
	}
}

func TestFootprintSuperseded(t *testing.T) {
	var f Footprint
	for _, set := range [][]string{{"a", "b"}, {"a"}, {"a", "c"}, {"c"}} {
		if !f.Add(nil, set, nil) {
			t.Fatal(set)
		}
	}
	for _, c := range []struct {
		failed []int
		want   []string
	}{
		{nil, []string{"0a", "1a", "2c"}},
		{[]int{2}, []string{"0a"}},
		{[]int{0, 3}, []string{"1a"}},
		{[]int{1, 2}, nil},
	} {
		var got []string
		for member, key := range f.Superseded(func(m int) bool { return !slices.Contains(c.failed, m) }) {
			got = append(got, fmt.Sprint(member, key))
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%v failed: superseded %v, want %v", c.failed, got, c.want)
		}
	}
}

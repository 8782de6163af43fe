package coherence

import (
	"testing"
	"time"
)

// hand is a clock that is set.
type hand struct{ at time.Duration }

func (h *hand) now() time.Duration { return h.at }

// What was read holds until it is about to change, or nobody tells any more.
func TestTrust(t *testing.T) {
	h := &hand{at: time.Second}
	key := []byte("key")
	l, list := LineOf(key), linesOf([][]byte{key})
	trust := newTrust(h.now)
	holds := func(s Stamp, want bool, when string) {
		t.Helper()
		if got := trust.Holds(l, s); got != want {
			t.Errorf("%s: holds is %v", when, got)
		}
	}
	early := trust.Now()
	holds(early, false, "nobody tells")
	trust.extend(h.at + time.Second)
	holds(early, false, "read before they told")
	read := trust.Now()
	holds(read, true, "read since")
	holds(0, false, "without a stamp")
	at := trust.begin(list)
	holds(read, false, "about to change")
	during := trust.Now()
	holds(during, false, "read while it changes")
	wrote := trust.end(list, at)
	holds(read, false, "read before a change")
	holds(during, false, "read in a change")
	holds(wrote, true, "what the change wrote")
	holds(trust.Now(), true, "read after it")

	h.at += time.Second
	holds(wrote, false, "they told until now")
	trust.extend(h.at + time.Second)
	holds(wrote, false, "they did not tell for a while")
	again := trust.Now()
	h.at += time.Second / 2
	trust.extend(h.at + time.Second)
	h.at += time.Second / 2
	holds(again, true, "they went on without a gap")
	fresh := trust.Now()
	holds(fresh, true, "read since")
	trust.forget()
	holds(fresh, false, "forgotten")
	again = trust.Now()
	trust.extend(0)
	trust.extend(h.at + time.Second)
	holds(again, false, "they stopped for a moment")
}

// Of two changes at a time, neither knows what is there afterwards.
func TestTrustBoth(t *testing.T) {
	trust := newTrust((&hand{}).now)
	trust.extend(time.Second)
	list := linesOf([][]byte{[]byte("key"), []byte("other"), []byte("key")})
	if len(list) != 2 {
		t.Fatalf("lines are %v", list)
	}
	a, b := trust.begin(list), trust.begin(list[:1])
	if trust.end(list, a) != 0 || trust.end(list[:1], b) != 0 {
		t.Error("it is told what is there")
	}
	a = trust.begin(list)
	b = trust.begin(list[1:])
	if trust.end(list[1:], b) != 0 || trust.end(list, a) != 0 {
		t.Error("it is told what is there")
	}
	s := trust.end(list, trust.begin(list))
	if !trust.Holds(list[0], s) || !trust.Holds(list[1], s) {
		t.Error("it is not told after the only change")
	}
}

func TestNoTrust(t *testing.T) {
	var none *Client
	if none.Trust().Holds(0, 1) || none.Trust().Told() || none.Trust().Now() != 0 {
		t.Error("something is trusted")
	}
	change, err := none.Announce(t.Context(), []byte("key"))
	if change.Failed(false); err != nil || change.Done() != 0 {
		t.Error(err)
	}
}

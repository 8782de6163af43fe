package lock

import "testing"

func TestList(t *testing.T) {
	m := New(0)
	mustLock(t, m, 7, Range, rng(alice, Exclusive, 10, 19))
	mustLock(t, m, 7, Range, rng(bob, Shared, 0, 4))
	mustLock(t, m, 3, Flock, rng(carol, Shared, 0, 0))
	if _, waiting, err := m.LockFunc(bg, 7, Range, rng(carol, Exclusive, 0, EOF), func(error) {}); err != nil || !waiting {
		t.Fatalf("%v %v", waiting, err)
	}
	all := func(*Entry) bool { return true }
	list, more, _ := m.List(bg, 10, all)
	want := []Entry{
		{File: 3, Space: Flock, Lock: Lock{Owner: carol, End: EOF}},
		{File: 7, Lock: rng(bob, Shared, 0, 4)},
		{File: 7, Lock: rng(carol, Exclusive, 0, EOF), Waiting: true},
		{File: 7, Lock: rng(alice, Exclusive, 10, 19)},
	}
	if len(list) != len(want) || more {
		t.Fatalf("%+v %v", list, more)
	}
	for i := range want {
		if list[i] != want[i] {
			t.Errorf("%d: %+v, want %+v", i, list[i], want[i])
		}
	}
	if list, more, _ := m.List(bg, 2, all); len(list) != 2 || !more {
		t.Errorf("at most two: %+v %v", list, more)
	}
	if list, more, _ := m.List(bg, 2, func(e *Entry) bool { return e.Lock.Owner.Client == carol.Client }); len(list) != 2 || more {
		t.Errorf("of one client: %+v %v", list, more)
	}
}

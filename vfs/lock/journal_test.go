package lock

import (
	"slices"
	"testing"
)

// What the journal was given last is what the client holds, and a Manager that
// takes it up again refuses what the first one did.
func TestJournal(t *testing.T) {
	type key struct {
		ino   uint64
		space Space
	}
	book := map[key][]Lock{}
	m := New(0)
	m.SetJournal("a", func(ino uint64, s Space, held []Lock) { book[key{ino, s}] = held })
	own, other := Owner{"a", "1"}, Owner{"b", "1"}
	lock := func(ino uint64, s Space, l Lock) {
		t.Helper()
		if err := m.TryLock(bg, ino, s, l); err != nil {
			t.Fatal(err)
		}
	}
	lock(7, Range, Lock{Owner: other, Type: Shared, Start: 0, End: 100})
	lock(7, Range, Lock{Owner: own, Type: Shared, Start: 10, End: 40})
	if err := m.Unlock(bg, 7, Range, Lock{Owner: own, Start: 20, End: 29}); err != nil {
		t.Fatal(err)
	}
	lock(8, Flock, Lock{Owner: own, Type: Exclusive})
	want := []Lock{{Owner: own, Start: 10, End: 19}, {Owner: own, Start: 30, End: 40}}
	if got := book[key{7, Range}]; !slices.Equal(got, want) {
		t.Fatalf("%+v", got)
	}

	next := New(0)
	for k, list := range book {
		for _, l := range list {
			if err := next.Reclaim(bg, k.ino, k.space, l); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := next.TryLock(bg, 8, Flock, Lock{Owner: other, Type: Shared}); err == nil {
		t.Fatal("the lock is lost")
	}

	// One that waited is notified of when it is granted.
	granted := make(chan error, 1)
	if _, waiting, err := m.LockFunc(bg, 7, Range, Lock{Owner: own, Type: Exclusive, Start: 0, End: 5}, func(err error) { granted <- err }); !waiting || err != nil {
		t.Fatal(waiting, err)
	}
	m.ReleaseClient("b")
	if err := <-granted; err != nil || len(book[key{7, Range}]) != 3 {
		t.Fatalf("%v: %+v", err, book[key{7, Range}])
	}
	m.ReleaseClient("a")
	for k, list := range book {
		if len(list) > 0 {
			t.Errorf("%+v: %+v", k, list)
		}
	}
	m.SetJournal("a", nil)
	lock(9, Flock, Lock{Owner: own})
	if _, told := book[key{9, Flock}]; told {
		t.Error("told after its end")
	}
}

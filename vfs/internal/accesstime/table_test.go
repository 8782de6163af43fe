package accesstime

import "testing"

func TestDue(t *testing.T) {
	for _, c := range []struct {
		access, modified, changed, now int64
		want                           bool
	}{
		{10, 9, 8, 11, false}, {10, 10, 8, 11, true}, {10, 8, 10, 11, true}, {10, 11, 9, 12, true},
		{-5, -9, -8, 0, false}, {10, 9, 8, 9 + day, false}, {10, 9, 8, 10 + day, true},
	} {
		if got := Due(c.access, c.modified, c.changed, c.now); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestTable(t *testing.T) {
	var table Table
	want := func(stored, read int64, known bool) {
		t.Helper()
		if got, ok := table.Get(7, stored); ok != known || ok && got != read {
			t.Errorf("%d, %v; want %d, %v", got, ok, read, known)
		}
	}
	want(1, 0, false)
	table.Note(7, 1, 5)
	want(1, 5, true)
	want(2, 0, false) // somebody set the stored time
	table.Note(7, 5, 6)
	want(1, 6, true)
	table.Done(Entry{7, 1, 5}) // not the last read
	want(1, 6, true)
	list := table.Entries()
	if len(list) != 1 || list[0] != (Entry{7, 1, 6}) {
		t.Fatalf("%+v", list)
	}
	table.Done(list[0])
	want(1, 0, false)
	table.Note(7, 3, 4)
	table.Forget(7)
	want(3, 0, false)
}

// Of two who read at once, the first one's time stays: what a third was shown is
// what he finds, and his is kept for the record that there is.
func TestReadersAtOnce(t *testing.T) {
	var table Table
	table.Note(7, 1, 5)
	table.Note(7, 1, 4)
	if got, ok := table.Get(7, 1); got != 5 || !ok {
		t.Errorf("%d, %v; want 5", got, ok)
	}
	table.Note(7, 5, 9)
	if got, ok := table.Get(7, 1); got != 9 || !ok {
		t.Errorf("%d, %v; want 9", got, ok)
	}
}

func TestRoom(t *testing.T) {
	var table Table
	for i := range uint64(Max) {
		if !table.Note(i, 0, 1) {
			t.Fatalf("no room for %d", i)
		}
	}
	if table.Note(Max, 0, 1) || !table.Note(5, 1, 2) || !table.Crowded() {
		t.Error("a full table")
	}
	for _, e := range table.Entries() {
		table.Done(e)
	}
	if table.Crowded() || !table.Note(Max, 0, 1) {
		t.Error("an empty table")
	}
}

package ledger

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reopen is what the next server sees.
func reopen(t *testing.T, l *Ledger) *Ledger {
	t.Helper()
	fd, err := unix.FcntlInt(uintptr(l.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	next, err := Open(fd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = next.Close() })
	return next
}

func fresh(t *testing.T) *Ledger {
	t.Helper()
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestInit(t *testing.T) {
	l := fresh(t)
	if in, _ := reopen(t, l).Init(); in != nil {
		t.Fatal("INIT before there was one")
	}
	if err := l.SetInit([]byte("in"), []byte("out")); err != nil {
		t.Fatal(err)
	}
	l.SetClean(true)
	n := reopen(t, l)
	if in, out := n.Init(); string(in) != "in" || string(out) != "out" || !n.Clean() || n.Mount() != l.Mount() {
		t.Fatalf("%q %q %v", in, out, n.Clean())
	}
}

func TestForeignMemory(t *testing.T) {
	fd, err := unix.MemfdCreate("x", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := Open(fd); !errors.Is(err, ErrFormat) {
		t.Fatal(err)
	}
	_, _, _, _, _, _, end := regions()
	if err := unix.Ftruncate(fd, int64(end)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(fd); !errors.Is(err, ErrFormat) {
		t.Fatal(err)
	}
}

// A handle that was closed and whose slot is used again has another number.
func TestHandles(t *testing.T) {
	l := fresh(t)
	a, err := l.Files.Add(7, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	l.Files.Remove(a)
	b, err := l.Files.Add(8, 2, 4)
	if err != nil || a == b || uint32(a) != uint32(b) {
		t.Fatalf("%x, %x, %v", a, b, err)
	}
	l.Files.Remove(a) // again, as a RELEASE that is sent again does
	l.Files.Remove(0)
	l.Files.Remove(1 << 40)
	n := reopen(t, l)
	seen := 0
	n.Files.Each(func(fh, ino, flags, unique uint64) {
		seen++
		if fh != b || ino != 8 || flags != 2 || unique != 4 {
			t.Errorf("%x %d %d", fh, ino, flags)
		}
	})
	if seen != 1 {
		t.Fatalf("%d handles", seen)
	}
	if c, err := n.Files.Add(9, 0, 6); err != nil || uint32(c) == uint32(b) {
		t.Fatalf("%x is in use, %v", c, err)
	}
}

func TestFull(t *testing.T) {
	l := fresh(t)
	for range MaxDirs {
		if _, err := l.Dirs.Add(1, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Dirs.Add(1, 0, 0); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
}

func TestLocks(t *testing.T) {
	l := fresh(t)
	set := func(ino uint64, space uint8, locks ...Lock) {
		t.Helper()
		if err := l.Locks.Set(ino, space, locks); err != nil {
			t.Fatal(err)
		}
	}
	a, b := Lock{Owner: 1, Start: 0, End: 9, Exclusive: true}, Lock{Owner: 2, Start: 10, End: 19, PID: 3}
	set(7, 0, a, b)
	set(7, 1, a)
	set(8, 0, b)
	set(7, 0, b, Lock{Owner: 1, Start: 0, End: 4})
	set(8, 0)
	if err := l.Owners.Add(5, 1, 77); err != nil {
		t.Fatal(err)
	}
	if err := l.Owners.Add(6, 0, 78); err != nil {
		t.Fatal(err)
	}
	n := reopen(t, l)
	var got []Lock
	n.Locks.Each(func(ino uint64, space uint8, lock Lock) {
		if ino == 7 && space == 0 {
			got = append(got, lock)
		} else if ino != 7 || space != 1 || lock != a {
			t.Errorf("%d %d %+v", ino, space, lock)
		}
	})
	slices.SortFunc(got, func(x, y Lock) int { return int(x.Start) - int(y.Start) })
	if !slices.Equal(got, []Lock{{Owner: 1, Start: 0, End: 4}, b}) {
		t.Fatalf("%+v", got)
	}
	n.Owners.Remove(5, 1, 77)
	n.Owners.Remove(5, 1, 77)
	n.Owners.Each(func(fh uint64, space uint8, owner uint64) {
		if fh != 6 || space != 0 || owner != 78 {
			t.Errorf("%d %d %d", fh, space, owner)
		}
	})
}

func TestWrites(t *testing.T) {
	l := fresh(t)
	l.Writes.Done(42, 5)
	n := reopen(t, l)
	if length, done := n.Writes.Find(42); !done || length != 5 {
		t.Fatal(length, done)
	}
	if _, done := n.Writes.Find(44); done {
		t.Fatal("another request")
	}
	if _, done := n.Writes.Find(0); done {
		t.Fatal("no request")
	}
}

// What is not answered keeps its place, and what the journal still has takes that of nothing
// later.
func TestWritesKeepTheirPlace(t *testing.T) {
	const unique, round = 1000, 2 * writeSlots // requests of one place
	found := func(w *Writes, want ...uint64) {
		t.Helper()
		for _, u := range want {
			if length, done := w.Find(u); !done || length != int(u) {
				t.Errorf("request %d: %d, %v", u, length, done)
			}
		}
	}
	l := fresh(t)
	w := l.Writes
	w.Begin(unique)
	w.Done(unique, unique)
	for u := uint64(unique + 2); u < unique+2*round; u += 2 {
		w.Done(u, int(u))
	}
	found(w, unique, unique+2*round-2)
	n := reopen(t, l)
	found(n.Writes, unique)
	w.End(unique)
	w.Done(unique+2*round, unique+2*round)
	found(w, unique+2*round)
	if _, done := w.Find(unique); done {
		t.Error("an answered request keeps its place")
	}
	w.Again(unique+round, unique+round) // it was overwritten
	found(w, unique+2*round)
	w.Again(unique+3*round, unique+3*round) // the server was killed before it was recorded
	found(w, unique+3*round)
	for i := range uint64(writeProbes + 1) { // more than there is room for
		w.Begin(unique + 4*round + i*round)
		w.Done(unique+4*round+i*round, 1)
	}
}

// What the journal has is what was kept and not stored, in order, however often
// the ring went round.
func TestJournal(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	l := fresh(t)
	var live []Write
	ctx := context.Background()
	store := func(_ context.Context, ino uint64) error {
		seq := uint64(0)
		live = slices.DeleteFunc(live, func(w Write) bool {
			if w.Ino == ino {
				seq = w.Seq
			}
			return w.Ino == ino
		})
		l.Journal.Stored(ino, seq)
		if _, ok := l.Journal.Oldest(ino); ok {
			t.Error("there is an oldest of what is stored")
		}
		return nil
	}
	for i := range 400 {
		data := make([]byte, rnd.IntN(1<<20))
		for k := 0; k < len(data); k += 1000 {
			data[k] = byte(i + k)
		}
		w := Write{Ino: rnd.Uint64N(5), Epoch: rnd.Uint64(), Off: rnd.Int64N(1 << 40), Data: data, Unique: uint64(i), KillPriv: i%2 == 0, Seq: uint64(i)}
		if err := l.Journal.Reserve(ctx, len(data), store); err != nil {
			t.Fatal(err)
		}
		if err := l.Journal.Keep(&w); err != nil {
			t.Fatal(err)
		}
		live = append(live, w)
		if last := l.Journal.Last(); last != uint64(i) {
			t.Fatalf("the last is %d, want %d", last, i)
		}
		l.Journal.Unreserve(len(data))
		if rnd.IntN(6) == 0 {
			if err := store(ctx, rnd.Uint64N(5)); err != nil {
				t.Fatal(err)
			}
		}
		if i%40 != 0 {
			continue
		}
		k := 0
		reopen(t, l).Journal.Each(func(w *Write) {
			want := live[k]
			k++
			if w.Ino != want.Ino || w.Epoch != want.Epoch || w.Off != want.Off || w.Seq != want.Seq ||
				w.Unique != want.Unique || w.KillPriv != want.KillPriv || !bytes.Equal(w.Data, want.Data) {
				t.Fatalf("write %d is another", k)
			}
		})
		if k != len(live) {
			t.Fatalf("%d writes of %d", k, len(live))
		}
	}
}

// Who finds no room and cannot store waits until he may not any more.
func TestJournalFull(t *testing.T) {
	l := fresh(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	data := make([]byte, 1<<20)
	none := func(context.Context, uint64) error { return nil }
	failure := errors.New("no")
	for {
		err := l.Journal.Reserve(ctx, len(data), none)
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			break
		}
		if err := l.Journal.Keep(&Write{Ino: 1, Data: data}); err != nil {
			t.Fatal(err)
		}
		l.Journal.Unreserve(len(data))
	}
	err := l.Journal.Reserve(context.Background(), len(data), func(context.Context, uint64) error { return failure })
	if !errors.Is(err, failure) {
		t.Fatal(err)
	}
}

// Who did not ask for room overwrites nothing.
func TestJournalOverfull(t *testing.T) {
	l := fresh(t)
	data := make([]byte, 3<<20)
	kept := 0
	for ; ; kept++ {
		err := l.Journal.Keep(&Write{Ino: 1, Off: int64(kept), Data: data})
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil || kept > JournalBytes/len(data) {
			t.Fatal(kept, err)
		}
	}
	found := 0
	reopen(t, l).Journal.Each(func(w *Write) {
		if w.Off != int64(found) || len(w.Data) != len(data) {
			t.Errorf("write %d is another", found)
		}
		found++
	})
	if found != kept {
		t.Errorf("%d writes of %d", found, kept)
	}
}

// What is known of listings is there for the next server, within the header, and of the
// longest unused goes first what ended.
func TestListings(t *testing.T) {
	if n := unsafe.Sizeof(header{}); n > headerBytes {
		t.Fatalf("the header has %d bytes", n)
	}
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	began := func(pass uint64) bool { // of l
		ctime, known := l.Listings.Began(Listing{7, 0, pass})
		return known && ctime == int64(pass)
	}
	for i := range uint64(listingSlots) {
		l.Listings.Begin(Listing{7, 0, i}, int64(i))
	}
	l.Listings.Begin(Listing{7, 0, 3}, 99) // is there
	l.Listings.GoOn(Listing{7, 0, 0})
	l.Listings.End(Listing{7, 0, 5})
	l.Listings.Begin(Listing{7, 0, 100}, 100)
	l.Listings.Begin(Listing{7, 0, 101}, 101)
	for pass, want := range map[uint64]bool{0: true, 1: false, 2: true, 3: true, 5: false, 6: true, 100: true, 101: true} {
		if began(pass) != want {
			t.Errorf("%d is known: %v", pass, !want)
		}
	}
	if _, known := l.Listings.Began(Listing{7, 1, 100}); known {
		t.Error("that of another handle is known")
	}
	l = reopen(t, l)
	if !began(100) || began(1) {
		t.Error("the next server knows others")
	}
	l.Listings.End(Listing{7, 0, 6})
	l.Listings.Begin(Listing{7, 0, 102}, 102)
	if !began(0) || !began(102) || began(6) {
		t.Error("at the next server, one goes that did not end")
	}
}

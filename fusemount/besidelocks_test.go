package fusemount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/cluster/mem"
	"ogw/fusemount/ledger"
	"ogw/vfs"
	"ogw/vfs/billyfs"
	"ogw/vfs/lock"
)

// locking is one way of programs to lock a file.
type locking struct {
	name string
	try  func(f *os.File, typ int16) error // at once; unix.F_UNLCK gives up
	wait func(f *os.File) error            // exclusive
	own  bool                              // it is of the open file, and ends with it alone
}

var lockings = []locking{
	{"flock", func(f *os.File, typ int16) error {
		return unix.Flock(int(f.Fd()), map[int16]int{unix.F_RDLCK: unix.LOCK_SH, unix.F_WRLCK: unix.LOCK_EX, unix.F_UNLCK: unix.LOCK_UN}[typ]|unix.LOCK_NB)
	}, func(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }, true},
	{"fcntl", func(f *os.File, typ int16) error {
		return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: typ})
	}, func(f *os.File) error {
		return unix.FcntlFlock(f.Fd(), unix.F_SETLKW, &unix.Flock_t{Type: unix.F_WRLCK})
	}, false},
	{"ofd", func(f *os.File, typ int16) error {
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: typ})
	}, func(f *os.File) error {
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLKW, &unix.Flock_t{Type: unix.F_WRLCK})
	}, true},
}

// What a program locks through the mount of one gateway, one of the other's mount finds
// locked, and gets as soon as it is given up, or the file is closed.
func TestBesideLocks(t *testing.T) {
	onBeside(t, func(t *testing.T, a, b *gateway) {
		for _, l := range lockings {
			t.Run(l.name, func(t *testing.T) {
				write(t, a.path(l.name), "")
				fa, fb := opened(t, a.path(l.name), os.O_RDWR), opened(t, b.path(l.name), os.O_RDWR)
				must(t, l.try(fa, unix.F_RDLCK))
				must(t, l.try(fb, unix.F_RDLCK))
				if err := l.try(fb, unix.F_WRLCK); !errors.Is(err, unix.EAGAIN) {
					t.Fatalf("over a reader: %v", err)
				}
				must(t, errors.Join(l.try(fb, unix.F_UNLCK), l.try(fa, unix.F_WRLCK)))
				if err := l.try(fb, unix.F_RDLCK); !errors.Is(err, unix.EAGAIN) {
					t.Fatalf("over a writer: %v", err)
				}
				got := make(chan error, 1)
				go func() { got <- l.wait(fb) }()
				select {
				case err := <-got:
					t.Fatalf("it has what the other one has, %v", err)
				case <-time.After(100 * time.Millisecond):
				}
				must(t, l.try(fa, unix.F_UNLCK))
				must(t, <-got)
				for range 20 { // who sees the close, sees the end of the lock
					must(t, fb.Close())
					if err := l.try(fa, unix.F_WRLCK); err != nil {
						t.Fatalf("right after the close: %v", err)
					}
					must(t, l.try(fa, unix.F_UNLCK))
					fb = opened(t, b.path(l.name), os.O_RDWR)
					must(t, l.try(fb, unix.F_WRLCK))
				}
			})
		}
		f, other := opened(t, a.path("fcntl"), os.O_RDWR), opened(t, b.path("fcntl"), os.O_RDWR)
		must(t, lockings[1].wait(other))
		held := unix.Flock_t{Type: unix.F_WRLCK}
		if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &held); err != nil || held.Type != unix.F_WRLCK || held.Pid != 0 {
			t.Errorf("the test of a lock: %+v, %v", held, err)
		}
	})
}

// What a program wrote before it gave up a lock, or what was exclusive of it, the next one reads, at
// the other gateway, and loses nothing of its own to it later; whichever descriptor it wrote through,
// though that stays open.
func TestBesideLocksStore(t *testing.T) {
	onBeside(t, func(t *testing.T, a, b *gateway) {
		for _, l := range lockings {
			for _, how := range []string{"unlock", "shared", "close"} {
				t.Run(l.name+" "+how, func(t *testing.T) {
					name := l.name + how
					write(t, a.path(name), "0")
					fa, fb := opened(t, a.path(name), os.O_RDWR), opened(t, b.path(name), os.O_RDWR)
					locked, other := fa, opened(t, a.path(name), os.O_RDONLY)
					if l.own && how == "close" {
						locked, other = opened(t, a.path(name), os.O_RDWR), nil
					}
					must(t, l.wait(locked))
					_, err := fa.WriteAt([]byte("1"), 0)
					must(t, err)
					typ := int16(unix.F_WRLCK)
					switch {
					case how == "unlock":
						must(t, l.try(locked, unix.F_UNLCK))
					case how == "shared":
						must(t, l.try(locked, unix.F_RDLCK))
						typ = unix.F_RDLCK
					case l.own:
						must(t, locked.Close())
					default: // of any descriptor ends all that the process has locked
						must(t, other.Close())
					}
					must(t, l.try(fb, typ))
					wantOpen(t, fb, "1")
					if how == "shared" {
						must(t, errors.Join(l.try(locked, unix.F_UNLCK), l.try(fb, unix.F_WRLCK)))
					}
					_, err = fb.WriteAt([]byte("7"), 0)
					must(t, errors.Join(err, fb.Sync(), l.try(fb, unix.F_UNLCK), a.fs.SyncAll(bg)))
					wantText(t, a.path(name), "7")
					wantText(t, b.path(name), "7")
				})
			}
		}
	})
}

// full stores nothing of what programs wrote before they unlock.
type full struct{ opener }

func (full) Flush(context.Context, vfs.Ino) error { return vfs.ErrNoSpace }

// A lock is given up also if what was written under it cannot be stored, which the program is told;
// what it asks for instead of an exclusive one, it does not get.
func TestBesideLocksUnstored(t *testing.T) {
	c := mem.New(mem.Options{})
	t.Cleanup(func() { must(t, c.Close()) })
	other := openBeside(t, c)
	s, end := liveOver(t, openBeside(t, c), nil)
	defer end()
	_, file, _, err := s.fs.Create(bg, vfs.Root, s.bucket, "f", vfs.CreateOptions{Mode: 0o644})
	must(t, errors.Join(err, file.Close(bg)))
	s.file, s.rawFS.fs.opener = file.Ino(), full{s.fs}
	fh := s.openAs(t, 2, unix.O_RDWR)
	set := func(typ uint32) fuse.Status {
		return s.SetLk(nil, &fuse.LkIn{InHeader: header(4, s.file), Fh: fh, Owner: 7, Lk: fuse.FileLock{End: lock.EOF, Typ: typ}})
	}
	for name, release := range map[string]func() fuse.Status{
		"unlock": func() fuse.Status { return set(unix.F_UNLCK) },
		"close": func() fuse.Status {
			return s.Flush(nil, &fuse.FlushIn{InHeader: header(6, s.file), Fh: fh, LockOwner: 7})
		},
	} {
		if st := set(unix.F_WRLCK); !st.Ok() {
			t.Fatal(st)
		}
		l := lock.Lock{Owner: lock.Owner{Client: "other", ID: "1"}, End: lock.EOF}
		if st := set(unix.F_RDLCK); st != fuse.Status(unix.ENOSPC) {
			t.Errorf("%s: a shared lock instead: %v", name, st)
		} else if err := other.Locks().TryLock(bg, uint64(s.file), lock.Range, l); !errors.Is(err, lock.ErrWouldBlock) {
			t.Errorf("%s: the exclusive lock has ended: %v", name, err)
		}
		if st := release(); st != fuse.Status(unix.ENOSPC) {
			t.Errorf("%s: %v", name, st)
		}
		must(t, other.Locks().TryLock(bg, uint64(s.file), lock.Range, l))
		other.Locks().ReleaseClient("other")
	}
}

// Programs at both gateways that count under a lock lose nothing.
func TestBesideLocksCount(t *testing.T) {
	onBeside(t, func(t *testing.T, a, b *gateway) {
		const rounds, each = 10, 3
		for _, l := range lockings {
			if !l.own {
				continue // all of these are of one process
			}
			write(t, a.path("count"), "0")
			write(t, a.path("lock"), "")
			var holders atomic.Int32
			var wg sync.WaitGroup
			for i := range 2 * each {
				g := []*gateway{a, b}[i%2]
				wg.Go(func() {
					for range rounds {
						if err := count(l, g, &holders); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			wantText(t, a.path("count"), strconv.Itoa(2*each*rounds))
		}
	})
}

// count counts under a lock; holders are those that have it.
func count(l locking, g *gateway, holders *atomic.Int32) error {
	f, err := os.OpenFile(g.path("lock"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := l.wait(f); err != nil {
		return err
	}
	defer holders.Add(-1)
	if n := holders.Add(1); n != 1 {
		return fmt.Errorf("%s: %d have the lock", l.name, n)
	}
	text, err := os.ReadFile(g.path("count"))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	return os.WriteFile(g.path("count"), []byte(strconv.Itoa(n+1)), 0o644)
}

// Processes that wait for one another at two gateways do not wait for ever, and one that is
// killed where it waits holds up nobody.
func TestBesideLocksProcesses(t *testing.T) {
	a, b := twoGateways(t, mem.Options{}, Options{Transport: TransportDevice})
	write(t, a.path("file"), "")
	f := opened(t, a.path("file"), os.O_RDWR)
	must(t, lockings[0].wait(f))
	waiter := exec.Command("flock", b.path("file"), "true")
	must(t, waiter.Start())
	waitLocks(t, a, 2)
	must(t, waiter.Process.Kill())
	_ = waiter.Wait() // it was killed
	waitLocks(t, a, 1)
	next := exec.Command("flock", b.path("file"), "true")
	must(t, next.Start())
	waitLocks(t, a, 2)
	must(t, errors.Join(f.Close(), next.Wait()))
	waitLocks(t, a, 0)
}

// waitLocks waits until so many are held or waited for.
func waitLocks(t *testing.T, g *gateway, n int) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		list, _, err := g.fs.Locks().List(bg, 100, func(*lock.Entry) bool { return true })
		if must(t, err); len(list) == n {
			return
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("%d locks, want %d: %+v", len(list), n, list)
		}
	}
}

// Locks of the Go API are those of the mounts.
func TestBesideLocksGo(t *testing.T) {
	a, b := twoGateways(t, mem.Options{}, Options{Transport: TransportDevice})
	write(t, a.path("file"), "")
	fa := opened(t, a.path("file"), os.O_RDWR)
	view, err := billyfs.New(bg, b.fs, vfs.Root, "/bucket")
	must(t, err)
	fb, err := view.OpenFile("file", os.O_RDWR, 0)
	must(t, errors.Join(err, fb.Lock()))
	if err := lockings[0].try(fa, unix.F_WRLCK); !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	must(t, fb.Close())
	must(t, lockings[0].try(fa, unix.F_WRLCK))
}

// The next server of a mount that survives has its locks, whether the one before has left in
// order by then or not; nobody gets them in between, nor when the one before is put out.
func TestBesideLocksSurvive(t *testing.T) {
	for _, out := range []bool{false, true} {
		t.Run(fmt.Sprint("left: ", out), func(t *testing.T) {
			c := mem.New(mem.Options{})
			t.Cleanup(func() { must(t, c.Close()) })
			book, err := ledger.New()
			must(t, err)
			t.Cleanup(func() { must(t, book.Close()) })
			other := openBeside(t, c)
			joined, fs := joinBeside(t, c)
			first, end := liveOver(t, fs, book)
			_, file, _, err := first.fs.Create(bg, vfs.Root, first.bucket, "f", vfs.CreateOptions{Mode: 0o644})
			must(t, errors.Join(err, file.Close(bg)))
			first.file = file.Ino()
			var open fuse.OpenOut
			if st := first.Open(nil, &fuse.OpenIn{InHeader: header(2, first.file), Flags: unix.O_RDWR}, &open); !st.Ok() {
				t.Fatal(st)
			}
			ask := func(s *serverLife, owner uint64, space uint32, typ uint32) fuse.Status {
				return s.SetLk(nil, &fuse.LkIn{InHeader: header(4, s.file), Fh: open.Fh, Owner: owner, LkFlags: space,
					Lk: fuse.FileLock{Start: owner * 10, End: owner*10 + 9, Typ: typ}})
			}
			for owner := range uint64(3) {
				if st := ask(first, owner, 0, unix.F_WRLCK); !st.Ok() {
					t.Fatal(st)
				}
			}
			if st := ask(first, 7, fuse.LK_FLOCK, unix.F_WRLCK); !st.Ok() {
				t.Fatal(st)
			}
			end()
			if out {
				must(t, errors.Join(fs.Close(bg), joined.Close()))
				whole := lock.Lock{Owner: lock.Owner{Client: "other", ID: "1"}, Type: lock.Exclusive, End: lock.EOF}
				if err := other.Locks().TryLock(bg, uint64(first.file), lock.Flock, whole); !errors.Is(err, lock.ErrWouldBlock) {
					t.Errorf("flock, between two servers: %v", err)
				}
			}
			next, end := liveOver(t, openBeside(t, c), book)
			defer end()
			whole := lock.Lock{Owner: lock.Owner{Client: "other", ID: "1"}, Type: lock.Exclusive, End: lock.EOF}
			for owner := range uint64(3) {
				l := whole
				l.Start, l.End = owner*10, owner*10+9
				if err := other.Locks().TryLock(bg, uint64(next.file), lock.Range, l); !errors.Is(err, lock.ErrWouldBlock) {
					t.Errorf("range %d: %v", owner, err)
				}
			}
			if err := other.Locks().TryLock(bg, uint64(next.file), lock.Flock, whole); !errors.Is(err, lock.ErrWouldBlock) {
				t.Errorf("flock: %v", err)
			}
			if !out { // what the next one has is its own by now
				must(t, errors.Join(fs.Close(bg), joined.Close()))
				if err := other.Locks().TryLock(bg, uint64(next.file), lock.Flock, whole); !errors.Is(err, lock.ErrWouldBlock) {
					t.Errorf("flock, when the server before is gone: %v", err)
				}
			}
			next.Flush(nil, &fuse.FlushIn{InHeader: header(6, next.file), Fh: open.Fh, LockOwner: 0})
			next.Release(nil, &fuse.ReleaseIn{InHeader: header(8, next.file), Fh: open.Fh})
			must(t, other.Locks().TryLock(bg, uint64(next.file), lock.Flock, whole))
			must(t, other.Locks().TryLock(bg, uint64(next.file), lock.Range, whole))
		})
	}
}

// The kernel gives the name of an open file to the next one before the RELEASE of the first is
// done: that ends nothing of what the next one locked.
func TestOwnerNamedAgain(t *testing.T) {
	c := mem.New(mem.Options{})
	t.Cleanup(func() { must(t, c.Close()) })
	book, err := ledger.New()
	must(t, err)
	t.Cleanup(func() { must(t, book.Close()) })
	other := openBeside(t, c)
	s, end := liveOver(t, openBeside(t, c), book)
	defer end()
	_, file, _, err := s.fs.Create(bg, vfs.Root, s.bucket, "f", vfs.CreateOptions{Mode: 0o644})
	must(t, errors.Join(err, file.Close(bg)))
	s.file = file.Ino()
	for space, flags := range map[lock.Space]uint32{lock.Range: 0, lock.Flock: fuse.LK_FLOCK} {
		locked := func() uint64 {
			t.Helper()
			var out fuse.OpenOut
			if st := s.Open(nil, &fuse.OpenIn{InHeader: header(2, s.file), Flags: unix.O_RDWR}, &out); !st.Ok() {
				t.Fatal(st)
			}
			if st := s.SetLk(nil, &fuse.LkIn{InHeader: header(4, s.file), Fh: out.Fh, Owner: 7, LkFlags: flags, Lk: fuse.FileLock{End: lock.EOF, Typ: unix.F_WRLCK}}); !st.Ok() {
				t.Fatal(st)
			}
			return out.Fh
		}
		first := locked()
		second := locked()
		s.Release(nil, &fuse.ReleaseIn{InHeader: header(6, s.file), Fh: first})
		l := lock.Lock{Owner: lock.Owner{Client: "other", ID: "1"}, Type: lock.Exclusive, End: lock.EOF}
		if err := other.Locks().TryLock(bg, uint64(s.file), space, l); !errors.Is(err, lock.ErrWouldBlock) {
			t.Errorf("space %d: %v", space, err)
		}
		s.Release(nil, &fuse.ReleaseIn{InHeader: header(8, s.file), Fh: second})
		must(t, other.Locks().TryLock(bg, uint64(s.file), space, l))
	}
	left := 0
	book.Owners.Each(func(uint64, uint8, uint64) { left++ })
	if left+len(s.lockers.last)+len(s.lockers.ending) != 0 {
		t.Errorf("%d owners are left in the ledger, %d, %d", left, len(s.lockers.last), len(s.lockers.ending))
	}
}

// F_GETLK tells the process of a lock of this machine alone: the kernel takes any number for
// that of a process here.
func TestHolderOfOtherMachine(t *testing.T) {
	k := begin(t, "text")
	other := &connection{set: k.conn.(*connection).set, raw: newRawFS(bg, k.rawFS.fs, Options{Logger: testLogger(t)}.withDefaults(true))}
	other.raw.conn = other
	defer other.raw.holds.Close()
	set := k.conn.(*connection).set
	set.list = append(set.list, k.conn.(*connection), other)
	for client, want := range map[string]uint32{k.client: 7, other.raw.client: 7, "nfs/192.0.2.1": 0} {
		l := lock.Lock{Owner: lock.Owner{Client: client, ID: k.owner(2).ID}, Type: lock.Exclusive, End: lock.EOF, PID: 7}
		must(t, k.fs.Locks().Lock(bg, uint64(k.file), lock.Range, l))
		var out fuse.LkOut
		in := &fuse.LkIn{InHeader: header(2, k.file), Owner: 1, Lk: fuse.FileLock{End: lock.EOF, Typ: unix.F_WRLCK}}
		if st := k.GetLk(nil, in, &out); !st.Ok() || out.Lk.Typ != unix.F_WRLCK || out.Lk.Pid != want {
			t.Errorf("of %s: %v, %+v, want process %d", client, st, out.Lk, want)
		}
		k.fs.Locks().ReleaseClient(client)
	}
}

package fusemount

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// listed is a directory of a mount, and how often the kernel asked for its names.
type listed struct {
	t     *testing.T
	fs    *vfs.FS
	dir   string
	ino   vfs.Ino
	reads atomic.Int64
}

func newListed(t *testing.T, over Transport, life time.Duration, names int) *listed {
	t.Helper()
	l := &listed{t: t, fs: openFS(t)}
	top, _ := mountFS(t, l.fs, Options{Transport: over, EntryTimeout: life, Observe: func(op string, _ time.Duration, _ syscall.Errno) {
		if op == "readdir" || op == "readdirplus" {
			l.reads.Add(1)
		}
	}})
	l.dir = filepath.Join(top, "bucket")
	must(t, os.Mkdir(l.dir, 0o777))
	for i := range names {
		l.put(fmt.Sprintf("n%05d", i))
	}
	var st unix.Stat_t
	must(t, unix.Stat(l.dir, &st))
	l.ino = vfs.Ino(st.Ino)
	return l
}

// put and remove change names through another door.
func (l *listed) put(name string) {
	l.t.Helper()
	_, err := l.fs.PutObject(bg, vfs.ObjectName{Bucket: "bucket", Key: name}, bytes.NewReader(nil), vfs.PutOptions{Owner: vfs.Root})
	must(l.t, err)
}

func (l *listed) remove(name string) {
	l.t.Helper()
	_, err := l.fs.DeleteObject(bg, vfs.ObjectName{Bucket: "bucket", Key: name}, vfs.DeleteOptions{})
	must(l.t, err)
}

func (l *listed) path(name string) string { return filepath.Join(l.dir, name) }

// open opens the directory until the test ends.
func (l *listed) open() *os.File {
	l.t.Helper()
	f, err := os.Open(l.dir)
	must(l.t, err)
	l.t.Cleanup(func() { f.Close() })
	return f
}

// names lists the directory anew, by way of its path.
func (l *listed) names() []string {
	l.t.Helper()
	f, err := os.Open(l.dir)
	must(l.t, err)
	defer f.Close()
	return l.rest(f)
}

// again lists the directory anew through f.
func (l *listed) again(f *os.File) []string {
	l.t.Helper()
	_, err := f.Seek(0, 0)
	must(l.t, err)
	return l.rest(f)
}

func (l *listed) rest(f *os.File) []string {
	l.t.Helper()
	names, err := f.Readdirnames(-1)
	must(l.t, err)
	slices.Sort(names)
	return names
}

// stored returns the names that the directory has.
func (l *listed) stored() (names []string) {
	l.t.Helper()
	must(l.t, l.fs.ReadDir(bg, vfs.Root, l.ino, vfs.ReadDirOptions{}, func(e vfs.DirEntry) error {
		names = append(names, e.Name)
		return nil
	}))
	slices.Sort(names)
	return names
}

// The kernel keeps names, and what changes is seen at once: by whoever opens the directory,
// and whoever has it open and begins anew.
func TestListingKept(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		l := newListed(t, over, 0, 20)
		want := l.names()
		fresh := l.reads.Load()
		for range 3 {
			if got := l.names(); !slices.Equal(got, want) {
				t.Fatalf("%q, then %q", want, got)
			}
		}
		if n := l.reads.Load() - fresh; n != 0 {
			t.Errorf("the kernel asked %d times for what it has", n)
		}
		back := unix.Timespec{Sec: 1_000_000_000}
		setBack := func() {
			must(t, unix.UtimesNanoAt(unix.AT_FDCWD, l.dir, []unix.Timespec{back, back}, 0))
		}
		for name, change := range map[string]func(){
			"put":            func() { l.put("object") },
			"delete":         func() { l.remove("object") },
			"put, set back":  func() { l.put("object"); setBack() },
			"make, set back": func() { must(t, os.Mkdir(l.path("sub"), 0o755)); setBack() },
			"link":           func() { must(t, os.Link(l.path("n00001"), l.path("link"))) },
			"exchange":       func() { must(t, os.Rename(l.path("n00002"), l.path("moved"))) },
			"rename, outside": func() {
				must(t, l.fs.Rename(bg, vfs.Root, vfs.EntryName{Dir: l.ino, Name: "n00003"}, vfs.EntryName{Dir: l.ino, Name: "other"}, 0))
			},
			"unlink": func() { must(t, os.Remove(l.path("n00004"))) },
		} {
			setBack()
			open := l.open()
			l.names()
			l.again(open)
			change()
			want := l.stored()
			if got := l.names(); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
			if got := l.again(open); !slices.Equal(got, want) {
				t.Errorf("%s: who has it open sees %q, want %q", name, got, want)
			}
		}
	})
}

// Of a directory that another door removed, nothing that was kept is listed.
func TestListingRemoved(t *testing.T) {
	l := newListed(t, TransportDevice, 0, 1)
	l.dir = l.path("sub")
	must(t, os.Mkdir(l.dir, 0o755))
	l.names()
	f := l.open()
	l.again(f)
	must(t, l.fs.Rmdir(bg, vfs.Root, l.ino, "sub"))
	_, err := f.Seek(0, 0)
	must(t, err)
	if names, err := f.Readdirnames(-1); !errors.Is(err, unix.ENOENT) {
		t.Errorf("%q, %v", names, err)
	}
}

// The kernel keeps names for as long as entries, so that a listing brings their attributes again.
func TestListingOld(t *testing.T) {
	l := newListed(t, TransportDevice, 50*time.Millisecond, 20)
	l.names()
	time.Sleep(60 * time.Millisecond)
	before := l.reads.Load()
	l.names()
	if l.reads.Load() == before {
		t.Error("the kernel lists what is older than its entries")
	}
}

// Who reads what the kernel kept for another one goes on with its own requests when that is
// gone: each name that stays comes once.
func TestListingResumed(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		const names = 3000
		l := newListed(t, over, 0, names)
		l.names()
		reader := l.open()
		fresh := l.reads.Load()
		got, err := reader.Readdirnames(50)
		must(t, err)
		if n := l.reads.Load() - fresh; n != 0 {
			t.Errorf("the kernel asked %d times for what it has", n)
		}
		l.remove("n00010") // that was read
		l.put("n00000a")
		l.remove("n02000") // that was not
		rest, err := reader.Readdirnames(-1)
		must(t, err)
		if l.reads.Load() == fresh {
			t.Error("the kernel goes on with what is old")
		}
		seen := map[string]int{}
		for _, n := range append(got, rest...) {
			seen[n]++
		}
		for i := range names {
			n := fmt.Sprintf("n%05d", i)
			if k := seen[n]; k != 1 && n != "n00010" && n != "n02000" {
				t.Fatalf("%s comes %d times", n, k)
			}
		}
	})
}

// While many list, whoever makes or removes a name through any door finds that done: through
// its path, and through what was open before.
func TestListingChanging(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		l := newListed(t, over, 0, 60)
		end := time.Now().Add(3 * time.Second)
		var wg sync.WaitGroup
		for i := range 3 {
			open := l.open()
			wg.Go(func() {
				for k := 0; time.Now().Before(end) && !t.Failed(); k++ {
					names := l.names
					if (i+k)%2 == 0 {
						names = func() []string { return l.again(open) }
					}
					if got := names(); len(got) < 60 {
						t.Errorf("%d names of at least 60", len(got))
					}
				}
			})
		}
		for i := range 2 {
			open := l.open()
			wg.Go(func() {
				name := fmt.Sprint("changing", i)
				for k := 0; time.Now().Before(end) && !t.Failed(); k++ {
					there := k%2 == 0
					switch door := k / 2 % 2; {
					case there && door == 0:
						l.put(name)
					case there:
						must(t, os.WriteFile(l.path(name), nil, 0o600))
					case door == 0:
						must(t, os.Remove(l.path(name)))
					default:
						l.remove(name)
					}
					if slices.Contains(l.names(), name) != there {
						t.Errorf("change %d: %s is there: %v, by a new listing", k, name, !there)
					}
					if slices.Contains(l.again(open), name) != there {
						t.Errorf("change %d: %s is there: %v, by who has the directory open", k, name, !there)
					}
				}
			})
		}
		wg.Wait()
	})
}

// What nobody has open is forgotten after as long as names last, and before if it is much.
func TestListingsForgotten(t *testing.T) {
	var s listings
	s.init(50*time.Millisecond, func(vfs.Ino) (begun, ended uint64) { return 1, 1 })
	for ino := range vfs.Ino(100) {
		l, _ := s.open(ino, true)
		for i := range maxIdlePositions / 50 {
			l.number(uint64(i)+offDotDot, fmt.Sprint(i))
		}
		l.read.Store(true)
		s.close(l)
	}
	s.mu.Lock()
	if len(s.dirs) > 50 || s.held > maxIdlePositions {
		t.Errorf("%d directories with %d positions are kept", len(s.dirs), s.held)
	}
	s.mu.Unlock()
	for kept := 1; kept > 0; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		kept = len(s.dirs)
		if kept == 0 && (s.held != 0 || s.idle.Len() != 0) {
			t.Errorf("%d positions of %d directories are left", s.held, s.idle.Len())
		}
		s.mu.Unlock()
	}
}

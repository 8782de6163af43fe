package fusemount

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/vfs"
)

// listed is a directory of a mount, and how often the kernel asked for its names.
type listed struct {
	t     *testing.T
	fs    *vfs.FS
	mount *Server
	dir   string
	ino   vfs.Ino
	reads atomic.Int64
	opens atomic.Int64 // and opened one
}

func newListed(t *testing.T, over Transport, life time.Duration, names int) *listed {
	t.Helper()
	l := &listed{t: t, fs: openFS(t)}
	top, mount := mountFS(t, l.fs, Options{Transport: over, EntryTimeout: life, Observe: func(op string, _ time.Duration, _ syscall.Errno) {
		switch op {
		case "readdir", "readdirplus":
			l.reads.Add(1)
		case "opendir":
			l.opens.Add(1)
		}
	}})
	l.mount, l.dir = mount, filepath.Join(top, "bucket")
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
		if n := l.opens.Load(); n > 1 {
			t.Errorf("the kernel opened directories %d times, after it was told that it need not", n)
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
	before := l.reads.Load()
	for deadline := time.Now().Add(10 * time.Second); l.reads.Load() == before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the kernel lists what is older than its entries")
		}
		l.names()
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

// changing is a directory through two superblocks, of which the first keeps listings, and
// through another door.
type changing struct {
	*listed
	dirs []string
	end  time.Time
}

const stableNames = 1500

func (c *changing) goesOn() bool { return time.Now().Before(c.end) && !c.t.Failed() }

// whole checks that what does not change comes once.
func (c *changing) whole(list []rawEntry) {
	c.t.Helper()
	seen := make(map[string]int, len(list))
	for _, e := range list {
		if seen[e.name]++; seen[e.name] > 1 {
			c.t.Errorf("%s comes %d times", e.name, seen[e.name])
		}
	}
	for i := range stableNames {
		if n := fmt.Sprintf("n%05d", i); seen[n] == 0 {
			c.t.Errorf("%s is missing among %d", n, len(list))
			return
		}
	}
}

// list lists again and again, by small steps, some of them back.
func (c *changing) list(d *rawDir, r *rand.Rand) {
	for c.goesOn() {
		d.seek(0)
		var list []rawEntry
		for {
			more := d.get(100 + r.IntN(4000))
			if len(more) == 0 {
				c.whole(list)
				break
			}
			if list = append(list, more...); r.IntN(40) == 0 {
				k := r.IntN(len(list))
				d.seek(list[k].off)
				list = list[:k+1]
			}
			if r.IntN(200) == 0 {
				break
			}
		}
	}
}

// change makes and removes names through any door, and looks whether all see that, by what
// was open before and by opening anew.
func (c *changing) change(who int, open []*rawDir, r *rand.Rand) {
	for k := 0; c.goesOn(); k++ {
		name := fmt.Sprintf("n%05d-%d", r.IntN(stableNames), who)
		door := r.IntN(len(c.dirs) + 1)
		for _, there := range []bool{true, false} {
			switch {
			case door == len(c.dirs) && there:
				c.put(name)
			case door == len(c.dirs):
				c.remove(name)
			case there:
				must(c.t, os.WriteFile(filepath.Join(c.dirs[door], name), nil, 0o600))
			default:
				must(c.t, os.Remove(filepath.Join(c.dirs[door], name)))
			}
			if r.IntN(4) == 0 {
				long := unix.Timespec{Sec: 1_000_000_000}
				must(c.t, unix.UtimesNanoAt(unix.AT_FDCWD, c.dirs[0], []unix.Timespec{long, long}, 0))
			}
			for i, dir := range c.dirs {
				d := open[i]
				anew := r.IntN(2) == 0
				if d.seek(0); anew {
					d = openRaw(c.t, dir)
				}
				list := d.all(1000 + r.IntN(30_000))
				if anew {
					d.close()
				}
				if c.whole(list); hasName(list, name) != there {
					c.t.Errorf("by door %d %s is there: %v, not so at mount %d, opened anew: %v", door, name, there, i, anew)
				}
			}
		}
	}
}

// While many list, whoever makes or removes a name through any door finds that done: through
// its path, and through what was open before. What does not change comes once.
func TestListingChanging(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		fs := openFS(t)
		m := NewMounts(fs)
		one, _ := mountOf(t, m, Options{Transport: over})
		two, _ := mountOf(t, m, Options{Transport: over, EntryTimeout: time.Hour})
		must(t, os.Mkdir(filepath.Join(one, "bucket"), 0o777))
		c := &changing{listed: &listed{t: t, fs: fs}, dirs: []string{filepath.Join(one, "bucket"), filepath.Join(two, "bucket")}}
		for i := range stableNames {
			c.put(fmt.Sprintf("n%05d", i))
		}
		for round := range uint64(4) {
			c.end = time.Now().Add(time.Second)
			var wg sync.WaitGroup
			for i := range uint64(3) {
				d := openRaw(t, c.dirs[i/2])
				wg.Go(func() { c.list(d, rand.New(rand.NewPCG(round, i))) })
			}
			for i := range 2 {
				open := []*rawDir{openRaw(t, c.dirs[0]), openRaw(t, c.dirs[1])}
				wg.Go(func() { c.change(i, open, rand.New(rand.NewPCG(round, 10+uint64(i)))) })
			}
			wg.Wait()
		}
	})
}

// What nobody reads is forgotten, the longest unused first; the kernel drops what it has of
// that, and what is as old as names may be. Who begins again does so with numbers that
// nobody had.
func TestListingsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s listings
		var mu sync.Mutex
		dropped := map[vfs.Ino]int{}
		s.init(time.Minute, func(ino vfs.Ino) {
			mu.Lock()
			dropped[ino]++
			mu.Unlock()
		})
		read := func(ino vfs.Ino, names int) (pass uint64) {
			l := s.begin(ino)
			defer func() {
				s.end(l, true, false)
				s.end(s.begin(ino), false, true)
			}()
			prev := l.numbers.begin(1, 1)
			pass = passOf(prev)
			for i := range names {
				prev = l.number(prev, fmt.Sprint(i))
			}
			return pass
		}
		first := read(0, 10)
		for ino := range vfs.Ino(100) {
			read(ino, maxListed/50)
		}
		synctest.Wait()
		if len(s.dirs) > 50 || s.held > maxListed || len(dropped) != 100-len(s.dirs) {
			t.Errorf("%d directories with %d positions are kept, %d were dropped", len(s.dirs), s.held, len(dropped))
		}
		if again := read(0, 10); again == first {
			t.Errorf("a listing that was forgotten began with pass %d, and so does the next", first)
		}
		time.Sleep(3 * time.Minute)
		s.mu.Lock()
		mu.Lock()
		if len(s.dirs) == 0 || s.kept.Len() != 0 || len(dropped) != 100 {
			t.Errorf("after three minutes %d directories are there, the kernel keeps %d, %d were dropped", len(s.dirs), s.kept.Len(), len(dropped))
		}
		mu.Unlock()
		s.mu.Unlock()
		time.Sleep(2 * listingIdle)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.dirs) != 0 || s.held != 0 || s.used.Len() != 0 || s.sweeps != nil {
			t.Errorf("%d positions of %d directories are left", s.held, len(s.dirs))
		}
	})
}

// Who has not come to the end goes on there after a long time, though many directories were
// listed meanwhile: of what it removed behind it, nothing is counted.
func TestListingUnfinished(t *testing.T) {
	const names = 2000
	for what, forget := range map[string]func(*listings){
		"time": func(s *listings) {
			s.mu.Lock()
			for _, l := range s.dirs {
				l.read = l.read.Add(-2 * listingIdle)
			}
			s.mu.Unlock()
			s.sweep()
		},
		"room": func(s *listings) {
			for ino := range vfs.Ino(2 * maxListed / listingPositions) {
				s.end(s.begin(1<<40+ino), true, false)
				s.end(s.begin(1<<40+ino), false, true)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			l := newListed(t, TransportDevice, 0, names)
			other := openRaw(t, filepath.Dir(l.dir))
			other.all(4000)
			d := openRaw(t, l.dir)
			got := d.some(2000, 500)
			for _, e := range got[2:] {
				must(t, os.Remove(l.path(e.name)))
			}
			forget(&l.mount.conn.raw.listings)
			got = append(got, d.all(4000)...)
			if len(got) != 2+names {
				t.Errorf("%d names", len(got)-2)
			}
		})
	}
}

// A READDIR for which others are forgotten does not wait until the kernel has dropped what it
// keeps of those.
func TestListingsForgottenLater(t *testing.T) {
	f := newRawFS(bg, namespaceOf(openFS(t)), Options{EntryTimeout: time.Minute, Logger: testLogger(t)})
	defer f.holds.Close()
	stuck := stuckNotifier{asked: make(chan struct{}, 1), end: make(chan struct{})}
	f.inv.server.Store(notifierBox{stuck})
	defer close(stuck.end)
	defer f.listings.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ino := range vfs.Ino(maxListed/listingPositions + 2) {
			f.listings.end(f.listings.begin(10+ino), true, false)
		}
	}()
	<-stuck.asked
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("it waits for the kernel")
	}
}

// stuckNotifier has a kernel that takes no notification of an inode until the end.
type stuckNotifier struct{ asked, end chan struct{} }

func (n stuckNotifier) InodeNotify(uint64, int64, int64) fuse.Status {
	select {
	case n.asked <- struct{}{}:
	default:
	}
	<-n.end
	return fuse.OK
}

func (n stuckNotifier) EntryNotify(uint64, string) fuse.Status { return fuse.OK }

// With the mount, all ends that is known of its listings.
func TestListingsEnd(t *testing.T) {
	l := newListed(t, TransportDevice, time.Hour, 100)
	l.names()
	d := openRaw(t, l.dir)
	d.some(2000, 50)
	d.close()
	must(t, l.mount.Unmount())
	s := &l.mount.conn.raw.listings
	eventually(t, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.dirs) != 0 || s.held != 0 || s.kept.Len() != 0 || len(s.streams) != 0 || s.sweeps.Stop() || s.ends != nil && s.ends.Stop() {
			return fmt.Errorf("%d positions of %d directories, %d streams, and what will look at them", s.held, len(s.dirs), len(s.streams))
		}
		return nil
	})
}

// What was read ahead for one reader is for whoever goes on there, for a while.
func TestListingStreams(t *testing.T) {
	fs := openFS(t)
	dir := bucketOf(t, fs, 3*maxIdleStreams)
	var s listings
	s.init(time.Minute, func(vfs.Ino) {})
	read := func() (d *vfs.DirStream, pos string) {
		d = fs.OpenDirStream(dir)
		must(t, d.Read(bg, vfs.Root, vfs.ReadDirOptions{}, func(e *vfs.DirEntry) error {
			if pos != "" {
				return cluster.ErrStop
			}
			pos = e.Pos
			return nil
		}))
		return d, pos
	}
	d, pos := read()
	s.put(dir, d)
	if got := s.take(dir, "elsewhere"); got != nil {
		t.Error("a stream that is elsewhere was given")
	}
	if got := s.take(dir, pos); got != d {
		t.Errorf("%p, want %p", got, d)
	}
	if got := s.take(dir, pos); got != nil {
		t.Error("a stream was given to two")
	}
	for range 3 * maxIdleStreams {
		d, _ := read()
		s.put(dir, d)
	}
	if n := len(s.streams); n != maxIdleStreams {
		t.Errorf("%d streams are kept", n)
	}
	for deadline := time.Now().Add(10 * streamIdle); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		n := len(s.streams)
		s.mu.Unlock()
		if n == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d streams are kept", n)
		}
	}
}

// bucketOf makes a bucket with objects n00000 and so on.
func bucketOf(t *testing.T, fs *vfs.FS, names int) vfs.Ino {
	t.Helper()
	l := &listed{t: t, fs: fs}
	_, err := fs.CreateBucket(bg, "bucket", vfs.Root)
	must(t, err)
	for i := range names {
		l.put(fmt.Sprintf("n%05d", i))
	}
	a, err := fs.Resolve(bg, vfs.Root, "bucket", true)
	must(t, err)
	return a.Ino
}

package fusemount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/fusemount/ledger"
	"ogw/vfs"
	"ogw/vfs/lock"
)

// machine is one whose power can be cut.
type machine struct {
	disk *mem.Disk
	clu  *cluster.Cluster
	fs   *vfs.FS
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{disk: mem.NewDisk()}
	m.start(t)
	return m
}

func (m *machine) start(t *testing.T) {
	t.Helper()
	clu := mem.New(mem.Options{Disk: m.disk})
	fs, err := vfs.Open(bg, clu, vfs.Config{NoBackground: true, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() { _ = errors.Join(fs.Close(bg), clu.Close()) }) // the power may be off
	m.clu, m.fs = clu, fs
}

// restart cuts the power, and has it come back.
func (m *machine) restart(t *testing.T) {
	t.Helper()
	m.clu.KV.(*mem.KV).Abandon()
	m.disk.PowerCut()
	m.start(t)
}

// text is what a file of the bucket has.
func (m *machine) text(t *testing.T, name string) string {
	t.Helper()
	a, err := m.fs.Resolve(bg, vfs.Root, "bucket/"+name, true)
	must(t, err)
	return (&serverLife{fs: m.fs, file: a.Ino}).text(t)
}

// durableCase is what a program does whose bytes a power cut must not take.
type durableCase struct {
	mounts []Options                       // the program works on the last one
	work   func(t *testing.T, name string) // it leaves "text" in a file of a page, and may leave it open
}

var durableCases = map[string]durableCase{
	"O_DSYNC":                          {[]Options{{}}, writesWith(unix.O_DSYNC)},
	"O_DSYNC, one of two":              {[]Options{{AttrTimeout: time.Second}, {}}, writesWith(unix.O_DSYNC)},
	"O_SYNC, one of two":               {[]Options{{AttrTimeout: time.Second}, {}}, writesWith(unix.O_SYNC)},
	"O_DSYNC and O_APPEND, one of two": {[]Options{{AttrTimeout: time.Second}, {}}, writesWith(unix.O_DSYNC | unix.O_APPEND)},
	"sync":                             {[]Options{{MountFlags: []string{"sync"}}}, writesWith(0)},
	"sync, one of two":                 {[]Options{{}, {MountFlags: []string{"sync"}}}, writesWith(0)},
	"O_DSYNC, copied":                  {[]Options{{}}, copiesWith(unix.O_DSYNC)},
	"O_SYNC, copied, one of two":       {[]Options{{AttrTimeout: time.Second}, {}}, copiesWith(unix.O_SYNC)},
	"sync, copied":                     {[]Options{{MountFlags: []string{"sync"}}}, copiesWith(0)},
	"O_DSYNC, zeroed":                  {[]Options{{}}, zeroesWith(unix.O_DSYNC)},
	"sync, zeroed":                     {[]Options{{MountFlags: []string{"sync"}}}, zeroesWith(0)},
	"mapped twice":                     {[]Options{{}}, mapsAndCloses},
	"mapped twice, one of two":         {[]Options{{}, {AttrTimeout: time.Second}}, mapsAndCloses},
	"written, opened again":            {[]Options{{}}, writesAndCloses},
	"writeback, written, opened again": {[]Options{{Writeback: true}}, writesAndCloses},
	"writeback, mapped twice":          {[]Options{{Writeback: true}}, mapsAndCloses},
}

// writesWith leaves open what it wrote.
func writesWith(flags int) func(t *testing.T, name string) {
	return func(t *testing.T, name string) {
		fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|flags, 0o644)
		must(t, err)
		_, err = unix.Write(fd, []byte("text"))
		must(t, err)
	}
}

// copiesWith leaves open what it copied from another file.
func copiesWith(flags int) func(t *testing.T, name string) {
	return func(t *testing.T, name string) {
		source := name + ".source"
		must(t, os.WriteFile(source, []byte("text"), 0o644))
		from, err := unix.Open(source, unix.O_RDONLY, 0)
		must(t, err)
		to, err := unix.Open(name, unix.O_WRONLY|flags, 0)
		must(t, err)
		n, err := unix.CopyFileRange(from, nil, to, nil, 4, 0)
		if must(t, err); n != 4 {
			t.Fatalf("%d bytes were copied", n)
		}
	}
}

// zeroesWith leaves open a file of which it zeroed what follows the text.
func zeroesWith(flags int) func(t *testing.T, name string) {
	return func(t *testing.T, name string) {
		must(t, os.WriteFile(name, []byte("text and more"), 0o644))
		fd, err := unix.Open(name, unix.O_WRONLY|flags, 0)
		must(t, err)
		must(t, unix.Fallocate(fd, unix.FALLOC_FL_ZERO_RANGE, 4, 9))
	}
}

// writesAndCloses closes what it wrote, while somebody else has the file open.
func writesAndCloses(t *testing.T, name string) {
	fd, err := unix.Open(name, unix.O_RDWR, 0)
	must(t, err)
	_, err = unix.Open(name, unix.O_RDWR, 0)
	must(t, err)
	_, err = unix.Write(fd, []byte("text"))
	must(t, errors.Join(err, unix.Close(fd)))
}

// mapsAndCloses closes what it wrote through a mapping, while somebody else has one.
func mapsAndCloses(t *testing.T, name string) {
	var fds [2]int
	var maps [2][]byte
	for i := range fds {
		var err error
		fds[i], err = unix.Open(name, unix.O_RDWR, 0)
		must(t, err)
		maps[i], err = unix.Mmap(fds[i], 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		must(t, err)
	}
	copy(maps[0], "text")
	must(t, errors.Join(unix.Munmap(maps[0]), unix.Close(fds[0])))
}

// A power cut takes nothing of what was written with O_SYNC or on a mount with sync, or
// closed, whatever handle the kernel sends it through.
func TestPowerCut(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		for name, c := range durableCases {
			t.Run(name, func(t *testing.T) {
				m := newMachine(t)
				set := NewMounts(m.fs)
				var top string
				for _, opt := range c.mounts {
					opt.Transport, opt.Logger = over, slog.New(slog.DiscardHandler)
					top, _ = mountOf(t, set, opt)
				}
				dir := filepath.Join(top, "bucket")
				must(t, os.Mkdir(dir, 0o755))
				write(t, filepath.Join(dir, "file"), "----")
				p := startProgram(t, "TestPowerCutProgram", powerCutEnv+"="+name+" "+filepath.Join(dir, "file"))
				p.await(t, "done")
				m.restart(t)
				if got := strings.TrimRight(m.text(t, "file"), "\x00"); got != "text" {
					t.Errorf("%q", got)
				}
			})
		}
	})
}

// powerCutEnv has the case and the file for the program of TestPowerCut.
const powerCutEnv = "OGW_TEST_POWER_CUT"

// TestPowerCutProgram is the program, whose end would store what is left open.
func TestPowerCutProgram(t *testing.T) {
	env := os.Getenv(powerCutEnv)
	cut := strings.LastIndex(env, " ")
	if cut < 0 {
		t.Skip("part of TestPowerCut")
	}
	durableCases[env[:cut]].work(t, env[cut+1:])
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin) // the test ends it
}

// A write with O_DSYNC that was done and not answered is durable when the next server answers it.
func TestPowerCutResent(t *testing.T) {
	m := newMachine(t)
	book, err := ledger.New()
	must(t, err)
	t.Cleanup(func() { must(t, book.Close()) })
	s, end := liveOver(t, m.fs, book)
	s.create(t)
	s.direct = true
	fh := s.open(t, unix.O_RDWR)
	in := &fuse.WriteIn{InHeader: header(1000, s.file), Fh: fh}
	if _, st := s.Write(nil, in, []byte("text")); !st.Ok() {
		t.Fatal(st)
	}
	end()
	s, end = liveOver(t, m.fs, book)
	defer end()
	in = &fuse.WriteIn{InHeader: header(1000|resentBit, s.file), Fh: fh, Flags: unix.O_DSYNC}
	if n, st := s.Write(nil, in, []byte("text")); n != 4 || !st.Ok() {
		t.Fatal(n, st)
	}
	m.restart(t)
	if got := m.text(t, "f"); got != "text" {
		t.Errorf("%q", got)
	}
}

// Who opens, writes and closes a file waits for the store once, and who writes nothing not at
// all, whatever others write to the file.
func TestClosesSaveOnce(t *testing.T) {
	clu := mem.New(mem.Options{})
	kv := &heldKV{KV: clu.KV}
	clu.KV = kv
	fs, err := vfs.Open(bg, clu, vfs.Config{NoBackground: true})
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(fs.Close(bg), clu.Close())) })
	s, end := liveOver(t, fs, nil)
	defer end()
	s.create(t)
	one, two := s.open(t, unix.O_RDWR), s.open(t, unix.O_RDWR)
	closes := func(what string, fh uint64, want int64) {
		t.Helper()
		before := kv.made.Load()
		if st := s.Flush(nil, &fuse.FlushIn{InHeader: header(6, s.file), Fh: fh}); !st.Ok() {
			t.Fatal(st)
		}
		if n := kv.made.Load() - before; n != want {
			t.Errorf("%s: %d commits, want %d", what, n, want)
		}
	}
	s.write(t, one, 0, "one")
	closes("another's write", two, 0)
	closes("its write", one, 1)
	closes("again", one, 0)
	s.write(t, one, fuse.WRITE_CACHE, "pages")
	closes("the pages of all", two, 1)
	closes("what is stored", one, 0)
	s.write(t, two, fuse.WRITE_CACHE, "pages")
	three := s.open(t, unix.O_RDWR)
	closes("pages from before its open", three, 0)
	ro := s.open(t, unix.O_RDONLY)
	s.write(t, two, fuse.WRITE_CACHE, "more")
	closes("a reader", ro, 0)
	closes("pages of all", three, 1)
}

// create makes the file "f".
func (s *serverLife) create(t *testing.T) {
	t.Helper()
	_, file, _, err := s.fs.Create(bg, vfs.Root, s.bucket, "f", vfs.CreateOptions{Mode: 0o644, Flags: vfs.OpenWrite})
	must(t, err)
	_, err = file.WriteAt(bg, []byte("----"), 0)
	must(t, errors.Join(err, file.Close(bg)))
	s.file = file.Ino()
}

func (s *serverLife) open(t *testing.T, flags uint32) (fh uint64) {
	t.Helper()
	return s.openAs(t, 2, flags)
}

func (s *serverLife) write(t *testing.T, fh uint64, how uint32, text string) {
	t.Helper()
	in := &fuse.WriteIn{InHeader: header(4, s.file), Fh: fh, WriteFlags: how}
	if n, st := s.Write(nil, in, []byte(text)); int(n) != len(text) || !st.Ok() {
		t.Fatal(n, st)
	}
}

// slowKV is a store whose commits take time.
type slowKV struct {
	cluster.KV
	slow atomic.Bool
}

func (kv *slowKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if kv.slow.Load() {
		time.Sleep(100 * time.Millisecond)
	}
	return kv.KV.Update(ctx, fn)
}

// Who gets a lock at another gateway because a file is closed finds what was written through
// the file's pages, whatever handle the kernel sent that through.
func TestBesideLockAfterPages(t *testing.T) {
	for name, c := range map[string]struct {
		space lock.Space
		flags uint32
		end   func(s *serverLife, fh uint64)
	}{
		"fcntl, close": {lock.Range, 0, func(s *serverLife, fh uint64) {
			s.Flush(nil, &fuse.FlushIn{InHeader: header(6, s.file), Fh: fh, LockOwner: 7})
		}},
		"flock, release": {lock.Flock, fuse.LK_FLOCK, func(s *serverLife, fh uint64) {
			s.Release(nil, &fuse.ReleaseIn{InHeader: header(6, s.file), Fh: fh})
		}},
	} {
		for _, through := range []string{"same", "another"} {
			t.Run(name+", "+through, func(t *testing.T) {
				clu := mem.New(mem.Options{})
				t.Cleanup(func() { must(t, clu.Close()) })
				kv := &slowKV{KV: clu.KV}
				mine := *clu
				mine.KV = kv
				other := openBeside(t, clu)
				s, end := liveOver(t, openBeside(t, &mine), nil)
				defer end()
				s.create(t)
				fh := s.open(t, unix.O_RDWR)
				via := fh
				if through == "another" {
					via = s.open(t, unix.O_RDWR)
				}
				if st := s.SetLk(nil, &fuse.LkIn{InHeader: header(2, s.file), Fh: fh, Owner: 7, LkFlags: c.flags, Lk: fuse.FileLock{End: lock.EOF, Typ: unix.F_WRLCK}}); !st.Ok() {
					t.Fatal(st)
				}
				got := make(chan error, 1)
				_, _, err := other.Locks().LockFunc(bg, uint64(s.file), c.space,
					lock.Lock{Owner: lock.Owner{Client: "other", ID: "1"}, Type: lock.Exclusive, End: lock.EOF}, func(err error) { got <- err })
				must(t, err)
				kv.slow.Store(true)
				s.write(t, via, fuse.WRITE_CACHE, "text")
				go c.end(s, fh)
				must(t, <-got)
				if text := (&serverLife{fs: other, file: s.file}).text(t); text != "text" {
					t.Errorf("who has the lock finds %q", text)
				}
				kv.slow.Store(false)
			})
		}
	}
}

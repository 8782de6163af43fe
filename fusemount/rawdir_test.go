package fusemount

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
)

// rawDir is a directory that is listed by small system calls.
type rawDir struct {
	t  testing.TB
	fd int
}

// rawEntry is struct linux_dirent64 (getdents64(2)).
type rawEntry struct {
	name string
	ino  uint64
	off  int64
}

func openRaw(t testing.TB, dir string) *rawDir {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	d := &rawDir{t, fd}
	t.Cleanup(d.close)
	return d
}

func (d *rawDir) close() {
	if d.fd >= 0 {
		unix.Close(d.fd)
		d.fd = -1
	}
}

func (d *rawDir) seek(off int64) {
	d.t.Helper()
	_, err := unix.Seek(d.fd, off, 0)
	must(d.t, err)
}

// get is one system call with a buffer of so many bytes.
func (d *rawDir) get(size int) (list []rawEntry) {
	d.t.Helper()
	b := make([]byte, size)
	n, err := unix.ReadDirent(d.fd, b)
	must(d.t, err)
	for b = b[:n]; len(b) > 0; {
		n := binary.NativeEndian.Uint16(b[16:])
		name, _, _ := bytes.Cut(b[19:n], []byte{0})
		list = append(list, rawEntry{string(name), binary.NativeEndian.Uint64(b), int64(binary.NativeEndian.Uint64(b[8:]))})
		b = b[n:]
	}
	return list
}

// some reads until there are n entries more, all until the end.
func (d *rawDir) some(size, n int) (list []rawEntry) {
	d.t.Helper()
	for len(list) < n {
		more := d.get(size)
		if len(more) == 0 {
			break
		}
		list = append(list, more...)
	}
	return list
}

func (d *rawDir) all(size int) []rawEntry {
	d.t.Helper()
	return d.some(size, 1<<30)
}

func hasName(list []rawEntry, name string) bool {
	return slices.ContainsFunc(list, func(e rawEntry) bool { return e.name == name })
}

// Who reads slowly goes on, however often others list the directory after a change, and
// these listings are not remembered each.
func TestListingSlowReader(t *testing.T) {
	const names = 3000
	l := newListed(t, TransportDevice, 0, names)
	slow := openRaw(t, l.dir)
	first := slow.get(2000)
	l.remove("n02990")
	l.remove("n00003")
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for range 400 {
		if n := len(l.names()); n != names-2 {
			t.Fatalf("%d names", n)
		}
	}
	if grown := heap() - before; grown > 10<<20 {
		t.Errorf("%d MiB more are in use", grown>>20)
	}
	if n := len(first) + len(slow.all(32<<10)); n < names-2+2 {
		t.Errorf("%d names", n)
	}
}

// The kernel looks for changes at the start of a listing, and not while what it keeps is not
// whole: who begins anew meanwhile is not led into what is old.
func TestListingPartial(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		l := newListed(t, over, 0, 3000)
		a := openRaw(t, l.dir)
		a.some(2000, 50)
		b := openRaw(t, l.dir)
		a.some(2000, 1500)
		must(t, os.Remove(l.path("n00500")))
		write(t, l.path("n00600a"), "")
		b.seek(0)
		got := b.get(2000)
		a.all(4000)
		got = append(got, b.all(2000)...)
		if hasName(got, "n00500") || !hasName(got, "n00600a") || len(got) != 3002 {
			t.Errorf("%d entries, the removed one: %v, the new one: %v", len(got), hasName(got, "n00500"), hasName(got, "n00600a"))
		}
	})
}

// What has another parent lists that, also to who has it open; what may have been done though
// its caller was told of an error is listed, too.
func TestListingUnseen(t *testing.T) {
	needFUSE(t)
	var unknown atomic.Bool
	c := mem.New(mem.Options{})
	c.KV = unknownKV{c.KV, &unknown}
	fs, err := vfs.Open(bg, c, vfs.Config{Logger: testLogger(t)})
	must(t, err)
	t.Cleanup(func() { must(t, fs.Close(bg)); must(t, c.Close()) })
	top, _ := mountFS(t, fs, Options{})
	in := func(parts ...string) string { return filepath.Join(append([]string{top, "bucket"}, parts...)...) }
	must(t, os.MkdirAll(in("a", "dir"), 0o755))
	must(t, os.Mkdir(in("b"), 0o755))
	listing := func(name string) *rawDir { // that the kernel keeps
		openRaw(t, name).all(4000)
		d := openRaw(t, name)
		d.all(4000)
		return d
	}
	eventually := func(what string, d *rawDir, ok func(list []rawEntry) bool) {
		t.Helper()
		for begin := time.Now(); ; time.Sleep(time.Millisecond) {
			d.seek(0)
			if list := d.all(4000); ok(list) {
				return
			} else if time.Since(begin) > 5*time.Second {
				t.Fatalf("%s: %v", what, list)
			}
		}
	}
	dir := listing(in("a", "dir"))
	must(t, os.Rename(in("a", "dir"), in("b", "dir")))
	var parent unix.Stat_t
	must(t, unix.Stat(in("b"), &parent))
	eventually("another parent", dir, func(list []rawEntry) bool {
		return slices.ContainsFunc(list, func(e rawEntry) bool { return e.name == ".." && e.ino == parent.Ino })
	})
	a := listing(in("a"))
	unknown.Store(true)
	if err := os.Mkdir(in("a", "new"), 0o755); err == nil {
		t.Fatal("it was known")
	}
	unknown.Store(false)
	eventually("a change of unknown outcome", a, func(list []rawEntry) bool { return hasName(list, "new") })
}

// unknownKV does not tell of commits.
type unknownKV struct {
	cluster.KV
	on *atomic.Bool
}

func (k unknownKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if err := k.KV.Update(ctx, fn); err != nil || !k.on.Load() {
		return err
	}
	return cluster.ErrUnavailable
}

// The next server goes on where a listing left off that began after a change, while another
// program had the directory open.
func TestListingNextServer(t *testing.T) {
	const names = 300
	k := begin(t, "x")
	for i := range names {
		_, err := k.fs.PutObject(bg, vfs.ObjectName{Bucket: "bucket", Key: fmt.Sprintf("n%05d", i)}, bytes.NewReader(nil), vfs.PutOptions{Owner: vfs.Root})
		must(t, err)
	}
	dir, err := k.fs.Resolve(bg, vfs.Root, "bucket", true)
	must(t, err)
	k.rawFS.primary.Store(true)
	open := func(unique uint64) uint64 {
		var out fuse.OpenOut
		if st := k.OpenDir(nil, &fuse.OpenIn{InHeader: header(unique, dir.Ino)}, &out); !st.Ok() {
			t.Fatal(st)
		}
		return out.Fh
	}
	k.readRest(dir.Ino, open(2), 0)
	_, err = k.fs.DeleteObject(bg, vfs.ObjectName{Bucket: "bucket", Key: "n00001"}, vfs.DeleteOptions{})
	must(t, err)
	reader := open(4)
	seen, off := k.readDir(dir.Ino, reader, 0)
	k.next(nil)
	seen = append(seen, k.readRest(dir.Ino, reader, off)...)
	slices.Sort(seen)
	if n := len(slices.Compact(slices.Clone(seen))); n != names-1+3 || n != len(seen) { // ".", "..", and a file
		t.Errorf("%d names, %d of them different", len(seen), n)
	}
}

package fusemount

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/vfs"
)

// reading is a reader of a directory whose positions are the names of its entries.
type reading struct {
	n   *numbers
	off uint64 // of the last entry
}

func (r *reading) on(names ...string) {
	for _, name := range names {
		r.off = r.n.number(r.off, name)
	}
}

// known fails unless it is known where the reader goes on.
func (r *reading) known(t *testing.T, want string) {
	t.Helper()
	if pos, known := r.n.position(r.off); !known || pos != want {
		t.Fatalf("a reader is behind %q, known: %v; want %q", pos, known, want)
	}
}

func someNames(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("f%06d", i))
	}
	return list
}

// Who removes what it reads goes on where it was, however often others list the directory
// meanwhile, after each change, and whether they come to the end.
func TestPlaceAmongPolls(t *testing.T) {
	const step = 2000
	for what, ends := range map[string]bool{"to the end": true, "some": false} {
		t.Run(what, func(t *testing.T) {
			var n numbers
			names := someNames(20_000)
			changes := uint64(0)
			begin := func() *reading {
				changes++
				return &reading{&n, n.begin(changes, changes)}
			}
			slow := begin()
			for range 3 {
				slow.on(names[:step]...)
				last := names[step-1]
				names = names[step:]
				for range 2 * maxPositions / len(names) {
					poll := begin()
					if poll.on(names...); ends {
						n.end(poll.off)
					}
				}
				if n.size() > maxPositions+maxPasses {
					t.Fatalf("%d are remembered", n.size())
				}
				slow.known(t, last)
			}
		})
	}
}

// Passes are bounded, also those of which nothing is known, and the longest unused goes first.
func TestPassesBound(t *testing.T) {
	var n numbers
	changes := uint64(0)
	begin := func() *reading {
		changes++
		return &reading{&n, n.begin(changes, changes)}
	}
	slow, gone := begin(), begin()
	slow.on("a")
	gone.on("a")
	for range 3 {
		for range maxPasses / 2 {
			begin()
			begin().on("b")
			slow.known(t, "a")
		}
	}
	if len(n.runs) > maxPasses {
		t.Errorf("%d passes", len(n.runs))
	}
	if _, known := n.position(gone.off); known {
		t.Error("the one that nobody uses is there")
	}
}

// A pass that one reader has read to the end is still that of another one.
func TestPassOfTwo(t *testing.T) {
	var n numbers
	names := someNames(20_000)
	slow, other := &reading{&n, n.begin(1, 1)}, &reading{&n, n.begin(1, 1)}
	slow.on(names[:100]...)
	other.on(names...)
	n.end(other.off)
	for i := range uint64(2 * maxPositions / len(names)) {
		poll := &reading{&n, n.begin(2+i, 2+i)}
		poll.on(names...)
		n.end(poll.off)
	}
	slow.known(t, names[99])
}

// Of directories that are too large to be remembered together, their readers go on.
func TestPlacesOfLargeDirectories(t *testing.T) {
	var s listings
	s.init(time.Minute, func(vfs.Ino) {})
	defer s.close()
	names := someNames(maxPositions)
	const step = maxPositions / 8
	read := make([]reading, 3)
	for from := 0; from < len(names); from += step {
		for i := range read {
			l, r := s.begin(vfs.Ino(10+i)), &read[i]
			if r.n = &l.numbers; from == 0 {
				r.off = l.numbers.begin(1, 1)
			} else {
				r.known(t, names[from-1])
			}
			r.on(names[from : from+step]...)
			s.end(l, from == 0, false)
		}
	}
	if s.held > maxListed {
		t.Errorf("%d positions", s.held)
	}
}

// longAgo is a time before that of any reader.
func longAgo() time.Time { return time.Now().Add(-2 * readerIdle) }

// nextServer is a listing over a server that is killed. Entries of which the reader has seen
// some are removed, if removes, and it goes on at the next server.
func nextServer(t *testing.T, k *killed, names int, removes bool) (before, after []string) {
	var dir vfs.Ino
	put := func(name string) {
		_, err := k.fs.PutObject(bg, vfs.ObjectName{Bucket: "bucket", Key: name}, bytes.NewReader(nil), vfs.PutOptions{Owner: vfs.Root})
		must(t, err)
	}
	for _, name := range someNames(names) {
		put(name)
	}
	a, err := k.fs.Resolve(bg, vfs.Root, "bucket", true)
	must(t, err)
	dir = a.Ino
	before, off := k.readDir(dir, 0, 0)
	k.next(nil) // knows no more of it, nor does the last one
	if removes {
		for _, name := range before[2:] {
			_, err := k.fs.DeleteObject(bg, vfs.ObjectName{Bucket: "bucket", Key: name}, vfs.DeleteOptions{})
			must(t, err)
		}
	}
	k.now = nil
	k.next(nil)
	return before, k.readRest(dir, 0, off)
}

// readDir is one READDIR: names, and where it goes on.
func (k *killed) readDir(dir vfs.Ino, fh, off uint64) (list []string, next uint64) {
	k.Helper()
	buf := make([]byte, 4096)
	out := fuse.NewDirEntryList(buf, off)
	if st := k.ReadDir(nil, &fuse.ReadIn{InHeader: header(99, dir), Fh: fh, Offset: off, Size: uint32(len(buf))}, out); !st.Ok() {
		k.Fatal(st)
	}
	next = off
	for b := out.Bytes(); len(b) > 0; { // struct fuse_dirent
		n := binary.NativeEndian.Uint32(b[16:])
		next = binary.NativeEndian.Uint64(b[8:])
		list = append(list, string(b[24:24+n]))
		b = b[(24+n+7)&^7:]
	}
	return list, next
}

// readRest is the READDIRs until the end.
func (k *killed) readRest(dir vfs.Ino, fh, off uint64) (all []string) {
	k.Helper()
	for {
		list, next := k.readDir(dir, fh, off)
		if next == off {
			return all
		}
		all, off = append(all, list...), next
	}
}

// Who removed what it read, over a kill of the server, is shown all that is left.
func TestListingRemovesNextServer(t *testing.T) {
	const names = 1000
	before, after := nextServer(t, begin(t, ""), names, true)
	if n := len(before) - 2; n < 50 || n > names/2 {
		t.Fatalf("the first READDIR had %d names", n)
	}
	slices.Sort(after)
	if want := names + 1 - (len(before) - 2); len(after) != want { // and the file that is always there
		t.Errorf("%d names of %d", len(after), want)
	}
}

// A directory that is as it was does not show a name twice over kills, whether it changed long ago, or before the listing.
func TestListingSameNextServer(t *testing.T) {
	for what, now := range map[string]func() time.Time{"old": longAgo, "new": nil} {
		t.Run(what, func(t *testing.T) {
			const names = 1000
			before, after := nextServer(t, beginAt(t, "", now), names, false)
			all := append(before, after...)
			slices.Sort(all)
			if n := len(slices.Compact(slices.Clone(all))); n != names+3 || n != len(all) {
				t.Errorf("%d names, %d of them different", len(all), n)
			}
		})
	}
}

// What a listing that starts over brings to the kernel, it does not keep: it may have the same
// from the server before.
func TestListingOverIsDropped(t *testing.T) {
	k := begin(t, "")
	_, after := nextServer(t, k, 300, true)
	if len(after) == 0 {
		t.Fatal("no names")
	}
	told := toldInodes(make(chan uint64, 10))
	k.inv.server.Store(notifierBox{told})
	for len(k.inv.queue) > 0 {
		(<-k.inv.queue)()
	}
	dir, err := k.fs.Resolve(bg, vfs.Root, "bucket", true)
	must(t, err)
	for len(told) > 0 { // what was queued was told
		if <-told == uint64(dir.Ino) {
			return
		}
	}
	t.Error("the kernel is not told to drop it")
}

// toldInodes are the nodes of which a kernel was told.
type toldInodes chan uint64

func (c toldInodes) InodeNotify(node uint64, _, _ int64) fuse.Status {
	select {
	case c <- node:
	default: // a sweep, later than anybody reads
	}
	return fuse.OK
}

func (c toldInodes) EntryNotify(uint64, string) fuse.Status { return fuse.OK }

// Who looks for a place that is not remembered is given up when its caller is killed.
func TestPlaceOfKilled(t *testing.T) {
	c := newCluster(t)
	kv := &stuckKV{KV: c.KV}
	c.KV = kv
	fs, err := vfs.Open(bg, c, vfs.Config{NoBackground: true})
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(fs.Close(bg), c.Close())) })
	dir := bucketOf(t, fs, 10)
	f := newRawFS(bg, namespaceOf(fs), Options{Logger: testLogger(t)}.withDefaults(true))
	t.Cleanup(f.holds.Close)
	t.Cleanup(kv.release)
	ctx, kill := context.WithCancel(bg)
	defer kill()
	in := &fuse.ReadIn{InHeader: header(9, dir), Offset: 5<<passShift | 9, Size: 4096}
	r := dirReader{f: f, ctx: ctx, in: in, out: fuse.NewDirEntryList(make([]byte, 4096), in.Offset), ino: dir, numbers: new(numbers)}
	r.stream = func(string) *vfs.DirStream { return fs.OpenDirStream(dir) }
	kv.stick()
	done := make(chan fuse.Status)
	go func() { done <- r.list() }()
	eventually(t, func() error {
		if kv.waiters() == 0 {
			return errors.New("it does not wait")
		}
		return nil
	})
	kill()
	select {
	case st := <-done:
		if st.Ok() {
			t.Error("a listing was answered")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
	}
}

package nfsserver

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
)

// sharedKV is an engine that somebody else closes.
type sharedKV struct{ cluster.KV }

func (sharedKV) Close() error { return nil }

type sharedBlobs struct{ cluster.Blobs }

func (sharedBlobs) Close() error { return nil }

// twoSites are servers beside one another over one store; without exports, of all of it.
func twoSites(t *testing.T, exports ...Export) (a, b *site) {
	t.Helper()
	if len(exports) == 0 {
		exports = []Export{everyone}
	}
	c := mem.New(mem.Options{})
	t.Cleanup(func() { c.Close() })
	open := func() *site { return openSiteOver(t, nil, besideOthers(t, c), vfs.Config{}, exports...) }
	return open(), open()
}

// besideOthers is c as one of several gateways has it.
func besideOthers(t *testing.T, c *cluster.Cluster) *cluster.Cluster {
	t.Helper()
	mine := *c
	mine.KV, mine.Blobs = sharedKV{c.KV}, sharedBlobs{c.Blobs}
	j, err := vfs.Join(context.Background(), &mine, vfs.Gateway{Host: "test", PID: 1, Started: time.Now(), Beside: true, Serves: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// What one server acknowledged as stable, the next call at another one shows, and with
// bytes never come times that belong to newer ones.
func TestBesideFresh(t *testing.T) {
	a, b := twoSites(t)
	ca, cb := a.mount("/", 0), b.mount("/", 0)
	_, fh, _ := ca.create(ca.root, "f", createUnchecked, set{})
	if _, got, _ := cb.lookup(cb.root, "f"); string(got) != string(fh) {
		t.Fatal("another handle, or none")
	}
	for i := range 100 {
		from, to := ca, cb
		if i%2 == 1 {
			from, to = cb, ca
		}
		text := fmt.Sprint("text ", i, strings.Repeat("x", i*500))
		if i%3 == 0 {
			from.put(fh, text, fileSync)
		} else {
			from.put(fh, text, unstable)
			st, _ := from.commit(fh)
			from.must("COMMIT", st)
		}
		st, before := to.getattr(fh)
		if st != OK || before.size != uint64(len(text)) {
			t.Fatalf("round %d: %v, %+v", i, st, before)
		}
		st, after, got := to.readText(fh, 1<<20)
		if st != OK || got != text || after.mtime < before.mtime || after.size != uint64(len(text)) {
			t.Fatalf("round %d: %v, %d bytes of %d, %+v", i, st, len(got), len(text), after)
		}
	}
	cut := uint64(3)
	if st := ca.setattr(fh, set{size: &cut}, nil); st != OK {
		t.Fatal(st)
	}
	if _, _, got := cb.readText(fh, 100); got != "tex" {
		t.Errorf("after a truncation: %q", got)
	}
	if st := ca.unlink(procRemove, ca.root, "f"); st != OK {
		t.Fatal(st)
	}
	if st, _, _ := cb.lookup(cb.root, "f"); st != ErrNoEnt {
		t.Errorf("what was removed: %v", st)
	}
}

// A client keeps bytes by times: where these are others at a server, the times are too,
// whichever server stores what it was sent when.
func TestBesideTimes(t *testing.T) {
	a, b := twoSites(t)
	ca, cb := a.mount("/", 0), b.mount("/", 0)
	_, fh, _ := ca.create(ca.root, "f", createUnchecked, set{})
	ca.put(fh, "0123456789", fileSync)
	cb.lookup(cb.root, "f")
	type times struct {
		mtime, ctime int64
		size         uint64
	}
	seen := map[*client]map[times]string{ca: {}, cb: {}}
	look := func(what string) {
		for c, seen := range seen {
			st, a, text := c.readText(fh, 100)
			c.must("READ", st)
			k := times{a.mtime, a.ctime, a.size}
			if old, ok := seen[k]; ok && old != text {
				t.Errorf("%s: %q and %q under the same times", what, old, text)
			}
			seen[k] = text
		}
	}
	commit := func(c *client) {
		st, _ := c.commit(fh)
		c.must("COMMIT", st)
	}
	look("at first")
	cb.write(fh, 0, unstable, []byte("B"))
	look("B wrote")
	ca.write(fh, 9, unstable, []byte("A"))
	look("A wrote")
	commit(cb)
	look("B committed")
	commit(ca)
	look("both committed")
	cb.write(fh, 5, fileSync, []byte("b"))
	look("B wrote again")
}

// Who writes learns from the answer whether what it knows of the file is from before a
// change at another server: it is told what the file was like, and nothing that it could
// take for its own doing.
func TestBesideWcc(t *testing.T) {
	a, b := twoSites(t)
	ca, cb := a.mount("/", 0), b.mount("/", 0)
	_, fh, _ := ca.create(ca.root, "f", createUnchecked, set{})
	ca.put(fh, "0123456789", fileSync)
	cb.lookup(cb.root, "f")
	_, known, _ := ca.readText(fh, 100)
	write := func(how uint32) (before *[2]int64, after *fattr) {
		st, r := ca.nfs(procWrite, writeArgs(fh, 9, how, []byte("A")))
		ca.must("WRITE", st)
		return wccBoth(r)
	}
	for _, how := range []uint32{unstable, fileSync} {
		before, after := write(how)
		if before == nil || *before != [2]int64{known.mtime, known.ctime} || after == nil {
			t.Fatalf("%d: nobody else writes: %v, %v, known is %+v", how, before, after, known)
		}
		known = after
		cb.put(fh, "B", fileSync)
		if before, after = write(how); before == nil || *before == [2]int64{known.mtime, known.ctime} || after == nil {
			t.Errorf("%d: after another's: %v, %v, known was %+v", how, before, after, known)
		}
		known = after
	}
}

// A READ behind all that a file can have is at its end: without that, clients ask again.
func TestBesideReadBehindEnd(t *testing.T) {
	a, b := twoSites(t)
	ca, cb := a.mount("/", 0), b.mount("/", 0)
	_, fh, _ := ca.create(ca.root, "f", createUnchecked, set{})
	ca.put(fh, "text", fileSync)
	for _, off := range []uint64{4, 1 << 40, vfs.MaxFileBytes, vfs.MaxFileBytes + 1, 1 << 63, 1<<64 - 1} {
		for _, count := range []uint32{1, maxTransfer} {
			if st, data, eof := cb.read(fh, off, count); st != OK || len(data) != 0 || !eof {
				t.Errorf("%d bytes at %d: %v, %d bytes, end %v", count, off, st, len(data), eof)
			}
		}
	}
}

// Rights that one server takes away, another one does not remember.
func TestBesideRights(t *testing.T) {
	a, b := twoSites(t)
	ca, cb := a.mount("/", 0), b.mount("/", 1000)
	_, fh, _ := ca.create(ca.root, "f", createUnchecked, set{mode: ptr(uint32(0o644))})
	ca.put(fh, "text", fileSync)
	if st, _, got := cb.readText(fh, 100); st != OK || got != "text" {
		t.Fatalf("%v, %q", st, got)
	}
	if st := ca.setattr(fh, set{mode: ptr(uint32(0o600))}, nil); st != OK {
		t.Fatal(st)
	}
	if st, _, _ := cb.readText(fh, 100); st != ErrAcces {
		t.Errorf("of a file that was closed to others: %v", st)
	}
}

// A client that goes to another server with what it has not committed learns that it has
// to send it again.
func TestBesideVerifier(t *testing.T) {
	a, b := twoSites(t)
	ca, cb := a.mount("/", 0), b.mount("/", 0)
	_, fh, _ := ca.create(ca.root, "f", createUnchecked, set{})
	wrote := ca.put(fh, "text", unstable)
	if st, v := cb.commit(fh); st != OK || v == wrote {
		t.Errorf("%v, the same verifier", st)
	}
	if st, v := ca.commit(fh); st != OK || v != wrote {
		t.Errorf("%v, another verifier", st)
	}
}

// A directory that was removed is stale at once, also while its inode waits for the collector:
// a client whose program has the path, where another directory is by now, looks that up.
func TestBesideRemovedDirectory(t *testing.T) {
	a, b := twoSites(t)
	ca, cb := a.mount("/", 0), b.mount("/", 0)
	_, dir, _ := ca.mkdir(ca.root, "d", set{})
	_, file, _ := ca.create(ca.root, "f", createGuarded, set{})
	_, gone, _ := ca.create(ca.root, "gone", createGuarded, set{})
	ca.put(gone, "text", fileSync)
	if st, _, text := cb.readText(gone, 100); st != OK || text != "text" {
		t.Fatalf("%v, %q", st, text)
	}
	for _, name := range []string{"x", strings.Repeat("x", 255)} {
		st, _, _ := cb.lookup(dir, name)
		cb.want("LOOKUP of nothing", st, ErrNoEnt)
		cb.want("REMOVE of nothing", cb.unlink(procRemove, dir, name), ErrNoEnt)
		cb.want("RENAME of nothing", cb.rename(dir, name, cb.root, "x"), ErrNoEnt)
	}
	ca.must("RMDIR", ca.unlink(procRmdir, ca.root, "d"))
	ca.must("REMOVE", ca.unlink(procRemove, ca.root, "gone"))
	_, anew, _ := ca.mkdir(ca.root, "d", set{})
	for call, st := range map[string]Status{
		"GETATTR":                 firstOf(cb.getattr(dir)),
		"ACCESS":                  firstOf(cb.access(dir, accessRead)),
		"LOOKUP":                  first(cb.lookup(dir, "x")),
		"LOOKUP of ..":            first(cb.lookup(dir, "..")),
		"READDIR":                 first(cb.readdir(dir, 0, 4096, false)),
		"CREATE":                  first(cb.create(dir, "x", createUnchecked, set{})),
		"CREATE, exclusive":       first(cb.createExclusive(dir, "x", 1)),
		"MKDIR":                   first(cb.mkdir(dir, "x", set{})),
		"SYMLINK":                 first(cb.symlink(dir, "x", "y")),
		"MKNOD":                   first(cb.mknod(dir, "x", typeFIFO)),
		"REMOVE":                  cb.unlink(procRemove, dir, "x"),
		"RMDIR":                   cb.unlink(procRmdir, dir, "x"),
		"RENAME out of it":        cb.rename(dir, "x", cb.root, "x"),
		"RENAME into it":          cb.rename(cb.root, "f", dir, "x"),
		"RENAME within it":        cb.rename(dir, "x", dir, "y"),
		"LINK":                    cb.link(file, dir, "x"),
		"LINK of what is no more": cb.link(gone, cb.root, "x"),
	} {
		cb.want("in a directory that was removed: "+call, st, ErrStale)
	}
	st, _, _ := cb.create(anew, "x", createGuarded, set{})
	cb.must("CREATE in the one that was made anew", st)
	st, _, _ = cb.lookup(anew, "y")
	cb.want("LOOKUP of nothing in it", st, ErrNoEnt)
	cb.want("RENAME of nothing into it", cb.rename(cb.root, "nothing", anew, "y"), ErrNoEnt)
}

// So are its files and directories, of an export that has a border to look for them.
func TestBesideRemovedTree(t *testing.T) {
	a, b := twoSites(t, photos)
	a.hand(t).mkdir("/", "photos")
	ca, cb := a.mount("/photos", 0), b.mount("/photos", 0)
	_, d, _ := ca.mkdir(ca.root, "d", set{})
	_, in, _ := ca.mkdir(d, "in", set{})
	_, file, _ := ca.create(in, "file", createGuarded, set{})
	ca.must("REMOVE", ca.unlink(procRemove, in, "file"))
	ca.must("RMDIR", ca.unlink(procRmdir, d, "in"))
	ca.must("RMDIR", ca.unlink(procRmdir, ca.root, "d"))
	for name, fh := range map[string][]byte{"d": d, "in": in, "file": file} {
		st, _ := cb.getattr(fh)
		cb.want("GETATTR of "+name, st, ErrStale)
	}
	cb.want("LINK of file", cb.link(file, cb.root, "x"), ErrStale)
	for name, fh := range map[string][]byte{"d": d, "in": in} {
		st, _, _ := cb.lookup(fh, "..")
		cb.want("LOOKUP in "+name, st, ErrStale)
		cb.want("RENAME into "+name, cb.rename(cb.root, "x", fh, "x"), ErrStale)
	}
}

// put writes from the beginning on, and returns the verifier.
func (c *client) put(fh []byte, text string, how uint32) (verifier uint64) {
	c.t.Helper()
	st, res := c.write(fh, 0, how, []byte(text))
	if c.must("WRITE", st); int(res.count) != len(text) {
		c.t.Fatalf("%d bytes of %d", res.count, len(text))
	}
	return res.verifier
}

// readText reads from the beginning on; eof must fit.
func (c *client) readText(fh []byte, most uint32) (Status, *fattr, string) {
	c.t.Helper()
	st, r := c.nfs(procRead, readArgs(fh, 0, most))
	a := postOp(r)
	text := ""
	if st == OK {
		n, eof := r.Uint32(), r.Bool()
		if text = string(r.Opaque(maxTransfer)); int(n) != len(text) || eof != (uint64(n) == a.size) {
			c.t.Errorf("READ of %d bytes: %d, eof %v, size %d", len(text), n, eof, a.size)
		}
	}
	c.end(r)
	return st, a, text
}

package nfsserver

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/nfsserver/xdr"
	"ogw/vfs"
)

func TestMount(t *testing.T) {
	s := newSite(t, Export{Path: "/", Squash: SquashNone}, Export{Path: "/b", Secret: "xyz-0123456789abc"})
	c := s.mount("/", 0)
	c.must("mkdir", first(c.mkdir(c.root, "b", set{})))
	c.must("mkdir", first(c.mkdir(c.root, "other", set{})))
	if st, fh := s.dial().mnt("/b@xyz-0123456789abc"); st != 0 || bytes.Equal(fh, c.root) {
		t.Errorf("with the secret: %d", st)
	}
	for _, x := range []struct {
		path string
		want Status
	}{{"/nothing", ErrNoEnt}, {"/b@wrong", ErrNoEnt}, {strings.Repeat("x", 300), ErrNameTooLong}} {
		if st, _ := s.dial().mnt(x.path); st != uint32(x.want) {
			t.Errorf("mounting %.20s: %d, want %v", x.path, st, x.want)
		}
	}
	c.call(ProgramMount, mountNull, &xdr.Writer{})

	r := c.call(ProgramMount, mountExport, &xdr.Writer{})
	var exports []string
	for r.Bool() {
		exports = append(exports, r.String(maxMountPath))
		for r.Bool() {
			r.String(100)
		}
	}
	c.end(r)
	if strings.Join(exports, " ") != "/ /b" {
		t.Errorf("exports %v", exports)
	}
	if got := c.dump(); strings.Join(got, " ") != "127.0.0.1:/ 127.0.0.1:/b" {
		t.Errorf("mounts %v", got)
	}
	// The mount list reveals to nobody whether a secret is right.
	var w xdr.Writer
	w.String("/b@wrong")
	c.end(c.call(ProgramMount, mountUmnt, &w))
	if got := c.dump(); strings.Join(got, " ") != "127.0.0.1:/" {
		t.Errorf("mounts after UMNT %v", got)
	}
	c.end(c.call(ProgramMount, mountUmntAll, &xdr.Writer{}))
	if got := c.dump(); len(got) != 0 {
		t.Errorf("mounts after UMNTALL %v", got)
	}
}

// Of the mounts, a client is told its own, as many as a reply of bounded size has room for; it
// does not push out those of others.
func TestMountListIsDivided(t *testing.T) {
	s := newSite(t)
	s.mount("/", 0)
	mounts := s.srv.mounts
	other := netip.MustParseAddr("127.0.0.2")
	for i := range 2 * maxMounts {
		mounts.add(other, fmt.Sprintf("/%0*d", maxMountPath-1, i))
	}
	if n := len(mounts.list); n < maxMounts/2 || n > maxMounts {
		t.Errorf("%d mounts", n)
	}
	dump := func(from netip.Addr) (list []string) {
		conn, err := (&net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}).Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return (&client{t: t, conn: conn}).dump()
	}
	if got := dump(netip.MustParseAddr("127.0.0.1")); !slices.Equal(got, []string{"127.0.0.1:/"}) {
		t.Errorf("%d mounts, of %.60q", len(got), got)
	}
	if got := dump(other); len(got) < 32 || len(got) > maxListReply/maxMountPath {
		t.Errorf("%d mounts of the one with many", len(got))
	}
	for n, p := range s.srv.mountProgram().Procs {
		if (n == mountDump || n == mountExport) && p.ReplyBytes == nil {
			t.Errorf("memory of %s is not divided", p.Name)
		}
	}
	mounts.remove(other, "")
	if n := mounts.places.Held(); n != 1 || len(mounts.list) != 1 {
		t.Errorf("%d places, %d mounts", n, len(mounts.list))
	}
}

func (c *client) dump() (list []string) {
	r := c.call(ProgramMount, mountDump, &xdr.Writer{})
	for r.Bool() {
		list = append(list, r.String(255)+":"+r.String(maxMountPath))
	}
	c.end(r)
	return list
}

func first[A, B any](st Status, _ A, _ B) Status { return st }

func TestCreate(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	st, fh, a := c.create(c.root, "f", createGuarded, set{mode: ptr(uint32(0o4751)), uid: ptr(uint32(5)), gid: ptr(uint32(6))})
	c.must("guarded", st)
	if a.kind != typeRegular || a.mode != 0o4751 || a.uid != 5 || a.gid != 6 || a.nlink != 1 || a.size != 0 {
		t.Errorf("attributes %+v", a)
	}
	st, _, _ = c.create(c.root, "f", createGuarded, set{})
	c.want("guarded again", st, ErrExist)

	c.must("write", firstOf(c.write(fh, 0, fileSync, []byte("content"))))
	st, again, a := c.create(c.root, "f", createUnchecked, set{mode: ptr(uint32(0o600))})
	c.must("unchecked on an existing file", st)
	if !bytes.Equal(fh, again) || a.size != 7 || a.mode != 0o4751 {
		t.Errorf("an existing file became %+v", a)
	}
	st, _, a = c.create(c.root, "f", createUnchecked, set{size: ptr(uint64(0))})
	c.must("unchecked with size 0", st)
	if a.size != 0 {
		t.Errorf("not truncated: %d", a.size)
	}

	st, x, _ := c.createExclusive(c.root, "x", 77)
	c.must("exclusive", st)
	st, x2, _ := c.createExclusive(c.root, "x", 77)
	c.want("exclusive, sent again", st, OK)
	if !bytes.Equal(x, x2) {
		t.Error("another file")
	}
	st, _, _ = c.createExclusive(c.root, "x", 78)
	c.want("exclusive by another", st, ErrExist)
	c.must("setattr", c.setattr(x, set{mode: ptr(uint32(0o644))}, nil))

	st, _, _ = c.create(c.root, "big", createUnchecked, set{size: ptr(uint64(1 << 63))})
	c.want("size over the limit", st, ErrFBig)
	for _, name := range []struct {
		name string
		want Status
	}{{"", ErrAcces}, {".", ErrExist}, {"..", ErrExist}, {"a/b", ErrInval}, {"a\x00", ErrInval},
		{strings.Repeat("n", 255), OK}, {strings.Repeat("n", 256), ErrNameTooLong}} {
		st, _, _ := c.create(c.root, name.name, createUnchecked, set{})
		c.want("name "+name.name[:min(len(name.name), 5)], st, name.want)
	}
	st, _, _ = c.create(fh, "y", createUnchecked, set{})
	c.want("in a file", st, ErrNotDir)
}

func firstOf[A any](st Status, _ A) Status { return st }

func TestNamespace(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	st, d, a := c.mkdir(c.root, "d", set{mode: ptr(uint32(0o1777)), uid: ptr(uint32(9))})
	c.must("mkdir", st)
	if a.kind != typeDirectory || a.mode != 0o1777 || a.uid != 9 {
		t.Errorf("directory %+v", a)
	}
	c.want("mkdir again", first(c.mkdir(c.root, "d", set{})), ErrExist)

	_, f, _ := c.create(d, "f", createGuarded, set{})
	c.must("link", c.link(f, d, "hard"))
	c.want("link again", c.link(f, d, "hard"), ErrExist)
	_, a = c.getattr(f)
	if a.nlink != 2 {
		t.Errorf("%d links", a.nlink)
	}
	st, l, a := c.symlink(d, "sym", "../some/where")
	c.must("symlink", st)
	if a.kind != typeSymlink || a.size != 13 {
		t.Errorf("link %+v", a)
	}
	if st, target := c.readlink(l); st != OK || target != "../some/where" {
		t.Errorf("readlink: %v %q", st, target)
	}
	st, _ = c.readlink(f)
	c.want("readlink of a file", st, ErrInval)

	for _, n := range []struct {
		name string
		kind uint32
		dev  []uint32
	}{{"chr", typeChar, []uint32{1, 300}}, {"blk", typeBlock, []uint32{259, 7}}, {"sock", typeSocket, nil}, {"fifo", typeFIFO, nil}} {
		st, _, a := c.mknod(d, n.name, n.kind, n.dev...)
		c.must(n.name, st)
		if a.kind != n.kind || a.mode != 0o640 || n.dev != nil && (a.major != n.dev[0] || a.minor != n.dev[1]) {
			t.Errorf("%s: %+v", n.name, a)
		}
	}
	st, _, _ = c.mknod(d, "reg", typeRegular)
	c.want("mknod of a regular file", st, ErrBadType)

	c.must("rename", c.rename(d, "f", d, "g"))
	st, _, _ = c.lookup(d, "f")
	c.want("the old name", st, ErrNoEnt)
	c.must("rename onto", c.rename(d, "chr", d, "blk"))
	if _, _, a := c.lookup(d, "blk"); a == nil || a.kind != typeChar {
		t.Errorf("renamed onto: %+v", a)
	}
	_, e, _ := c.mkdir(c.root, "e", set{})
	c.must("rename of a directory", c.rename(c.root, "e", d, "e"))
	if st, up, _ := c.lookup(e, ".."); st != OK || !bytes.Equal(up, d) {
		t.Errorf("parent of the moved directory: %v", st)
	}
	c.want("directory below itself", c.rename(c.root, "d", e, "x"), ErrInval)
	c.want("directory onto a file", c.rename(d, "e", d, "g"), ErrNotDir)
	c.want("file onto a directory", c.rename(d, "g", d, "e"), ErrIsDir)
	c.want("rename of nothing", c.rename(d, "nothing", d, "y"), ErrNoEnt)

	c.want("rmdir of a full directory", c.unlink(procRmdir, c.root, "d"), ErrNotEmpty)
	c.want("rmdir of a file", c.unlink(procRmdir, d, "g"), ErrNotDir)
	c.want("remove of a directory", c.unlink(procRemove, d, "e"), ErrIsDir)
	c.want("remove of nothing", c.unlink(procRemove, d, "nothing"), ErrNoEnt)
	c.want("rmdir of .", c.unlink(procRmdir, d, "."), ErrInval)
	for _, e := range c.list(d, 4096, true) {
		proc := uint32(procRemove)
		if e.attr.kind == typeDirectory {
			proc = procRmdir
		}
		c.must("removing "+e.name, c.unlink(proc, d, e.name))
	}
	c.must("rmdir", c.unlink(procRmdir, c.root, "d"))
	st, _ = c.getattr(d)
	c.want("a removed directory", st, ErrStale)
	st, _, _ = c.create(d, "z", createGuarded, set{})
	c.want("create in a removed directory", st, ErrStale)
}

func TestSetattr(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	_, f, a := c.create(c.root, "f", createGuarded, set{mode: ptr(uint32(0o644))})
	mtime := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC).UnixNano()
	c.must("setattr", c.setattr(f, set{mode: ptr(uint32(0o6755)), uid: ptr(uint32(3)), size: ptr(uint64(100)), mtime: &mtime}, nil))
	_, b := c.getattr(f)
	if b.mode&0o777 != 0o755 || b.uid != 3 || b.size != 100 || b.mtime != mtime || b.ctime <= a.ctime || b.fileid != a.fileid || b.fsid == 0 {
		t.Errorf("%+v", b)
	}
	c.want("a guard that holds", c.setattr(f, set{mode: ptr(uint32(0o600))}, &b.ctime), OK)
	c.want("a guard that does not", c.setattr(f, set{mode: ptr(uint32(0o644))}, &b.ctime), ErrNotSync)
	c.must("server's time", c.setattr(f, set{mtimeNow: true}, nil))
	if _, b = c.getattr(f); time.Since(time.Unix(0, b.mtime)) > time.Minute {
		t.Errorf("mtime %v", time.Unix(0, b.mtime))
	}
	c.want("size over the limit", c.setattr(f, set{size: ptr(uint64(1 << 63))}, nil), ErrFBig)
}

func TestLimitsOfTheFileSystem(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	var w xdr.Writer
	w.Opaque(c.root)
	st, r := c.nfs(procFsinfo, &w)
	c.must("FSINFO", st)
	postOp(r)
	if rt, wt := [3]uint32{r.Uint32(), r.Uint32(), r.Uint32()}, [3]uint32{r.Uint32(), r.Uint32(), r.Uint32()}; rt[0] != 1<<20 || wt != rt {
		t.Errorf("transfer sizes %v %v", rt, wt)
	}
	r.Uint32()
	r.Uint64()
	if d := r.Uint64(); d != 1 {
		t.Errorf("time_delta %d", d)
	}
	if p := r.Uint32(); p != 0x1b {
		t.Errorf("properties %x", p)
	}
	c.end(r)
	st, r = c.nfs(procPathconf, &w)
	c.must("PATHCONF", st)
	postOp(r)
	if r.Uint32(); r.Uint32() != 255 {
		t.Error("name_max")
	}
	r.Fixed(16)
	c.end(r)
	st, r = c.nfs(procFsstat, &w)
	c.must("FSSTAT", st)
	postOp(r)
	if total, free := r.Uint64(), r.Uint64(); free > total {
		t.Errorf("%d of %d bytes free", free, total)
	}
	r.Fixed(4*8 + 4)
	c.end(r)
}

// sizedBlobs are on a medium of a certain size.
type sizedBlobs struct {
	cluster.Blobs
	usage cluster.Usage
}

func (b sizedBlobs) Usage(context.Context) (cluster.Usage, error) { return b.usage, nil }

// TestFsstat: what is kept back is not free for programs, and not used either.
func TestFsstat(t *testing.T) {
	disk := mem.NewDisk()
	clu := mem.New(mem.Options{Disk: disk})
	clu.Blobs = sizedBlobs{clu.Blobs, cluster.Usage{Total: 1000, Used: 300, Free: 100}}
	c := openSiteOver(t, disk, clu, vfs.Config{}, everyone).mount("/", 0)
	var w xdr.Writer
	w.Opaque(c.root)
	st, r := c.nfs(procFsstat, &w)
	c.must("FSSTAT", st)
	postOp(r)
	if total, free, avail := r.Uint64(), r.Uint64(), r.Uint64(); total != 1000 || free != 700 || avail != 100 {
		t.Errorf("%d bytes, %d free, %d available", total, free, avail)
	}
	r.Fixed(3*8 + 4)
	c.end(r)
}

// TestWeakCacheConsistency checks that attributes from before an operation
// are sent, and link one to the next, as long as one client changes a
// directory, and that none are sent that hide another's change.
func TestWeakCacheConsistency(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	_, d, a := c.mkdir(c.root, "d", set{})
	last := [2]int64{a.mtime, a.ctime}
	step := func(what string, proc uint32, args *xdr.Writer, made bool) {
		t.Helper()
		st, r := c.nfs(proc, args)
		c.must(what, st)
		if made {
			r.Bool()
			r.Opaque(maxHandle)
			postOp(r)
		}
		before, after := wccBoth(r)
		c.end(r)
		if before == nil || *before != last {
			t.Errorf("%s: before %v, was %v", what, before, last)
		}
		last = [2]int64{after.mtime, after.ctime}
	}
	w := diropArgs(d, "f")
	w.Uint32(createGuarded)
	set{}.put(w)
	step("CREATE", procCreate, w, true)
	w = diropArgs(d, "e")
	set{}.put(w)
	step("MKDIR", procMkdir, w, true)
	step("REMOVE", procRemove, diropArgs(d, "f"), false)
	step("RMDIR", procRmdir, diropArgs(d, "e"), false)

	w = diropArgs(d, "g")
	w.Uint32(createUnchecked)
	set{}.put(w)
	step("CREATE", procCreate, w, true)
	st, r := c.nfs(procCreate, w)
	c.must("CREATE of an existing file", st)
	r.Bool()
	r.Opaque(maxHandle)
	postOp(r)
	if before, _ := wccBoth(r); before != nil {
		t.Error("attributes from before, though nothing changed")
	}
}

// TestNoChangeIsHidden has several clients change one directory at once: a
// chain of attributes from before and after must not jump over the change
// of another.
func TestNoChangeIsHidden(t *testing.T) {
	s := newSite(t)
	root := s.mount("/", 0)
	_, d, _ := root.mkdir(root.root, "d", set{})
	type step struct{ before, after [2]int64 }
	steps := make(chan step, 10_000)
	var wait sync.WaitGroup
	for i := range 4 {
		c := s.mount("/", 0)
		wait.Go(func() {
			for j := range 200 {
				w := diropArgs(d, fmt.Sprintf("%d-%d", i, j))
				set{}.put(w)
				_, r := c.nfs(procMkdir, w)
				r.Bool()
				r.Opaque(maxHandle)
				postOp(r)
				if before, after := wccBoth(r); before != nil {
					steps <- step{*before, [2]int64{after.mtime, after.ctime}}
				}
			}
		})
	}
	wait.Wait()
	close(steps)
	// Two steps from one state would mean that each hid the other.
	seen := map[[2]int64]bool{}
	n := 0
	for st := range steps {
		if n++; seen[st.before] {
			t.Fatal("two changes begin at one state")
		}
		seen[st.before] = true
	}
	t.Logf("%d of 800 changes with attributes from before", n)
}

package nfsserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"ogw/vfs"
)

func randomBytes(n int) []byte {
	b := make([]byte, n+8)
	r := rand.New(rand.NewPCG(uint64(n), 1))
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], r.Uint64())
	}
	return b[:n]
}

func TestReadWrite(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	_, f, _ := c.create(c.root, "f", createGuarded, set{})
	data := randomBytes(3<<20 + 17)
	for off := 0; off < len(data); off += maxTransfer {
		p := data[off:min(off+maxTransfer, len(data))]
		st, w := c.write(f, uint64(off), unstable, p)
		c.must("write", st)
		if int(w.count) != len(p) || w.committed != unstable || w.attr == nil || w.attr.size != uint64(off+len(p)) {
			t.Fatalf("%+v", w)
		}
	}
	check := func() {
		t.Helper()
		for off := 0; off < len(data); off += maxTransfer {
			st, got, eof := c.read(f, uint64(off), maxTransfer)
			c.must("read", st)
			if !bytes.Equal(got, data[off:min(off+maxTransfer, len(data))]) {
				t.Fatalf("data at %d differs", off)
			}
			if eof != (off+len(got) == len(data)) {
				t.Errorf("end of file at %d: %v", off, eof)
			}
		}
	}
	check()
	st, v1 := c.commit(f)
	c.must("commit", st)
	_, w := c.write(f, 5, fileSync, []byte("hello"))
	copy(data[5:], "hello")
	if w.committed != fileSync || w.verifier != v1 {
		t.Errorf("stable write %+v, verifier %x", w, v1)
	}
	check()
	for _, x := range []struct {
		off   uint64
		count uint32
		n     int
		eof   bool
	}{{uint64(len(data)), 10, 0, true}, {1 << 40, 10, 0, true}, {1<<64 - 1, 10, 0, true}, {uint64(len(data)) - 5, 10, 5, true},
		{uint64(len(data)) - 10, 10, 10, true}, {0, 0, 0, false}, {0, 1<<32 - 1, maxTransfer, false}} {
		st, got, eof := c.read(f, x.off, x.count)
		if st != OK || len(got) != x.n || eof != x.eof {
			t.Errorf("read of %d at %d: %v, %d bytes, %v", x.count, x.off, st, len(got), eof)
		}
	}
	c.want("write behind the largest offset", firstOf(c.write(f, 1<<63-4, unstable, []byte("12345"))), ErrFBig)
	c.must("write with a hole", firstOf(c.write(f, 8<<20, unstable, []byte("end"))))
	if st, got, _ := c.read(f, 4<<20, 100); st != OK || !bytes.Equal(got, make([]byte, 100)) {
		t.Error("the hole is not zero")
	}
	_, d, _ := c.mkdir(c.root, "d", set{})
	st, _, _ = c.read(d, 0, 10)
	c.want("read of a directory", st, ErrIsDir)
	c.want("write of a directory", firstOf(c.write(d, 0, unstable, nil)), ErrIsDir)
	_, l, _ := c.symlink(c.root, "l", "f")
	st, _, _ = c.read(l, 0, 10)
	c.want("read of a link", st, ErrInval)
}

func TestManyWritesInFlight(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	_, f, _ := c.create(c.root, "f", createGuarded, set{})
	const n, size = 64, 128 << 10
	data := randomBytes(n * size)
	go func() {
		for i := range n {
			a := writeArgs(f, uint64(i*size), unstable, data[i*size:][:size])
			c.conn.Write(c.record(ProgramNFS, 3, procWrite, a.B))
		}
	}()
	for range n {
		if st := c.anyReply(); st != OK {
			t.Fatalf("write: %v", st)
		}
	}
	c.must("commit", firstOf(c.commit(f)))
	for i := range 8 {
		st, got, _ := c.read(f, uint64(i*n*size/8), n*size/8)
		if st != OK || !bytes.Equal(got, data[i*n*size/8:][:n*size/8]) {
			t.Fatalf("part %d: %v", i, st)
		}
	}
}

// anyReply returns the status of the next reply, whatever it answers.
func (c *client) anyReply() Status {
	var b [4]byte
	if _, err := io.ReadFull(c.conn, b[:]); err != nil {
		c.t.Error(err)
		return ErrIO
	}
	p := make([]byte, binary.BigEndian.Uint32(b[:])&^(1<<31))
	if _, err := io.ReadFull(c.conn, p); err != nil {
		c.t.Error(err)
		return ErrIO
	}
	return Status(binary.BigEndian.Uint32(p[24:]))
}

// TestRightsOfOpenFiles checks that a program which opened a file may go on,
// as it may on a local disk, and that others may not begin.
func TestRightsOfOpenFiles(t *testing.T) {
	s := newSite(t)
	root := s.mount("/", 0)
	root.must("mode of /", root.setattr(root.root, set{mode: ptr(uint32(0o777))}, nil))
	alice, bob := s.mount("/", 1000), s.mount("/", 1001)
	st, f, a := alice.create(alice.root, "f", createGuarded, set{mode: ptr(uint32(0o444))})
	alice.must("create", st)
	if a.uid != 1000 || a.gid != 1000 {
		t.Errorf("owner %d:%d", a.uid, a.gid)
	}
	alice.must("owner writes a file of mode 0444", firstOf(alice.write(f, 0, unstable, []byte("x"))))
	bob.want("another writes it", firstOf(bob.write(f, 0, unstable, []byte("x"))), ErrAcces)
	for what, size := range map[string]set{"ftruncate": {size: ptr(uint64(5))}, "O_TRUNC": {size: ptr(uint64(0)), mtimeNow: true}} {
		alice.must(what+" by the owner of a file of mode 0444", alice.setattr(f, size, nil))
		bob.want(what+" by another", bob.setattr(f, size, nil), ErrAcces)
		for _, flag := range []vfs.FileFlags{vfs.FlagImmutable, vfs.FlagAppend, 0} {
			if err := s.fs.SetFlags(t.Context(), vfs.Root, vfs.Ino(a.fileid), flag); err != nil {
				t.Fatal(err)
			}
			if flag != 0 {
				alice.want(what+" of what is held", alice.setattr(f, size, nil), ErrPerm)
			}
		}
	}
	st, _, _ = bob.read(f, 0, 1)
	bob.want("another reads it", st, OK)
	alice.must("chmod", alice.setattr(f, set{mode: ptr(uint32(0o600))}, nil))
	st, _, _ = bob.read(f, 0, 1)
	bob.want("another reads it after chmod 0600", st, ErrAcces)
	bob.groups = []uint32{1000}
	alice.must("chmod", alice.setattr(f, set{mode: ptr(uint32(0o610))}, nil))
	st, _, _ = bob.read(f, 0, 1)
	bob.want("a group that may execute reads", st, OK)
	bob.want("chmod by another", bob.setattr(f, set{mode: ptr(uint32(0o777))}, nil), ErrPerm)
	bob.want("chown by another", bob.setattr(f, set{uid: ptr(uint32(1001))}, nil), ErrPerm)
	bob.want("truncate by another", bob.setattr(f, set{size: ptr(uint64(0))}, nil), ErrAcces)

	for _, x := range []struct {
		c          *client
		mode, want uint32
	}{
		{alice, 0o700, accessRead | accessModify | accessExtend | accessExecute},
		{alice, 0o400, accessRead},
		{bob, 0o704, 0}, // in the group, so the rights of others do not count
		{bob, 0o050, accessRead | accessExecute},
		{root, 0, accessRead | accessModify | accessExtend},
		{root, 0o100, accessRead | accessModify | accessExtend | accessExecute},
	} {
		alice.must("chmod", alice.setattr(f, set{mode: &x.mode}, nil))
		if st, got := x.c.access(f, 0x3f); st != OK || got != x.want {
			t.Errorf("ACCESS of mode %o by %d: %v %x, want %x", x.mode, x.c.uid, st, got, x.want)
		}
	}
	if st, got := bob.access(bob.root, 0x3f); st != OK || got != accessRead|accessLookup|accessModify|accessExtend|accessDelete {
		t.Errorf("ACCESS of a directory: %v %x", st, got)
	}
}

func TestExportsAreEnforced(t *testing.T) {
	anon := uint32(4000)
	ro := Export{Path: "/b", Secret: "the secret of ro", ReadOnly: true}
	all := Export{Path: "/b", Secret: "the secret of all", Squash: SquashAll, AnonUID: &anon, AnonGID: &anon}
	s := newSite(t, everyone, ro, all)
	root := s.mount("/", 0)
	_, b, _ := root.mkdir(root.root, "b", set{mode: ptr(uint32(0o777))})
	_, f, _ := root.create(b, "f", createGuarded, set{mode: ptr(uint32(0o666))})
	root.must("write", firstOf(root.write(f, 0, fileSync, []byte("data"))))

	r := s.mount("/b@the secret of ro", 0)
	st, rf, _ := r.lookup(r.root, "f")
	r.must("lookup", st)
	if st, got, _ := r.read(rf, 0, 10); st != OK || string(got) != "data" {
		t.Errorf("read: %v %q", st, got)
	}
	for what, st := range map[string]Status{
		"write":   firstOf(r.write(rf, 0, unstable, []byte("x"))),
		"create":  first(r.create(r.root, "n", createUnchecked, set{})),
		"setattr": r.setattr(rf, set{}, nil),
		"remove":  r.unlink(procRemove, r.root, "f"),
		"rename":  r.rename(r.root, "f", r.root, "g"),
		"commit":  firstOf(r.commit(rf)),
	} {
		r.want(what+" through a read-only export", st, ErrROFS)
	}
	if _, got := r.access(rf, 0x3f); got&(accessModify|accessExtend|accessDelete) != 0 {
		t.Errorf("ACCESS through a read-only export: %x", got)
	}
	if st, up, _ := r.lookup(r.root, ".."); st != OK || !bytes.Equal(up, r.root) {
		t.Error("a client walks out of its export")
	}
	_, list, _ := r.readdir(r.root, 0, 4096, false)
	if list[1].name != ".." || list[1].fileid != list[0].fileid {
		t.Errorf("the listing tells of the directory above: %v", list)
	}

	a := s.mount("/b@the secret of all", 1000)
	_, _, attr := a.create(a.root, "mine", createGuarded, set{})
	if attr.uid != anon || attr.gid != anon {
		t.Errorf("owner %d:%d with everyone squashed", attr.uid, attr.gid)
	}
	a.want("rename between exports", a.rename(a.root, "mine", b, "x"), ErrXDev)

	if err := s.srv.SetExports(anyPort([]Export{everyone, ro})); err != nil {
		t.Fatal(err)
	}
	st, _ = a.getattr(a.root)
	a.want("a revoked export", st, ErrStale)
	st, _ = r.getattr(rf)
	r.want("another export", st, OK)
}

func TestHandlesSurviveARestart(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	_, d, _ := c.mkdir(c.root, "d", set{})
	_, f, _ := c.create(d, "f", createGuarded, set{})
	_, w := c.write(f, 0, unstable, []byte("data"))
	for i := range 50 {
		c.must("create", first(c.create(d, string(rune('a'+i%26))+string(rune('a'+i/26)), createGuarded, set{})))
	}
	all := c.list(d, 512, false)
	s.stop()

	s = openSite(t, s.disk)
	c = s.dial()
	st, a := c.getattr(f)
	c.must("getattr after a restart", st)
	if a.size != 4 {
		t.Errorf("%d bytes", a.size)
	}
	st, v := c.commit(f)
	c.must("commit", st)
	if v == w.verifier {
		t.Error("the verifier is the same after a restart")
	}
	for i, e := range all {
		st, list, _ := c.readdir(d, e.cookie, 512, false)
		c.must("readdir", st)
		if i+1 < len(all) && (len(list) == 0 || list[0].name != all[i+1].name) {
			t.Fatalf("behind %s comes %v, not %s", e.name, list, all[i+1].name)
		}
	}
}

func TestBadHandlesOnTheWire(t *testing.T) {
	s := newSite(t)
	other := newSite(t)
	c := s.mount("/", 0)
	foreign := other.mount("/", 0).root
	_, f, _ := c.create(c.root, "f", createGuarded, set{})
	c.must("remove", c.unlink(procRemove, c.root, "f"))
	forged := bytes.Clone(c.root)
	forged[23]++
	for _, x := range []struct {
		name string
		fh   []byte
		want Status
	}{{"empty", nil, ErrBadHandle}, {"forged", forged, ErrBadHandle}, {"cut", c.root[:20], ErrBadHandle},
		{"foreign", foreign, ErrStale}, {"removed", f, ErrStale}} {
		st, _ := c.getattr(x.fh)
		c.want("GETATTR "+x.name, st, x.want)
		st, _, _ = c.lookup(x.fh, "x")
		c.want("LOOKUP "+x.name, st, x.want)
		st, _, _ = c.read(x.fh, 0, 1)
		c.want("READ "+x.name, st, x.want)
		st, _ = c.readlink(x.fh)
		c.want("READLINK "+x.name, st, x.want)
	}
	gen := s.srv.sealer.append(nil, handle{s.srv.exports.Load().list[0].id, vfs.RootIno, 99})
	st, _ := c.getattr(gen)
	c.want("of another generation", st, ErrStale)
}

func TestDuplicatesAreAnsweredOnce(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	c.must("create", first(c.create(c.root, "f", createGuarded, set{})))
	args := diropArgs(c.root, "f")
	rec := c.record(ProgramNFS, 3, procRemove, args.B)
	for i := range 3 {
		if _, err := c.conn.Write(rec); err != nil {
			t.Fatal(err)
		}
		if st := Status(c.reply(c.xid).Uint32()); st != OK {
			t.Errorf("REMOVE, sent for the %dth time: %v", i+1, st)
		}
	}
	c.want("REMOVE as a new call", c.unlink(procRemove, c.root, "f"), ErrNoEnt)
	for _, p := range s.srv.Stats() {
		if p.Proc == "REMOVE" && (p.Calls != 4 || p.Replayed != 2 || p.Errors != 1) {
			t.Errorf("%+v", p)
		}
	}
}

// TestDuplicatesAreEqual: a WRITE that differs from one before in its data alone, wherever, is
// another one.
func TestDuplicatesAreEqual(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	_, f, _ := c.create(c.root, "f", createGuarded, set{})
	data := make([]byte, 64<<10)
	for _, at := range []int{0, 600, len(data) - 1} {
		data[at]++
		c = s.mount("/", 0) // by a connection of its own
		c.xid = 7
		c.must("write", firstOf(c.write(f, 0, fileSync, data)))
		if _, got, _ := c.read(f, 0, uint32(len(data))); !bytes.Equal(got, data) {
			t.Errorf("byte %d is not what was written", at)
		}
	}
}

// TestOthersChangeAFile: who may write to a file that is not theirs takes its
// setuid and setgid off, and may truncate it as open(O_TRUNC) does.
func TestOthersChangeAFile(t *testing.T) {
	s := newSite(t)
	root, other := s.mount("/", 0), s.mount("/", 1001)
	for name, change := range map[string]func(c *client, fh []byte) Status{
		"unstable":  func(c *client, fh []byte) Status { return firstOf(c.write(fh, 0, unstable, []byte("x"))) },
		"file sync": func(c *client, fh []byte) Status { return firstOf(c.write(fh, 0, fileSync, []byte("x"))) },
		"O_TRUNC": func(c *client, fh []byte) Status {
			return c.setattr(fh, set{size: ptr(uint64(0)), mtimeNow: true}, nil)
		},
	} {
		mode := set{mode: ptr(uint32(0o6777)), uid: ptr(uint32(5)), gid: ptr(uint32(5))}
		_, f, _ := root.create(root.root, name, createGuarded, set{})
		root.must("content", firstOf(root.write(f, 0, fileSync, []byte("content"))))
		root.must("mode", root.setattr(f, mode, nil))
		root.must("mode behind the owner", root.setattr(f, set{mode: mode.mode}, nil))
		root.must("the superuser writes", firstOf(root.write(f, 3, fileSync, []byte("x"))))
		if _, a := root.getattr(f); a.mode&0o7777 != 0o6777 {
			t.Errorf("%s: the superuser's write leaves %o", name, a.mode)
		}
		other.must(name, change(other, f))
		if _, a := other.getattr(f); a.mode&0o7777 != 0o777 {
			t.Errorf("%s: mode %o, want 777", name, a.mode&0o7777)
		}
	}
	_, f, _ := root.create(root.root, "empty", createGuarded, set{mode: ptr(uint32(0o666))})
	other.must("O_TRUNC of an empty file", other.setattr(f, set{mtimeNow: true}, nil))
	_, f, _ = root.create(root.root, "private", createGuarded, set{mode: ptr(uint32(0o644))})
	other.want("O_TRUNC without the right to write", other.setattr(f, set{size: ptr(uint64(0)), mtimeNow: true}, nil), ErrAcces)
	other.want("the same of an empty file", other.setattr(f, set{mtimeNow: true}, nil), ErrAcces)
	_, f, _ = root.create(root.root, "public", createGuarded, set{mode: ptr(uint32(0o666))})
	other.want("a time of one's own", other.setattr(f, set{size: ptr(uint64(0)), mtime: ptr(int64(1))}, nil), ErrPerm)
}

// TestWriteRevokesCapability: a WRITE takes the capabilities of a program
// away, the superuser's too, before it is flushed and after.
func TestWriteRevokesCapability(t *testing.T) {
	const name = "security.capability"
	s := newSite(t)
	for _, uid := range []uint32{0, 1001} {
		for _, stable := range []uint32{unstable, fileSync} {
			c := s.mount("/", uid)
			file := fmt.Sprintf("%d-%d", uid, stable)
			_, f, _ := s.mount("/", 0).create(c.root, file, createGuarded, set{mode: ptr(uint32(0o666))})
			a, err := s.fs.Lookup(t.Context(), vfs.Root, vfs.RootIno, file)
			if err == nil {
				err = s.fs.SetXattr(t.Context(), vfs.Root, a.Ino, vfs.Xattr{Name: name, Value: []byte("v")}, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.must("write", firstOf(c.write(f, 0, stable, []byte("x"))))
			if _, err := s.fs.GetXattr(t.Context(), vfs.Root, a.Ino, name); !errors.Is(err, vfs.ErrNoAttr) {
				t.Errorf("user %d, stability %d: %v after the write", uid, stable, err)
			}
			c.must("commit", firstOf(c.commit(f)))
			if _, err := s.fs.GetXattr(t.Context(), vfs.Root, a.Ino, name); !errors.Is(err, vfs.ErrNoAttr) {
				t.Errorf("user %d, stability %d: %v after the commit", uid, stable, err)
			}
		}
	}
}

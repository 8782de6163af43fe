package nfsserver

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/integration/testenv/nfsclient"
	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
	"ogw/vfs"
)

// site is a server over a namespace of its own.
type site struct {
	t     testing.TB
	disk  *mem.Disk
	clu   *cluster.Cluster
	fs    *vfs.FS
	srv   *Server
	addr  string
	done  chan error
	dials uint32
}

var everyone = Export{Path: "/", Squash: SquashNone}

func newSite(t testing.TB, exports ...Export) *site {
	t.Helper()
	return openSite(t, mem.NewDisk(), exports...)
}

func openSite(t testing.TB, disk *mem.Disk, exports ...Export) *site {
	t.Helper()
	if len(exports) == 0 {
		exports = []Export{everyone}
	}
	return openSiteOver(t, disk, mem.New(mem.Options{Disk: disk}), vfs.Config{}, exports...)
}

// openSiteOver is openSite over a cluster on disk.
func openSiteOver(t testing.TB, disk *mem.Disk, clu *cluster.Cluster, cfg vfs.Config, exports ...Export) *site {
	t.Helper()
	s := &site{t: t, disk: disk, clu: clu}
	exports = anyPort(exports)
	var err error
	if s.fs, err = vfs.Open(context.Background(), s.clu, cfg); err != nil {
		t.Fatal(err)
	}
	if s.srv, err = New(Config{FS: s.fs, Exports: exports, Logger: testLogger(t)}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.done = make(chan error, 1)
	go func() { s.done <- s.srv.Serve(l) }()
	t.Cleanup(s.stop)
	return s
}

// anyPort has exports take calls from any port: tests need not be root.
func anyPort(exports []Export) []Export {
	exports = slices.Clone(exports)
	for i := range exports {
		exports[i].Insecure = true
	}
	return exports
}

// stop shuts down in order; it may be called twice.
func (s *site) stop() {
	if s.fs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.srv.Shutdown(ctx); err != nil {
		s.t.Errorf("shutdown: %v", err)
	}
	if err := <-s.done; err != nil {
		s.t.Errorf("serve: %v", err)
	}
	if err := s.fs.Close(ctx); err != nil {
		s.t.Errorf("closing the namespace: %v", err)
	}
	s.clu.Close()
	s.fs = nil
}

func testLogger(t testing.TB) *slog.Logger {
	if _, fuzzing := t.(*testing.F); fuzzing {
		return slog.New(slog.DiscardHandler) // F.Log is not for the fuzz function
	}
	return slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

// client speaks NFS by hand.
type client struct {
	t        testing.TB
	conn     net.Conn
	uid, gid uint32
	groups   []uint32
	root     []byte

	mu  sync.Mutex
	xid uint32
}

func (s *site) dial() *client {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(60 * time.Second))
	s.dials++
	// Clients start anywhere; equal numbers would make duplicates of calls.
	return &client{t: s.t, conn: conn, xid: s.dials * 100_000_000}
}

// mount dials and mounts a path as a user.
func (s *site) mount(path string, uid uint32) *client {
	s.t.Helper()
	c := s.dial()
	c.uid, c.gid = uid, uid
	st, fh := c.mnt(path)
	if st != 0 {
		s.t.Fatalf("mounting %s: %d", path, st)
	}
	c.root = fh
	return c
}

func (c *client) record(prog, vers, proc uint32, args []byte) []byte {
	c.xid++
	who := nfsclient.Cred{Machine: "test", UID: c.uid, GID: c.gid, Groups: c.groups}
	return nfsclient.Record(c.xid, prog, vers, proc, &who, args)
}

// call sends a call and returns its results.
func (c *client) call(prog, proc uint32, args *xdr.Writer) *xdr.Reader {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.conn.Write(c.record(prog, 3, proc, args.B)); err != nil {
		c.t.Fatal(err)
	}
	return c.reply(c.xid)
}

func (c *client) reply(xid uint32) *xdr.Reader {
	c.t.Helper()
	b, err := nfsclient.ReadReply(c.conn)
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := nfsclient.Results(b, xid)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (c *client) nfs(proc uint32, args *xdr.Writer) (Status, *xdr.Reader) {
	c.t.Helper()
	r := c.call(ProgramNFS, proc, args)
	return Status(r.Uint32()), r
}

func (c *client) mnt(path string) (uint32, []byte) {
	c.t.Helper()
	var w xdr.Writer
	w.String(path)
	r := c.call(ProgramMount, mountMnt, &w)
	st := r.Uint32()
	if st != 0 {
		return st, nil
	}
	fh := r.Opaque(maxHandle)
	flavors := make([]uint32, r.Uint32())
	for i := range flavors {
		flavors[i] = r.Uint32()
	}
	c.end(r)
	if len(flavors) != 2 || flavors[0] != rpc.AuthUnix {
		c.t.Errorf("flavors %v", flavors)
	}
	return st, fh
}

// end fails the test if a reply is short or goes on.
func (c *client) end(r *xdr.Reader) {
	c.t.Helper()
	if r.Err() != nil || r.Len() != 0 {
		c.t.Fatalf("reply: %v, %d bytes left", r.Err(), r.Len())
	}
}

type fattr struct {
	kind, mode, nlink, uid, gid uint32
	size, used                  uint64
	major, minor                uint32
	fsid, fileid                uint64
	atime, mtime, ctime         int64
}

func getAttr(r *xdr.Reader) *fattr {
	a := &fattr{kind: r.Uint32(), mode: r.Uint32(), nlink: r.Uint32(), uid: r.Uint32(), gid: r.Uint32(),
		size: r.Uint64(), used: r.Uint64(), major: r.Uint32(), minor: r.Uint32(), fsid: r.Uint64(), fileid: r.Uint64()}
	a.atime, a.mtime, a.ctime = getTime(r).UnixNS(), getTime(r).UnixNS(), getTime(r).UnixNS()
	return a
}

func postOp(r *xdr.Reader) *fattr {
	if !r.Bool() {
		return nil
	}
	return getAttr(r)
}

func wcc(r *xdr.Reader) *fattr {
	_, after := wccBoth(r)
	return after
}

// wccBoth returns mtime and ctime from before, if they were sent.
func wccBoth(r *xdr.Reader) (before *[2]int64, after *fattr) {
	if r.Bool() {
		r.Uint64()
		before = &[2]int64{getTime(r).UnixNS(), getTime(r).UnixNS()}
	}
	return before, postOp(r)
}

func diropArgs(dir []byte, name string) *xdr.Writer {
	w := &xdr.Writer{}
	w.Opaque(dir)
	w.String(name)
	return w
}

// set is a sattr3 in the making.
type set struct {
	mode, uid, gid *uint32
	size           *uint64
	mtime          *int64
	mtimeNow       bool
}

func ptr[T any](v T) *T { return &v }

func (s set) put(w *xdr.Writer) {
	for _, v := range []*uint32{s.mode, s.uid, s.gid} {
		w.Bool(v != nil)
		if v != nil {
			w.Uint32(*v)
		}
	}
	w.Bool(s.size != nil)
	if s.size != nil {
		w.Uint64(*s.size)
	}
	w.Uint32(timeKeep)
	switch {
	case s.mtimeNow:
		w.Uint32(timeServer)
	case s.mtime != nil:
		w.Uint32(timeClient)
		putTime(w, vfs.TimeNS(*s.mtime))
	default:
		w.Uint32(timeKeep)
	}
}

func (c *client) getattr(fh []byte) (Status, *fattr) {
	c.t.Helper()
	var w xdr.Writer
	w.Opaque(fh)
	st, r := c.nfs(procGetattr, &w)
	if st != OK {
		c.end(r)
		return st, nil
	}
	a := getAttr(r)
	c.end(r)
	return st, a
}

func (c *client) setattr(fh []byte, s set, guard *int64) Status {
	c.t.Helper()
	var w xdr.Writer
	w.Opaque(fh)
	s.put(&w)
	w.Bool(guard != nil)
	if guard != nil {
		putTime(&w, vfs.TimeNS(*guard))
	}
	st, r := c.nfs(procSetattr, &w)
	wcc(r)
	c.end(r)
	return st
}

func (c *client) lookup(dir []byte, name string) (Status, []byte, *fattr) {
	c.t.Helper()
	st, r := c.nfs(procLookup, diropArgs(dir, name))
	if st != OK {
		postOp(r)
		c.end(r)
		return st, nil, nil
	}
	fh, a := r.Opaque(maxHandle), postOp(r)
	postOp(r)
	c.end(r)
	return st, fh, a
}

func (c *client) access(fh []byte, want uint32) (Status, uint32) {
	c.t.Helper()
	var w xdr.Writer
	w.Opaque(fh)
	w.Uint32(want)
	st, r := c.nfs(procAccess, &w)
	postOp(r)
	got := uint32(0)
	if st == OK {
		got = r.Uint32()
	}
	c.end(r)
	return st, got
}

// made decodes what CREATE, MKDIR, SYMLINK and MKNOD answer.
func (c *client) made(st Status, r *xdr.Reader) (Status, []byte, *fattr) {
	c.t.Helper()
	var fh []byte
	var a *fattr
	if st == OK {
		if r.Bool() {
			fh = r.Opaque(maxHandle)
		}
		a = postOp(r)
	}
	wcc(r)
	c.end(r)
	return st, fh, a
}

func (c *client) create(dir []byte, name string, how uint32, s set) (Status, []byte, *fattr) {
	c.t.Helper()
	w := diropArgs(dir, name)
	w.Uint32(how)
	s.put(w)
	return c.made(c.nfs(procCreate, w))
}

func (c *client) createExclusive(dir []byte, name string, verifier uint64) (Status, []byte, *fattr) {
	c.t.Helper()
	w := diropArgs(dir, name)
	w.Uint32(createExclusive)
	w.Uint64(verifier)
	return c.made(c.nfs(procCreate, w))
}

func (c *client) mkdir(dir []byte, name string, s set) (Status, []byte, *fattr) {
	c.t.Helper()
	w := diropArgs(dir, name)
	s.put(w)
	return c.made(c.nfs(procMkdir, w))
}

func (c *client) symlink(dir []byte, name, target string) (Status, []byte, *fattr) {
	c.t.Helper()
	w := diropArgs(dir, name)
	set{}.put(w)
	w.String(target)
	return c.made(c.nfs(procSymlink, w))
}

func (c *client) mknod(dir []byte, name string, kind uint32, dev ...uint32) (Status, []byte, *fattr) {
	c.t.Helper()
	w := diropArgs(dir, name)
	w.Uint32(kind)
	if kind == typeChar || kind == typeBlock || kind == typeSocket || kind == typeFIFO {
		set{mode: ptr(uint32(0o640))}.put(w)
	}
	for _, d := range dev {
		w.Uint32(d)
	}
	return c.made(c.nfs(procMknod, w))
}

func (c *client) readlink(fh []byte) (Status, string) {
	c.t.Helper()
	var w xdr.Writer
	w.Opaque(fh)
	st, r := c.nfs(procReadlink, &w)
	postOp(r)
	target := ""
	if st == OK {
		target = r.String(maxPathArg)
	}
	c.end(r)
	return st, target
}

func (c *client) unlink(proc uint32, dir []byte, name string) Status {
	c.t.Helper()
	st, r := c.nfs(proc, diropArgs(dir, name))
	wcc(r)
	c.end(r)
	return st
}

func (c *client) rename(from []byte, name string, to []byte, newName string) Status {
	c.t.Helper()
	w := diropArgs(from, name)
	w.Opaque(to)
	w.String(newName)
	st, r := c.nfs(procRename, w)
	wcc(r)
	wcc(r)
	c.end(r)
	return st
}

func (c *client) link(fh, dir []byte, name string) Status {
	c.t.Helper()
	w := &xdr.Writer{}
	w.Opaque(fh)
	w.Opaque(dir)
	w.String(name)
	st, r := c.nfs(procLink, w)
	postOp(r)
	wcc(r)
	c.end(r)
	return st
}

func readArgs(fh []byte, off uint64, count uint32) *xdr.Writer {
	w := &xdr.Writer{}
	w.Opaque(fh)
	w.Uint64(off)
	w.Uint32(count)
	return w
}

func (c *client) read(fh []byte, off uint64, count uint32) (st Status, data []byte, eof bool) {
	c.t.Helper()
	st, r := c.nfs(procRead, readArgs(fh, off, count))
	postOp(r)
	if st == OK {
		n := r.Uint32()
		eof = r.Bool()
		data = r.Opaque(maxTransfer)
		if int(n) != len(data) {
			c.t.Errorf("count %d, %d bytes", n, len(data))
		}
	}
	c.end(r)
	return st, data, eof
}

func writeArgs(fh []byte, off uint64, stable uint32, data []byte) *xdr.Writer {
	w := readArgs(fh, off, uint32(len(data)))
	w.Uint32(stable)
	w.Opaque(data)
	return w
}

type written struct {
	count, committed uint32
	verifier         uint64
	attr             *fattr
}

func (c *client) write(fh []byte, off uint64, stable uint32, data []byte) (st Status, res written) {
	c.t.Helper()
	st, r := c.nfs(procWrite, writeArgs(fh, off, stable, data))
	res.attr = wcc(r)
	if st == OK {
		res.count, res.committed, res.verifier = r.Uint32(), r.Uint32(), r.Uint64()
	}
	c.end(r)
	return st, res
}

func (c *client) commit(fh []byte) (st Status, verifier uint64) {
	c.t.Helper()
	st, r := c.nfs(procCommit, readArgs(fh, 0, 0))
	wcc(r)
	if st == OK {
		verifier = r.Uint64()
	}
	c.end(r)
	return st, verifier
}

type dirent struct {
	name   string
	fileid uint64
	cookie uint64
	attr   *fattr
	fh     []byte
}

// readdir reads one reply of READDIR, or of READDIRPLUS with plus.
func (c *client) readdir(dir []byte, cookie uint64, bytes uint32, plus bool) (st Status, list []dirent, eof bool) {
	c.t.Helper()
	w := &xdr.Writer{}
	w.Opaque(dir)
	w.Uint64(cookie)
	w.Uint64(0)
	proc := uint32(procReaddir)
	if plus {
		proc = procReaddirplus
		w.Uint32(bytes)
	}
	w.Uint32(bytes)
	st, r := c.nfs(proc, w)
	total := r.Len() + 4
	postOp(r)
	if st != OK {
		c.end(r)
		return st, nil, false
	}
	r.Uint64()
	for r.Bool() {
		e := dirent{fileid: r.Uint64(), name: r.String(1024), cookie: r.Uint64()}
		if plus {
			e.attr = postOp(r)
			if r.Bool() {
				e.fh = r.Opaque(maxHandle)
			}
		}
		list = append(list, e)
	}
	eof = r.Bool()
	c.end(r)
	if total > int(max(bytes, minDirReply)) {
		c.t.Errorf("a reply of %d bytes, %d asked for", total, bytes)
	}
	return st, list, eof
}

// list reads a whole directory, without "." and "..".
func (c *client) list(dir []byte, bytes uint32, plus bool) []dirent {
	c.t.Helper()
	var all []dirent
	cookie := uint64(0)
	for {
		st, list, eof := c.readdir(dir, cookie, bytes, plus)
		if st != OK {
			c.t.Fatalf("READDIR: %v", st)
		}
		for _, e := range list {
			if !isDots(e.name) {
				all = append(all, e)
			}
			cookie = e.cookie
		}
		if eof {
			return all
		}
		if len(list) == 0 {
			c.t.Fatal("an empty reply before the end")
		}
	}
}

// must fails the test unless a status is OK.
func (c *client) must(what string, st Status) {
	c.t.Helper()
	if st != OK {
		c.t.Fatalf("%s: %v", what, st)
	}
}

func (c *client) want(what string, got, want Status) {
	c.t.Helper()
	if got != want {
		c.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

package main

import (
	"context"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"ogw/httpapi/admin"
	"ogw/integration/testenv/resvport"
	"ogw/nfsserver"
	"ogw/nfsserver/nlm"
	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
)

// nfsLocker is an NFS client that locks, and nothing else.
type nfsLocker struct {
	t  *testing.T
	nc net.Conn
}

func newNFSLocker(t *testing.T, addr string) *nfsLocker {
	nc, err := resvport.Dial("", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return &nfsLocker{t, nc}
}

// call makes a call and returns what stands behind the status 0.
func (c *nfsLocker) call(prog, vers, proc uint32, args *xdr.Writer) *xdr.Reader {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	b, err := rpc.Invoke(ctx, c.nc, rpc.Procedure{Prog: prog, Vers: vers, Proc: proc}, args.B)
	if err != nil {
		c.t.Fatal(err)
	}
	r := xdr.NewReader(b)
	if prog == nlm.ProgramNumber {
		r.Opaque(100)
	}
	if status := r.Uint32(); status != 0 || r.Err() != nil {
		c.t.Fatalf("program %d procedure %d: status %d %v", prog, proc, status, r.Err())
	}
	return &r
}

// lock takes a shared lock on a file of a directory that is exported.
func (c *nfsLocker) lock(host, dir, name string, start, length uint64) {
	c.t.Helper()
	var mnt, lookup, lock xdr.Writer
	mnt.String(dir)
	root := c.call(nfsserver.ProgramMount, 3, 1, &mnt).Opaque(64)
	lookup.Opaque(root)
	lookup.String(name)
	fh := c.call(nfsserver.ProgramNFS, 3, 3, &lookup).Opaque(64)
	lock.String("cookie")
	lock.Bool(false) // wait
	lock.Bool(false) // exclusive
	lock.String(host)
	lock.Opaque(fh)
	lock.String("17@" + host)
	lock.Uint32(17)
	lock.Uint64(start)
	lock.Uint64(length)
	lock.Bool(false) // reclaim
	lock.Uint32(3)   // state
	c.call(nlm.ProgramNumber, nlm.Version, 2, &lock)
}

func (d *daemon) listen(protocol string) string {
	d.t.Helper()
	return strings.TrimPrefix(d.url(protocol), "http://")
}

// TestLocks lists the locks of two doors, and frees those of an NFS client
// that has gone.
func TestLocks(t *testing.T) {
	needFUSE(t)
	needReservedPorts(t)
	w := newWorld(t)
	d := w.serve(anyPort...)
	d.put("/photos/db", "pages")
	d.put("/photos/below/flocked", "hello")
	mnt := w.mkdir("mnt")
	w.ok("mount", mnt)
	defer w.ogw("umount", "--lazy", mnt)
	f, err := os.OpenFile(mnt+"/photos/below/flocked", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	client := newNFSLocker(t, d.listen("nfs"))
	client.lock("build7.example.com", "/photos", "db", 100, 50)
	client.lock("build7.example.com", "/photos", "db", 1000, 0)

	list := func(args ...string) []admin.Lock {
		t.Helper()
		var l admin.LockList
		if w.json(&l, append([]string{"lock", "list"}, args...)...); l.More || l.Grace {
			t.Errorf("%+v", l)
		}
		return l.Locks
	}
	all := list()
	if len(all) != 3 {
		t.Fatalf("%+v", all)
	}
	nfs := admin.Lock{Door: "nfs", Client: "127.0.0.1", Host: "build7.example.com", Server: "127.0.0.1", PID: 17, Owner: "17@build7.example.com",
		Path: "photos/db", Inode: all[0].Inode, Kind: "range", Type: "shared", Offset: 100, Length: 50}
	if all[0] != nfs || all[1].Offset != 1000 || all[1].Length != 0 {
		t.Errorf("%+v", all)
	}
	if x := all[2]; x.Door != "fuse" || x.Client != mnt || x.Kind != "flock" || x.Type != "exclusive" || x.Path != "photos/below/flocked" {
		t.Errorf("%+v", x)
	}
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"photos/db"}, 2}, {[]string{"/photos"}, 3}, {[]string{"photos/below/"}, 1}, {[]string{"/"}, 3},
		{[]string{"--client", "127.0.0.1"}, 2}, {[]string{"--client", "BUILD7.example.com"}, 2}, {[]string{"--client", mnt}, 1},
		{[]string{"photos/below", "--client", "127.0.0.1"}, 0},
	} {
		if got := list(c.args...); len(got) != c.want {
			t.Errorf("%v: %+v", c.args, got)
		}
	}
	text := w.ok("lock", "list")
	for _, want := range []string{"127.0.0.1 (build7.example.com) through 127.0.0.1", "100-149", "1000-end", "photos/db", mnt, "exclusive", "held"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"lock", "list", "photos/none"}, exitNotFound, "photos/none"},
		{[]string{"lock", "free", "--client", "10.9.9.9"}, exitNotFound, "no NFS client 10.9.9.9"},
		{[]string{"lock", "free", "--client", mnt}, exitNotFound, "no NFS client"},
		{[]string{"lock", "free", "--client", "build7"}, exitFailure, "is connected to gateway nfs"},
	} {
		if _, errs, code := w.ogw(c.args...); code != c.code || !strings.Contains(errs, c.say) {
			t.Errorf("%v: %d %s, want %d %s", c.args, code, errs, c.code, c.say)
		}
	}
	if got := list(); len(got) != 3 {
		t.Errorf("a refused request freed something: %+v", got)
	}
	if out := w.ok("lock", "free", "--client", "build7", "--force"); !strings.Contains(out, "2 locks and 0 share reservations of 127.0.0.1 (build7.example.com) through 127.0.0.1 freed on gateway nfs") {
		t.Errorf("%s", out)
	}
	if got := list(); len(got) != 1 || got[0].Door != "fuse" {
		t.Errorf("%+v", got)
	}

	// A client whose connection has ended needs no force.
	client.lock("build7.example.com", "/photos", "db", 0, 1)
	client.nc.Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, errs, code := w.ogw("lock", "free", "--client", "127.0.0.1"); code == exitOK {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%d %s", code, errs)
		}
	}
	if got := list("--client", "127.0.0.1"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if log := d.stderr.String(); !strings.Contains(log, "freed by the operator") || !strings.Contains(log, "forced=true") || !strings.Contains(log, "forced=false") {
		t.Errorf("the log does not tell:\n%s", log)
	}
	f.Close()
	w.ok("umount", mnt)
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	if got := list(); len(got) != 0 {
		t.Errorf("without a process: %+v", got)
	}
	if _, errs, code := w.ogw("lock", "free", "--client", "build7"); code != exitFailure || !strings.Contains(errs, "no process serves") {
		t.Errorf("without a process: %d %s", code, errs)
	}
}

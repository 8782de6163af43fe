package nfsserver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ogw/cluster/mem"
	"ogw/vfs"
)

// recorder keeps what a server reports.
type recorder struct {
	mu   sync.Mutex
	list []string
}

func (r *recorder) done(x *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, fmt.Sprintf("%s %d/%s %d/%s %s uid=%d,%d %v rights=%v", x.Operation, x.Ino, x.Name, x.ToDir, x.ToName,
		x.Path, x.Claimed, x.UID, x.Status, x.Rights))
}

// recordedSite is a server that reports to a recorder.
func recordedSite(t *testing.T, all bool, exports ...Export) (*site, *recorder) {
	t.Helper()
	rec := &recorder{}
	disk := mem.NewDisk()
	s := &site{t: t, disk: disk, clu: mem.New(mem.Options{Disk: disk}), done: make(chan error, 1)}
	var err error
	if s.fs, err = vfs.Open(context.Background(), s.clu, vfs.Config{}); err != nil {
		t.Fatal(err)
	}
	if s.srv, err = New(Config{FS: s.fs, Exports: anyPort(exports), Done: rec.done, DoneAll: all}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	go func() { s.done <- s.srv.Serve(l) }()
	t.Cleanup(s.stop)
	return s, rec
}

// Refusals and changes of buckets are reported, with who and what; all else only
// on request, and a secret never.
func TestRecords(t *testing.T) {
	s, rec := recordedSite(t, false, everyone, Export{Path: "/ro", Squash: SquashAll, ReadOnly: true, Secret: "open-sesame-open"})
	c := s.mount("/", 0)
	_, bucket, _ := c.mkdir(c.root, "photos", set{mode: ptr[uint32](0o700)})
	c.must("chmod", c.setattr(bucket, set{mode: ptr[uint32](0o750)}, nil))
	_, file, _ := c.create(bucket, "f", createUnchecked, set{mode: ptr[uint32](0o600)})
	c.must("chmod of a file", c.setattr(file, set{mode: ptr[uint32](0o640)}, nil))
	c.must("rename within", c.rename(bucket, "f", bucket, "g"))
	c.must("rename of a bucket", c.rename(c.root, "photos", c.root, "pictures"))
	_, _, _ = c.mkdir(c.root, "ro", set{})
	c.mnt("/ro@guess")
	forged := slices.Clone(bucket)
	forged[len(forged)-1] ^= 1
	c.getattr(forged)
	bob := s.mount("/", 1000)
	bob.mkdir(bucket, "mine", set{})
	other := s.mount("/ro@open-sesame-open", 1000)
	other.unlink(procRmdir, other.root, "x")
	c.unlink(procRemove, bucket, "g")
	c.must("rmdir", c.unlink(procRmdir, c.root, "pictures"))
	want := []string{
		"MKDIR 1/photos 0/  uid=0,0 nfs: OK rights=true",
		"SETATTR 2/ 0/  uid=0,0 nfs: OK rights=true",
		"RENAME 1/photos 1/pictures  uid=0,0 nfs: OK rights=true",
		"MKDIR 1/ro 0/  uid=0,0 nfs: OK rights=true",
		"MNT 0/ 0/ /ro uid=0,0 nfs: NOENT rights=false",
		"GETATTR 0/ 0/  uid=0,0 nfs: BADHANDLE rights=false",
		"MKDIR 2/mine 0/  uid=1000,1000 nfs: ACCES rights=false",
		"RMDIR 0/x 0/  uid=1000,1000 nfs: ROFS rights=false",
		"RMDIR 1/pictures 0/  uid=0,0 nfs: OK rights=true",
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if !slices.Equal(rec.list, want) {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(rec.list, "\n"), strings.Join(want, "\n"))
	}
}

// Who may not even connect is reported, and on request every call.
func TestRecordsOfAll(t *testing.T) {
	s, rec := recordedSite(t, true, everyone)
	c := s.mount("/", 0)
	_, file, _ := c.create(c.root, "f", createUnchecked, set{})
	c.write(file, 0, 2, []byte("x"))
	c.read(file, 0, 1)
	rec.mu.Lock()
	for i, op := range []string{"MNT", "CREATE", "WRITE", "READ"} {
		if i >= len(rec.list) || !strings.HasPrefix(rec.list[i], op+" ") {
			t.Errorf("%d is not %s in %v", i, op, rec.list)
		}
	}
	rec.list = nil
	rec.mu.Unlock()
	if err := s.srv.SetExports([]Export{{Path: "/", Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}}); err != nil {
		t.Fatal(err)
	}
	s.dial()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		rec.mu.Lock()
		n := len(rec.list)
		rec.mu.Unlock()
		if n > 0 || time.Now().After(end) {
			break
		}
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if len(rec.list) != 1 || !strings.HasPrefix(rec.list[0], "CONNECT ") {
		t.Errorf("%v", rec.list)
	}
}

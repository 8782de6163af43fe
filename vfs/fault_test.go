package vfs

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
)

// later is a clock by which no blob is young.
func later() time.Time { return time.Now().Add(time.Hour) }

// checkAfterFault allows only what an interrupted writer may leave, mends it,
// and wants nothing to be left.
func checkAfterFault(t *testing.T, fs *FS, what string) {
	t.Helper()
	rep, err := fs.Check(bg, CheckOptions{Data: true, Repair: true})
	want(t, err, nil)
	for _, p := range rep.Problems {
		if p.Kind != "orphan-blob" || !p.Repaired {
			t.Errorf("%s: check: %s: %s", what, p.Kind, p.Detail)
		}
	}
	_, err = fs.Collect(bg)
	want(t, err, nil)
	rep, err = fs.Check(bg, CheckOptions{})
	want(t, err, nil)
	for _, p := range rep.Problems {
		t.Errorf("%s: second check: %s: %s", what, p.Kind, p.Detail)
	}
}

// faultScript is a life of two files. Every version of a file is one byte
// value all over it; seen records the versions that a reader may find.
type faultScript struct {
	fs     *FS
	a, b   Ino
	synced [2]byte // oldest version that a reader may find
	newest [2]byte
	errs   int
}

const faultSize = 50 << 10

func (s *faultScript) do(err error) bool {
	if err != nil {
		s.errs++
	}
	return err == nil
}

func (s *faultScript) write(t *testing.T, f *File, i int, v byte) {
	p := bytes.Repeat([]byte{v}, faultSize)
	if _, err := f.WriteAt(bg, p, 0); !s.do(err) {
		return
	}
	s.newest[i] = v
	if s.do(f.Sync(bg)) {
		s.synced[i] = v
	}
}

func (s *faultScript) run(t *testing.T) {
	fs := s.fs
	a, err := fs.Open(bg, Root, s.a, OpenRead|OpenWrite)
	if !s.do(err) {
		return
	}
	b, err := fs.Open(bg, Root, s.b, OpenRead|OpenWrite)
	if !s.do(err) {
		s.do(a.Close(bg))
		return
	}
	s.write(t, a, 0, 1)
	s.write(t, a, 0, 2)
	if s.newest[0] == 2 {
		n, err := b.CopyRange(bg, 0, a, 0, faultSize)
		if s.do(err) && n == faultSize {
			s.newest[1] = 2
			if s.do(b.Sync(bg)) {
				s.synced[1] = 2
			}
		} else {
			s.newest[1] = 2 // it may have happened
		}
	}
	s.write(t, a, 0, 3)
	s.write(t, b, 1, 4)
	_, err = fs.Collect(bg)
	s.do(err)
	s.do(fs.Unlink(bg, Root, RootIno, "gone"))
	s.do(a.Close(bg))
	s.do(b.Close(bg))
	_, err = fs.Collect(bg)
	s.do(err)
}

func (s *faultScript) verify(t *testing.T, what string) {
	t.Helper()
	for i, ino := range []Ino{s.a, s.b} {
		f := mustOpen(t, s.fs, ino, OpenRead)
		p := make([]byte, faultSize+1)
		n, err := f.ReadAt(bg, p, 0)
		if err != io.EOF && err != nil {
			t.Errorf("%s: read: %v", what, err)
			continue
		}
		if n == 0 {
			if s.synced[i] != 0 {
				t.Errorf("%s: file %d is empty, %d was synced", what, i, s.synced[i])
			}
		} else if v := p[0]; bytes.Count(p[:n], p[:1]) != n || n != faultSize || v < s.synced[i] || v > s.newest[i] {
			t.Errorf("%s: file %d: %d bytes of version %d, want %d to %d", what, i, n, v, s.synced[i], s.newest[i])
		}
		want(t, f.Close(bg), nil)
	}
}

// Every call of the engine fails once, in every way.
func TestFaultAtEveryCall(t *testing.T) {
	ops := map[string][]mem.Op{"any": nil, "lost answer": {mem.OpCommitted}, "commit": {mem.OpCommit, mem.OpBlobCommit}}
	for name, which := range ops {
		for _, inline := range []int{0, 1 << 20} {
			t.Run(fmt.Sprint(name, inline), func(t *testing.T) {
				t.Parallel()
				for n := 1; ; n++ {
					if faultRun(t, n, inline, which, name == "lost answer") {
						t.Logf("%d calls", n-1)
						return
					}
				}
			})
		}
	}
}

// faultRun lets the nth call fail; done reports whether there were fewer.
func faultRun(t *testing.T, n, inline int, which []mem.Op, unknown bool) (done bool) {
	faults := &mem.Faults{}
	c := mem.New(mem.Options{Faults: faults})
	fs, err := Open(bg, c, Config{NoBackground: true, InlineBytes: inline, Now: later})
	want(t, err, nil)
	defer c.Close()
	defer fs.Close(bg)
	s := &faultScript{fs: fs, a: mustFile(t, fs, RootIno, "a"), b: mustFile(t, fs, RootIno, "b")}
	replace(t, fs, mustFile(t, fs, RootIno, "gone"), bytes.Repeat([]byte{9}, faultSize))
	fail := errBoom
	if unknown {
		fail = fmt.Errorf("%w: answer lost", cluster.ErrUnavailable)
	}
	faults.FailAt(n, fail, which...)
	s.run(t)
	done = faults.Calls() < n
	if faults.Clear(); done && s.errs > 0 {
		t.Errorf("%d errors without a fault", s.errs)
	}
	what := fmt.Sprintf("fault at call %d", n)
	s.verify(t, what)
	checkAfterFault(t, fs, what)
	return done || t.Failed()
}

// TestLostAnswerOfSubject: a PUT whose commit was acknowledged to nobody succeeds by
// what is stored, also for who has no right to read it.
func TestLostAnswerOfSubject(t *testing.T) {
	faults := &mem.Faults{}
	fs := bucketFS(t, openTest(t, mem.New(mem.Options{Faults: faults})))
	want(t, fs.SetBucketGrants(bg, "bucket", Grants{{Grantee: GranteeUser, User: "writer", Permission: PermWrite}}), nil)
	for _, size := range []int{100, 100_000} { // inline, a blob
		lost := fmt.Errorf("%w: answer lost", cluster.ErrUnavailable)
		faults.FailAt(1, lost, mem.OpCommitted)
		ctx := WithSubject(t.Context(), &Subject{User: "writer", UID: 1001, GID: 1001})
		_, err := fs.PutObject(ctx, ObjectName{"bucket", fmt.Sprint(size)}, bytes.NewReader(make([]byte, size)),
			PutOptions{Size: int64(size), Owner: NewCred(0, 0)})
		if faults.Clear(); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// The power goes after every commit: what was synced is there.
func TestPowerCut(t *testing.T) {
	for n := 1; n < 60; n++ {
		faults := &mem.Faults{}
		disk := mem.NewDisk()
		c := mem.New(mem.Options{Faults: faults, Disk: disk})
		fs, err := Open(bg, c, Config{NoBackground: true, Now: later})
		want(t, err, nil)
		s := &faultScript{fs: fs, a: mustFile(t, fs, RootIno, "a"), b: mustFile(t, fs, RootIno, "b")}
		replace(t, fs, mustFile(t, fs, RootIno, "gone"), bytes.Repeat([]byte{9}, faultSize))
		faults.FailFrom(n, errBoom)
		s.run(t)
		ended := s.errs == 0
		c.KV.(*mem.KV).Abandon()
		disk.PowerCut()

		c = mem.New(mem.Options{Disk: disk})
		if fs, err = Open(bg, c, Config{NoBackground: true, Now: later}); err != nil {
			t.Fatal(err)
		}
		s.fs = fs
		_, err = fs.Collect(bg) // what it does at a start
		want(t, err, nil)
		what := fmt.Sprintf("power cut at call %d", n)
		s.verify(t, what)
		checkAfterFault(t, fs, what)
		fs.Close(bg)
		c.Close()
		if ended || t.Failed() {
			return
		}
	}
}

// An unlinked open file stays readable, and is gone after the last close or
// after a crash.
func TestUnlinkedOpen(t *testing.T) {
	disk := mem.NewDisk()
	c := mem.New(mem.Options{Disk: disk})
	fs := openContentTest(t, c, Config{Now: later})
	data := bytes.Repeat([]byte{7}, 100<<10)
	files := make([]*File, 2)
	for i := range files {
		name := fmt.Sprint("f", i)
		ino := mustFile(t, fs, RootIno, name)
		f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
		_, err := f.WriteAt(bg, data, 0)
		want(t, err, nil)
		want(t, f.Sync(bg), nil)
		want(t, fs.Unlink(bg, Root, RootIno, name), nil)
		_, err = f.WriteAt(bg, data, int64(len(data)))
		want(t, err, nil)
		_, err = fs.Collect(bg)
		want(t, err, nil)
		p := make([]byte, 2*len(data))
		if n, err := f.ReadAt(bg, p, 0); n != len(p) || err != nil {
			t.Fatalf("read %d, %v", n, err)
		}
		files[i] = f
	}
	ino := files[0].Ino()
	want(t, files[0].Close(bg), nil)
	_, err := fs.GetAttr(bg, ino)
	want(t, err, ErrStale)
	mustBeClean(t, fs)

	c.KV.(*mem.KV).Abandon()
	disk.PowerCut()
	c = mem.New(mem.Options{Disk: disk})
	fs = openContentTest(t, c, Config{Now: later})
	for range 2 {
		_, err = fs.Collect(bg)
		want(t, err, nil)
	}
	_, err = fs.GetAttr(bg, files[1].Ino())
	want(t, err, ErrStale)
	checkAfterFault(t, fs, "crash")
	if n := countBlobs(t, c); n != 0 {
		t.Errorf("%d blobs are left", n)
	}
}

func countBlobs(t *testing.T, c *cluster.Cluster) (n int) {
	t.Helper()
	want(t, c.Blobs.List(bg, cluster.BlobID{}, func(cluster.BlobInfo) error { n++; return nil }), nil)
	return n
}

// A full medium is an error to the writer, and nothing is lost that fits later.
func TestNoSpace(t *testing.T) {
	faults := &mem.Faults{}
	c := mem.New(mem.Options{Faults: faults})
	fs := openContentTest(t, c, Config{Now: later})
	f := mustOpen(t, fs, mustFile(t, fs, RootIno, "f"), OpenRead|OpenWrite)
	data := bytes.Repeat([]byte{5}, 100<<10)
	faults.FailFrom(1, cluster.ErrNoSpace, mem.OpBlobCreate, mem.OpBlobWrite, mem.OpBlobCommit)
	_, err := f.WriteAt(bg, data, 0)
	want(t, err, nil)
	want(t, f.Sync(bg), ErrNoSpace)
	faults.Clear()
	want(t, f.Sync(bg), nil)
	p := make([]byte, len(data))
	if _, err := f.ReadAt(bg, p, 0); err != nil || !bytes.Equal(p, data) {
		t.Fatalf("read: %v", err)
	}
	want(t, f.Close(bg), nil)
	checkAfterFault(t, fs, "full")
}

// A file that fills the store is emptied, with what was written and cannot be stored, and can
// be written again: at once what is inline.
func TestEmptiedWhileFull(t *testing.T) {
	for how, empty := range map[string]func(fs *FS, ino Ino) error{
		"truncate": func(fs *FS, ino Ino) error { return setSize(fs, ino, 0) },
		"open": func(fs *FS, ino Ino) error {
			f, err := fs.Open(bg, Root, ino, OpenWrite|OpenTrunc)
			if err == nil {
				err = f.Close(bg)
			}
			return err
		},
	} {
		t.Run(how, func(t *testing.T) {
			faults := &mem.Faults{}
			c := mem.New(mem.Options{Faults: faults})
			fs := openContentTest(t, c, Config{Now: later})
			ino := mustFile(t, fs, RootIno, "f")
			f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
			data := bytes.Repeat([]byte{5}, 100<<10)
			_, err := f.WriteAt(bg, data, 0)
			want(t, err, nil)
			want(t, f.Sync(bg), nil)
			faults.FailFrom(1, cluster.ErrNoSpace, mem.OpBlobCreate, mem.OpBlobWrite, mem.OpBlobCommit)
			_, err = f.WriteAt(bg, data, int64(len(data)))
			want(t, err, nil)
			want(t, setSize(fs, ino, 1), ErrNoSpace) // the file is as it was
			wantText(t, fs, ino, string(data)+string(data))
			want(t, empty(fs, ino), nil)
			wantText(t, fs, ino, "")
			_, err = f.WriteAt(bg, []byte("small"), 0)
			want(t, err, nil)
			want(t, f.Sync(bg), nil)
			collect(t, fs)
			if n := countBlobs(t, c); n != 0 {
				t.Errorf("%d blobs are kept", n)
			}
			faults.Clear()
			wantText(t, fs, ino, "small")
			want(t, f.Close(bg), nil)
			if n := fs.Losses(); n != 0 {
				t.Errorf("%d losses", n)
			}
			checkAfterFault(t, fs, how)
		})
	}
}

// Damage is an error to the reader, and a finding.
func TestCorruptBlob(t *testing.T) {
	disk := mem.NewDisk()
	c := mem.New(mem.Options{Disk: disk})
	fs := openContentTest(t, c, Config{})
	ino := mustFile(t, fs, RootIno, "f")
	replace(t, fs, ino, bytes.Repeat([]byte{5}, 100<<10))
	want(t, c.Blobs.List(bg, cluster.BlobID{}, func(b cluster.BlobInfo) error {
		disk.CorruptBlob(b.ID, 1000)
		return nil
	}), nil)
	_, err := mustOpen(t, fs, ino, OpenRead).ReadAt(bg, make([]byte, 10), 2000)
	want(t, err, ErrCorrupt)
	rep, err := fs.Check(bg, CheckOptions{Data: true})
	want(t, err, nil)
	if len(rep.Problems) != 1 || rep.Problems[0].Kind != "corrupt-data" {
		t.Errorf("problems: %v", rep.Problems)
	}
}

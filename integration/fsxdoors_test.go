package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sys/unix"

	"ogw/integration/doors"
	"ogw/integration/testenv"
)

const (
	// fsxDoorsSteps of the run by turns; OGW_FSX_OPS says otherwise.
	fsxDoorsSteps = 600
	// fsxDoorsRounds of the run in which all doors work at once.
	fsxDoorsRounds = 25
	fsxDoorsMax    = 300 << 10
	fsxDoorsBucket = "fsx"
)

// TestFSXDoors changes one file at random through the mount, NFS and S3 by
// turns, and reads it through all of them: each shows what was acknowledged.
// The mount keeps the file open, mapped now and then, with pages in the
// kernel.
func TestFSXDoors(t *testing.T) {
	x := newFSXDoors(t)
	steps := testenv.Count(t, "OGW_FSX_OPS", fsxDoorsSteps)
	x.put()
	x.open()
	defer func() { unix.Close(x.fd) }()
	for n := range steps {
		x.step()
		x.look()
		if n%50 == 49 {
			x.compareAll()
		}
		if t.Failed() {
			for _, l := range x.log {
				t.Log(l)
			}
			t.Fatalf("at operation %d", n)
		}
	}
}

// TestFSXDoorsAtOnce lets the mount and NFS write to the same file at the
// same moment, to stripes of their own that share pages, while S3 reads it.
func TestFSXDoorsAtOnce(t *testing.T) {
	x := newFSXDoors(t)
	x.model = make([]byte, 64*fsxStripe)
	x.check(x.s3.Write(fsxDoorsBucket+"/file", string(x.model)))
	x.open()
	defer func() { unix.Close(x.fd) }()
	for round := range fsxDoorsRounds {
		x.atOnce()
		x.compareAll()
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

// fsxDoors is one file, reached through the doors, and what it must hold.
type fsxDoors struct {
	t     *testing.T
	r     *rand.Rand
	s3    *doors.S3
	nfs   *doors.NFS
	name  string // in the mount
	fd    int
	model []byte
	log   []string // the last operations, for a failure
}

func newFSXDoors(t *testing.T) *fsxDoors {
	s := newServer(t, options{})
	s.makeBucket(fsxDoorsBucket)
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("OGW_FSX_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d (OGW_FSX_SEED)", seed)
	nfs, err := doors.DialNFS(s.NFS, "/"+fsxDoorsBucket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nfs.Close)
	return &fsxDoors{t: t, r: rand.New(rand.NewPCG(seed, 17)), s3: s.s3Door(), nfs: nfs,
		name: filepath.Join(s.Mount(), fsxDoorsBucket, "file")}
}

func (x *fsxDoors) note(format string, args ...any) {
	if x.log = append(x.log, fmt.Sprintf(format, args...)); len(x.log) > 100 {
		x.log = x.log[1:]
	}
}

func (x *fsxDoors) check(err error) {
	x.t.Helper()
	if err != nil {
		last := ""
		if n := len(x.log); n > 0 {
			last = x.log[n-1]
		}
		x.t.Errorf("%s: %v", last, err)
	}
}

func (x *fsxDoors) open() {
	fd, err := unix.Open(x.name, unix.O_RDWR, 0)
	if err != nil {
		x.t.Fatal(err)
	}
	x.fd = fd
}

func (x *fsxDoors) random(n int) []byte {
	b := make([]byte, n)
	c := byte(1 + x.r.IntN(255))
	for i := range b {
		b[i] = c + byte(i>>5)
	}
	return b
}

func (x *fsxDoors) span() (off, n int) {
	off = x.r.IntN(min(fsxDoorsMax, len(x.model)+5000))
	return off, 1 + x.r.IntN(min(fsxDoorsMax-off, []int{100, 5000, 100_000}[x.r.IntN(3)]))
}

func (x *fsxDoors) write(off int, b []byte) {
	x.resize(max(len(x.model), off+len(b)))
	copy(x.model[off:], b)
}

func (x *fsxDoors) resize(size int) {
	x.model = append(x.model, make([]byte, max(0, size-len(x.model)))...)[:size]
}

// step changes the file through one door.
func (x *fsxDoors) step() {
	off, n := x.span()
	switch x.r.IntN(12) {
	case 0, 1:
		b := x.random(n)
		x.note("mount: write %d at %d", n, off)
		_, err := unix.Pwrite(x.fd, b, int64(off))
		x.check(err)
		x.write(off, b)
	case 2:
		size := x.r.IntN(len(x.model) + 2000)
		x.note("mount: truncate to %d", size)
		x.check(unix.Ftruncate(x.fd, int64(size)))
		x.resize(size)
	case 3:
		x.note("mount: punch %d at %d", n, off)
		x.check(unix.Fallocate(x.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(off), int64(n)))
		if off < len(x.model) {
			clear(x.model[off:min(len(x.model), off+n)])
		}
	case 4:
		x.store()
	case 5:
		x.append()
	case 6:
		x.note("mount: fsync, close and open")
		x.check(errors.Join(unix.Fsync(x.fd), unix.Close(x.fd)))
		x.open()
	case 7, 8:
		b := x.random(n)
		x.note("NFS: write %d at %d", n, off)
		x.check(x.nfsWrite(off, b))
		x.write(off, b)
	case 9:
		size := x.r.IntN(len(x.model) + 2000)
		x.note("NFS: truncate to %d", size)
		x.check(x.nfs.Setattr("file", doors.TruncateTo(uint64(size))))
		x.resize(size)
	case 10, 11:
		// Who has unsaved bytes when the object is replaced loses them, and
		// is notified: that is not what is tried here.
		x.check(errors.Join(unix.Fsync(x.fd), unix.Close(x.fd)))
		x.put()
		x.open()
	}
}

func (x *fsxDoors) put() {
	x.model = x.random(x.r.IntN(fsxDoorsMax))
	x.note("S3: put %d", len(x.model))
	x.check(x.s3.Write(fsxDoorsBucket+"/file", string(x.model)))
}

// store writes through a shared mapping, and waits for the write. It does not
// ask for the size first, which another door may have changed.
func (x *fsxDoors) store() {
	if len(x.model) == 0 {
		return
	}
	m, err := unix.Mmap(x.fd, 0, len(x.model), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		x.t.Fatal(err)
	}
	off := x.r.IntN(len(x.model))
	b := x.random(min(len(x.model)-off, 1+x.r.IntN(20_000)))
	x.note("mount: store %d at %d", len(b), off)
	copy(m[off:], b)
	x.write(off, b)
	x.check(errors.Join(unix.Msync(m, unix.MS_SYNC), unix.Munmap(m)))
}

// append uses O_APPEND: where the end is may have changed behind the kernel.
func (x *fsxDoors) append() {
	b := x.random(1 + x.r.IntN(3000))
	if len(x.model)+len(b) > fsxDoorsMax {
		return
	}
	x.note("mount: append %d at %d", len(b), len(x.model))
	fd, err := unix.Open(x.name, unix.O_WRONLY|unix.O_APPEND, 0)
	if err != nil {
		x.t.Fatal(err)
	}
	_, err = unix.Write(fd, b)
	x.check(errors.Join(err, unix.Close(fd)))
	x.model = append(x.model, b...)
}

func (x *fsxDoors) nfsWrite(off int, b []byte) error {
	f, err := x.nfs.OpenFile("file", 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Seek(int64(off), io.SeekStart); err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// look reads a part through one door.
func (x *fsxDoors) look() {
	off, n := x.span()
	want := x.model[min(off, len(x.model)):min(off+n, len(x.model))]
	switch x.r.IntN(4) {
	case 0, 1:
		x.note("mount: read %d at %d", n, off)
		b := make([]byte, n)
		got, err := unix.Pread(x.fd, b, int64(off))
		x.check(err)
		x.same("the mount", b[:max(0, got)], want)
		var st unix.Stat_t
		x.check(unix.Stat(x.name, &st))
		if st.Size != int64(len(x.model)) {
			x.t.Errorf("the mount says size %d, want %d", st.Size, len(x.model))
		}
	case 2:
		if len(want) == 0 {
			return
		}
		x.note("NFS: read %d at %d", len(want), off)
		f, err := x.nfs.Open("file")
		if err != nil {
			x.t.Fatal(err)
		}
		defer f.Close()
		b := make([]byte, len(want))
		_, err = f.ReadAt(b, int64(off))
		if errors.Is(err, io.EOF) {
			err = nil
		}
		x.check(err)
		x.same("NFS", b, want)
	case 3:
		if len(want) == 0 {
			return
		}
		x.note("S3: get %d at %d", len(want), off)
		bucket, key, rng := fsxDoorsBucket, "file", fmt.Sprintf("bytes=%d-%d", off, off+len(want)-1)
		out, err := x.s3.GetObject(context.Background(), &s3.GetObjectInput{Bucket: &bucket, Key: &key, Range: &rng})
		if err != nil {
			x.t.Fatal(err)
		}
		defer out.Body.Close()
		b, err := io.ReadAll(out.Body)
		x.check(err)
		x.same("S3", b, want)
	}
}

// compareAll reads all of the file through every door.
func (x *fsxDoors) compareAll() {
	x.note("compare all")
	m, err := os.ReadFile(x.name)
	x.check(err)
	x.same("the mount", m, x.model)
	n, err := x.nfs.Read("file")
	x.check(err)
	x.same("NFS", []byte(n), x.model)
	s, err := x.s3.Read(fsxDoorsBucket + "/file")
	x.check(err)
	x.same("S3", []byte(s), x.model)
}

func (x *fsxDoors) same(door string, got, want []byte) {
	x.t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	x.t.Errorf("%s shows %d bytes, want %d; they differ from %d on", door, len(got), len(want), i)
}

const (
	// fsxStripe is no part of a page: neighbours share one.
	fsxStripe = 1000
	// The even stripes are the mount's, the odd ones are written over NFS.
	mountStripes, nfsStripes = 0, 1
)

// stripes know what each may show while it is written to.
type stripes struct {
	mu    sync.Mutex
	may   []map[byte]bool
	newer []byte
}

func (s *stripes) set(i int, c byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.may[i][c], s.newer[i] = true, c
}

// odd returns what is wrong with body: bytes that nobody wrote, or one write
// shown in part. The kernel cuts a write to the mount where a page ends.
func (s *stripes) odd(body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(body) != len(s.may)*fsxStripe {
		return fmt.Errorf("%d bytes", len(body))
	}
	for at, i := 0, 0; at < len(body); {
		end := (i + 1) * fsxStripe
		if page := (at/os.Getpagesize() + 1) * os.Getpagesize(); i%2 == mountStripes {
			end = min(end, page)
		}
		c := body[at]
		if !s.may[i][c] || !bytes.Equal(body[at:end], bytes.Repeat(body[at:at+1], end-at)) {
			return fmt.Errorf("stripe %d shows %x at byte %d, and not up to %d, or nobody wrote it", i, c, at, end)
		}
		at, i = end, end/fsxStripe
	}
	return nil
}

// atOnce is one round: a writer for each door, and a reader.
func (x *fsxDoors) atOnce() {
	n := len(x.model) / fsxStripe
	s := &stripes{newer: make([]byte, n)}
	for i := range n {
		c := x.model[i*fsxStripe]
		s.may, s.newer[i] = append(s.may, map[byte]bool{c: true}), c
	}
	var writers, reader sync.WaitGroup
	writer := func(first int, write func(off int, b []byte) error) {
		r := rand.New(rand.NewPCG(x.r.Uint64(), 1))
		writers.Go(func() {
			for range 20 {
				i, c := 2*r.IntN(n/2)+first, byte(r.IntN(256))
				s.set(i, c)
				if err := write(i*fsxStripe, bytes.Repeat([]byte{c}, fsxStripe)); err != nil {
					x.t.Errorf("writing stripe %d: %v", i, err)
					return
				}
			}
		})
	}
	writer(mountStripes, x.writeAndRead)
	writer(nfsStripes, x.nfsWrite)
	done := make(chan struct{})
	reader.Go(func() {
		for {
			body, err := x.s3.Read(fsxDoorsBucket + "/file")
			if err == nil {
				err = s.odd([]byte(body))
			}
			if err != nil {
				x.t.Errorf("S3 beside the writers: %v", err)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	writers.Wait()
	close(done)
	reader.Wait()
	for i, c := range s.newer {
		copy(x.model[i*fsxStripe:], bytes.Repeat([]byte{c}, fsxStripe))
	}
}

// writeAndRead writes through the mount and sees what it wrote.
func (x *fsxDoors) writeAndRead(off int, b []byte) error {
	if _, err := unix.Pwrite(x.fd, b, int64(off)); err != nil {
		return err
	}
	got := make([]byte, len(b))
	if _, err := unix.Pread(x.fd, got, int64(off)); err != nil {
		return err
	}
	if !bytes.Equal(got, b) {
		return fmt.Errorf("%x was read back, %x was written", got[:8], b[:8])
	}
	return nil
}

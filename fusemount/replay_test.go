package fusemount

import (
	"bytes"
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/fusemount/ledger"
	"ogw/vfs"
)

// killed is a series of servers over one store, each of which is killed.
type killed struct {
	*testing.T
	disk *mem.Disk
	book *ledger.Ledger
	*serverLife
	faults *mem.Faults
	now    func() time.Time // of the store; nil: the true one
}

// next is what follows a kill: a server with what the one before left. broken, if
// set, is what the store returns to callers that change something.
func (k *killed) next(broken error) {
	k.Helper()
	must(k.T, k.take(broken, mem.OpCommit, mem.OpBlobCreate, mem.OpBlobWrite, mem.OpBlobCommit))
}

// take is next; the store returns broken at some points. It returns why the superblock would
// be refused.
func (k *killed) take(broken error, at ...mem.Op) error {
	k.Helper()
	k.faults = &mem.Faults{}
	fs, err := vfs.Open(bg, mem.New(mem.Options{Disk: k.disk, Faults: k.faults}), vfs.Config{Logger: testLogger(k.T), NoBackground: true, Now: k.now})
	must(k.T, err)
	if broken != nil {
		k.faults.FailFrom(1, broken, at...)
	}
	raw := newRawFS(bg, namespaceOf(fs), Options{Logger: testLogger(k.T)}.withDefaults(true))
	c := &connection{set: NewMounts(fs), raw: raw}
	raw.conn = c
	t := &taking{connection: c, book: k.book, changed: make(map[vfs.Ino]struct{})}
	t.restore()
	replay(fs, []*taking{t})
	s := &serverLife{rawFS: raw, fs: fs}
	if k.serverLife != nil {
		s.bucket, s.file = k.bucket, k.file
	}
	k.serverLife = s
	return t.err
}

// begin starts the first, with a file that holds text.
func begin(t *testing.T, text string) *killed {
	t.Helper()
	return beginAt(t, text, nil)
}

// beginAt is begin, at the time of a store.
func beginAt(t *testing.T, text string, now func() time.Time) *killed {
	t.Helper()
	book, err := ledger.New()
	must(t, err)
	k := &killed{T: t, disk: mem.NewDisk(), book: book, now: now}
	k.next(nil)
	_, err = k.fs.CreateBucketWith(bg, "bucket", vfs.Root, vfs.BucketOptions{})
	must(t, err)
	k.put(text)
	a, err := k.fs.Resolve(bg, vfs.Root, "bucket/f", true)
	must(t, err)
	k.file = a.Ino
	return k
}

// put replaces the file's content, as S3 does.
func (k *killed) put(text string) {
	k.Helper()
	_, err := k.fs.PutObject(bg, vfs.ObjectName{Bucket: "bucket", Key: "f"}, strings.NewReader(text), vfs.PutOptions{Size: int64(len(text))})
	must(k.T, err)
}

func (k *killed) open(unique uint64, flags uint32) (fh uint64) {
	k.Helper()
	return k.openAs(k.T, unique, flags)
}

func (k *killed) write(fh, off uint64, text string) fuse.Status {
	_, st := k.Write(nil, &fuse.WriteIn{InHeader: header(0, k.file), Fh: fh, Offset: off, Size: uint32(len(text))}, []byte(text))
	return st
}

func (k *killed) flush(fh uint64) fuse.Status {
	return k.Flush(nil, &fuse.FlushIn{InHeader: header(0, k.file), Fh: fh})
}

func (k *killed) holds(want string) {
	k.Helper()
	if got := k.text(k.T); got != want {
		k.Errorf("the file holds %q, want %q", got, want)
	}
}

func (k *killed) kept() (n int) {
	k.book.Journal.Each(func(*ledger.Write) { n++ })
	return n
}

// What was answered is there though the store is full, or refuses changes, at the
// take-over, also for those who come after; sync reports it.
func TestReplayWithoutRoom(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want syscall.Errno
	}{"full": {cluster.ErrNoSpace, unix.ENOSPC}, "away": {cluster.ErrUnavailable, unix.EIO}} {
		t.Run(name, func(t *testing.T) {
			k := begin(t, "before")
			fh := k.open(2, unix.O_RDWR)
			if st := k.write(fh, 1, "NEW"); !st.Ok() {
				t.Fatal(st)
			}
			for range 2 {
				k.next(c.err)
				k.holds("bNEWre")
				if st := k.Fsync(nil, &fuse.FsyncIn{InHeader: header(0, k.file), Fh: fh}); st != fuse.Status(c.want) {
					t.Errorf("fsync: %v", st)
				}
				if k.kept() != 1 {
					t.Errorf("%d writes are kept", k.kept())
				}
			}
			k.faults.Clear()
			if st := k.Fsync(nil, &fuse.FsyncIn{InHeader: header(0, k.file), Fh: fh}); !st.Ok() || k.kept() != 0 {
				t.Errorf("fsync with room: %v, %d writes are kept", st, k.kept())
			}
			k.next(nil)
			k.holds("bNEWre")
			if st := k.flush(fh); !st.Ok() {
				t.Error(st)
			}
		})
	}
}

// More than the buffers may hold is taken over by a store that is full.
func TestReplayBeyondBuffers(t *testing.T) {
	k := begin(t, "before")
	fh := k.open(2, unix.O_RDWR)
	part := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	const parts = 40
	for i := range parts {
		if st := k.write(fh, uint64(i*len(part)), string(part)); !st.Ok() {
			t.Fatal(st)
		}
	}
	k.next(cluster.ErrNoSpace)
	k.faults.Clear()
	if st := k.flush(fh); !st.Ok() {
		t.Fatal(st)
	}
	k.next(nil)
	file, err := k.fs.Open(bg, vfs.Root, k.file, vfs.OpenRead)
	must(t, err)
	got := make([]byte, len(part))
	for i := range parts {
		if _, err := file.ReadAt(bg, got, int64(i*len(part))); err != nil || !bytes.Equal(got, part) {
			t.Fatalf("part %d: %v", i, err)
		}
	}
	must(t, file.Close(bg))
}

// Each open file whose writes are lost reports it once, over
// the end of a server too; readers get no error, and the file's newer writes are there.
func TestReplayLost(t *testing.T) {
	k := begin(t, "before")
	writer, other, reader := k.open(2, unix.O_RDWR), k.open(4, unix.O_WRONLY), k.open(6, unix.O_RDONLY)
	if st := k.write(writer, 0, "old"); !st.Ok() {
		t.Fatal(st)
	}
	replacer, err := vfs.Open(bg, mem.New(mem.Options{Disk: k.disk}), vfs.Config{NoBackground: true})
	must(t, err)
	_, err = replacer.PutObject(bg, vfs.ObjectName{Bucket: "bucket", Key: "f"}, strings.NewReader("after!"), vfs.PutOptions{Size: 6})
	must(t, err)
	a, err := replacer.Resolve(bg, vfs.Root, "bucket/f", true)
	must(t, err)
	if a.Ino != k.file {
		t.Fatal("the object has another inode")
	}
	late := k.keepLate(t, replacer)
	k.next(nil)
	k.holds("aNEWr!")
	if late(); k.kept() != 0 {
		t.Errorf("%d writes are kept", k.kept())
	}
	tell := func(want map[uint64]syscall.Errno) {
		t.Helper()
		for fh, errno := range want {
			if st := k.flush(fh); st != fuse.Status(errno) {
				t.Errorf("flush of %x: %v, want %v", fh, st, errno)
			}
		}
	}
	if st := k.write(other, 0, "x"); st != fuse.EIO {
		t.Errorf("write: %v", st)
	}
	tell(map[uint64]syscall.Errno{other: unix.EIO, reader: 0})
	k.next(nil)
	tell(map[uint64]syscall.Errno{other: 0, writer: unix.EIO, reader: 0})
	tell(map[uint64]syscall.Errno{writer: 0})
}

// keepLate adds a write to the content that is there now to the journal.
func (k *killed) keepLate(t *testing.T, fs *vfs.FS) (check func()) {
	t.Helper()
	var epoch uint64
	file, err := fs.Open(bg, vfs.Root, k.file, vfs.OpenWrite)
	must(t, err)
	file.KeepWith(&epochKeeper{&epoch})
	_, err = file.WriteAt(bg, []byte("NEW"), 1)
	must(t, err)
	must(t, k.book.Journal.Keep(&ledger.Write{Ino: uint64(k.file), Epoch: epoch, Off: 1, Data: []byte("NEW"), Seq: 1 << 20}))
	return func() {
		if _, ok := k.book.Journal.Oldest(uint64(k.file)); ok {
			t.Error("a write is kept behind its storing")
		}
	}
}

// What cannot be stored until its superblock has ended is lost to nobody but its writers.
func TestLostBehindTheEnd(t *testing.T) {
	k := begin(t, "before")
	fh := k.open(2, unix.O_RDWR)
	k.surv.end()
	k.lose(k.file, vfs.ErrStale) // by storeLater
	if st := k.flush(fh); st != fuse.EIO {
		t.Errorf("flush: %v", st)
	}
}

// epochKeeper notes the epoch of what is written.
type epochKeeper struct{ epoch *uint64 }

func (k *epochKeeper) Reserve(context.Context, int) (func(), error) { return func() {}, nil }
func (k *epochKeeper) Keep(w *vfs.KeptWrite)                        { *k.epoch = w.Epoch }
func (k *epochKeeper) Stored(vfs.Ino, uint64)                       {}
func (k *epochKeeper) Lost(vfs.Ino)                                 {}
func (k *epochKeeper) ID() uint64                                   { return 0 }
func (k *epochKeeper) Oldest(vfs.Ino) (uint64, bool)                { return 0, false }

// A write past the kernel's pages waits for the disk where its program asked for that: the
// kernel sends no fsync behind it.
func TestDirectWriteIsSynced(t *testing.T) {
	for name, c := range map[string]struct {
		direct bool
		flags  uint32
		kept   int // writes that are not durable
	}{
		"O_SYNC": {true, unix.O_SYNC, 0}, "O_DSYNC": {true, unix.O_DSYNC, 0}, "neither": {true, 0, 1},
		"followed by fsync": {false, unix.O_SYNC, 1},
	} {
		t.Run(name, func(t *testing.T) {
			k := begin(t, "before")
			fh := k.open(2, unix.O_RDWR)
			k.files.get(fh).direct = c.direct
			in := &fuse.WriteIn{InHeader: header(4, k.file), Fh: fh, Size: 3, Flags: unix.O_RDWR | c.flags}
			if n, st := k.Write(nil, in, []byte("NEW")); !st.Ok() || n != 3 {
				t.Fatal(n, st)
			}
			if k.kept() != c.kept {
				t.Errorf("%d writes are not durable, want %d", k.kept(), c.kept)
			}
			if got := k.files.get(fh).unsaved(); got != (c.kept > 0) {
				t.Errorf("the next close syncs: %t", got)
			}
			k.next(nil)
			k.holds("NEWore")
		})
	}
}

// The kernel writes pages by any handle: the close of each by which they may have been
// written waits until they are durable.
func TestCloseOfPages(t *testing.T) {
	k := begin(t, "before")
	first, second, reader := k.open(2, unix.O_RDWR), k.open(4, unix.O_RDWR), k.open(6, unix.O_RDONLY)
	byKernel := &fuse.WriteIn{InHeader: header(8, k.file), Fh: second, Size: 3, WriteFlags: fuse.WRITE_CACHE}
	if n, st := k.Write(nil, byKernel, []byte("NEW")); !st.Ok() || n != 3 {
		t.Fatal(n, st)
	}
	late := k.open(10, unix.O_RDWR)
	for _, x := range []struct {
		what string
		fh   uint64
		kept int
	}{{"a reader", reader, 1}, {"one opened later", late, 1}, {"the other writer", first, 0}} {
		if st := k.flush(x.fh); !st.Ok() || k.kept() != x.kept {
			t.Errorf("the close of %s: %v, %d writes are not durable, want %d", x.what, st, k.kept(), x.kept)
		}
	}
	if k.files.get(first).unsaved() {
		t.Error("its next close syncs again")
	}
}

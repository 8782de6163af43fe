package local

import (
	"bytes"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
)

// TestCreateAgain: the reaper, whenever it comes, leaves the file of a blob alone whose ID
// was another one's that was deleted.
func TestCreateAgain(t *testing.T) {
	c := openAt(t, Options{Dir: t.TempDir()})
	b := c.Blobs.(*Blobs)
	id := cluster.BlobID{Content: 1, Seq: 1}
	for _, seed := range []int{7, 15, 6, 23} {
		data := seedBytes(seed)
		w, err := b.Create(ctx, id, -1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		b.reaper.reap()
		if _, _, err := w.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		b.reaper.reap()
		if err := errors.Join(readBack(b, id, data), b.Verify(ctx, id)); err != nil {
			t.Fatal(err)
		}
		if err := b.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	// One that takes no file of its own does not keep the old one.
	if err := storeBlob(b, id, seedBytes(3)); err != nil {
		t.Fatal(err)
	}
	b.reaper.reap()
	if _, err := os.Stat(b.filePath(id)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of the deleted blob: %v", err)
	}
	if err := readBack(b, id, seedBytes(3)); err != nil {
		t.Error(err)
	}
}

// TestCreateAgainPowerCut: the file of a deleted blob is replaced once it is durable that the
// index does not name it.
func TestCreateAgainPowerCut(t *testing.T) {
	fs := newCrashFS()
	c := openAt(t, stackOptions(fs))
	id := cluster.BlobID{Content: 1, Seq: 1}
	if err := storeBlob(c.Blobs, id, seedBytes(7)); err != nil {
		t.Fatal(err)
	}
	if err := c.KV.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Blobs.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	w, err := c.Blobs.Create(ctx, id, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if _, err := w.Write(seedBytes(15)); err != nil {
		t.Fatal(err)
	}
	for _, percent := range []int{0, 100} {
		fs.mu.Lock()
		left := fs.clone(crashMode{percent: percent}, rand.New(rand.NewPCG(1, 2)))
		fs.mu.Unlock()
		after := openAt(t, stackOptions(left))
		if err := readBack(after.Blobs, id, seedBytes(7)); !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("%d%% kept: the blob that was deleted: %v", percent, err)
		}
	}
}

// TestSweepCreatedAgain: what the sweep found without an entry stays if it is a blob by the
// time that it would be removed, and it finds nothing of what is being written.
func TestSweepCreatedAgain(t *testing.T) {
	dir := t.TempDir()
	c := openAt(t, Options{Dir: dir})
	b := c.Blobs.(*Blobs)
	id := cluster.BlobID{Content: 2, Seq: 2}
	path := b.filePath(id)
	if err := os.WriteFile(path, []byte("left"), 0o600); err != nil {
		t.Fatal(err)
	}
	sweep := func(want int) {
		t.Helper()
		if n, err := b.sweeper.folder(filepath.Dir(path)); n != want || err != nil {
			t.Errorf("the sweep found %d files, %v, want %d", n, err, want)
		}
	}
	if _, err := b.sweeper.folder(filepath.Dir(path)); err != nil { // that of the start may have been before
		t.Fatal(err)
	}
	w, err := b.Create(ctx, id, -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(seedBytes(7)); err != nil {
		t.Fatal(err)
	}
	sweep(0)
	b.reaper.reap()
	if _, _, err := w.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	sweep(0)
	b.reaper.reap()
	if err := readBack(b, id, seedBytes(7)); err != nil {
		t.Error(err)
	}
}

// countingDisk calls onOpen when it has opened a file for reading, and counts those that are open.
type countingDisk struct {
	fileio.Disk
	onOpen func()
	open   atomic.Int64
}

func (d *countingDisk) Open(path string) (fileio.File, error) {
	f, err := d.Disk.Open(path)
	if err != nil {
		return nil, err
	}
	d.open.Add(1)
	if d.onOpen != nil {
		d.onOpen()
	}
	return &countedFile{f, d}, nil
}

type countedFile struct {
	fileio.File
	disk *countingDisk
}

func (f *countedFile) Close() error {
	f.disk.open.Add(-1)
	return f.File.Close()
}

// TestDeletedWhileRead: the file of a blob that was deleted while somebody began to read it stays
// open no longer than it is there, and another blob of its ID is read from its own.
func TestDeletedWhileRead(t *testing.T) {
	dir := t.TempDir()
	disk := &countingDisk{Disk: fileio.NewOS(dir)}
	c := openAt(t, Options{Dir: dir, disk: disk})
	b := c.Blobs.(*Blobs)
	id := cluster.BlobID{Content: 1, Seq: 1}
	for _, seed := range []int{7, 15, 23} { // of one length
		if err := storeBlob(b, id, seedBytes(seed)); err != nil {
			t.Fatal(err)
		}
		disk.onOpen = func() {
			disk.onOpen = nil
			if err := b.Delete(ctx, id); err != nil {
				t.Error(err)
			}
		}
		p := make([]byte, 100)
		if _, err := b.ReadAt(ctx, id, p, 0); err != nil || !bytes.Equal(p, seedBytes(seed)[:100]) {
			t.Errorf("the blob that is deleted: %v", err)
		}
		if disk.open.Load() == 0 {
			t.Fatal("the file is closed: the test is about nothing")
		}
		if seed == 15 {
			b.reaper.reap()
			if n := disk.open.Load(); n != 0 {
				t.Errorf("%d files are open", n)
			}
		}
	}
	if err := storeBlob(b, id, seedBytes(31)); err != nil {
		t.Fatal(err)
	}
	if err := readBack(b, id, seedBytes(31)); err != nil {
		t.Error(err)
	}
}

// slowRemoves removes when it is told to.
type slowRemoves struct {
	removing chan string
	goOn     chan struct{}
}

func (d *slowRemoves) Remove(path string) error {
	d.removing <- path
	<-d.goOn
	return nil
}

// TestReaperSpares: what is spared is not removed, by a batch that waits for the index
// neither; and who spares what is being removed waits for it.
func TestReaperSpares(t *testing.T) {
	disk := &slowRemoves{removing: make(chan string), goOn: make(chan struct{})}
	syncing, synced := make(chan struct{}), make(chan struct{})
	r := newReaper(disk.Remove, func() error { syncing <- struct{}{}; <-synced; return nil }, slog.Default())
	defer r.stop()
	if r.spare("a") {
		t.Error("of an empty queue")
	}
	if !r.add("a") || !r.add("b") || r.add("a") {
		t.Error("what is added is to be removed, once")
	}
	<-syncing
	if !r.spare("a") {
		t.Error("what waits is not to be removed")
	}
	r.add("a") // deleted again: for the next batch, as the sync was before
	synced <- struct{}{}
	if path := <-disk.removing; path != "b" {
		t.Errorf("%s is removed", path)
	}
	spared := make(chan struct{})
	go func() {
		r.spare("b")
		close(spared)
	}()
	waitFor(t, "spare", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.queue["b"] == nil
	})
	select {
	case <-spared:
		t.Error("spared while it is removed")
	default:
	}
	disk.goOn <- struct{}{}
	<-spared
	<-syncing
	synced <- struct{}{}
	if path := <-disk.removing; path != "a" {
		t.Errorf("%s is removed", path)
	}
	disk.goOn <- struct{}{}
}

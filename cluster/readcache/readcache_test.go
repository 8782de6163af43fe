package readcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ogw/cluster"
	"ogw/cluster/clustertest"
	"ogw/cluster/mem"
)

var (
	bg    = context.Background()
	quiet = slog.New(slog.DiscardHandler)
)

// counted is an engine that counts what it is asked for, and may be held.
type counted struct {
	cluster.Blobs
	requests, bytes atomic.Int64
	hold            chan struct{} // nil: not held
	err             error
}

func (c *counted) ReadAt(ctx context.Context, id cluster.BlobID, p []byte, off int64) (int, error) {
	c.requests.Add(1)
	if c.hold != nil {
		<-c.hold
	}
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.Blobs.ReadAt(ctx, id, p, off)
	c.bytes.Add(int64(n))
	return n, err
}

func open(t testing.TB, b cluster.Blobs, o Options) *Blobs {
	t.Helper()
	o.Log = quiet
	c, err := New(b, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, _, err := c.Claim(bg, 1, 0); err != nil {
		t.Fatal(err)
	}
	return c
}

// keepOpen is an engine that outlives a cache.
type keepOpen struct{ cluster.Blobs }

func (keepOpen) Close() error { return nil }

// fresh is an empty engine with a blob, and what that holds.
func fresh(t testing.TB, size int) (*counted, cluster.BlobID, []byte) {
	t.Helper()
	c, id := &counted{Blobs: keepOpen{mem.New(mem.Options{}).Blobs}}, cluster.BlobID{Content: 3, Seq: 7}
	return c, id, store(t, c, id, size)
}

func store(t testing.TB, b cluster.Blobs, id cluster.BlobID, size int) []byte {
	t.Helper()
	data := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(id.Content), byte(id.Seq)})
	_, _ = r.Read(data)
	return storeBytes(t, b, id, data)
}

func storeBytes(t testing.TB, b cluster.Blobs, id cluster.BlobID, data []byte) []byte {
	t.Helper()
	w, err := b.Create(bg, id, int64(len(data)))
	if err == nil {
		if _, err = w.Write(data); err == nil {
			_, _, err = w.Commit(bg)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// wantAt compares a range with what a reader of all would get.
func wantAt(t testing.TB, b cluster.Blobs, id cluster.BlobID, data []byte, off, n int) {
	t.Helper()
	want := data[min(off, len(data)):min(off+n, len(data))]
	p := make([]byte, n)
	got, err := cluster.ReadSummed(bg, b, cluster.SummedBlob{ID: id, CRC: crc64nvme.Checksum(data)}, p, int64(off))
	if !bytes.Equal(p[:got], want) || (err == io.EOF) != (len(want) < n) || err != nil && err != io.EOF { //nolint:errorlint // as io.ReaderAt has it
		t.Errorf("%d bytes at %d: %d of %d, %v", n, off, got, len(want), err)
	}
}

// claimed is an engine that others could join with the metadata of another store.
type claimed struct {
	cluster.Blobs
	mu           sync.Mutex
	store, count uint64
	closed       bool
}

func (c *claimed) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.Blobs.Close()
}

func (c *claimed) Claim(ctx context.Context, store, known uint64) (before, now uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, 0, cluster.ErrClosed
	}
	if ctx.Err() != nil {
		return 0, 0, ctx.Err()
	}
	if c.count == 0 && known > 0 || c.count > 0 && c.store != store {
		return 0, 0, cluster.ErrMismatch
	}
	before = c.count
	c.store, c.count = store, max(c.count, known)+1
	return before, c.count, nil
}

// summing is a cache all of whose readers know one checksum.
type summing struct{ *Blobs }

func (s summing) ReadAt(ctx context.Context, id cluster.BlobID, p []byte, off int64) (int, error) {
	return s.ReadSummed(ctx, cluster.SummedBlob{ID: id}, p, off)
}

func TestBlobs(t *testing.T) {
	for name, o := range map[string]Options{"memory": {Memory: 64 << 20}, "little": {Memory: 3 * chunkBytes}, "disk": {Memory: chunkBytes, Disk: 20 * chunkBytes}} {
		t.Run(name, func(t *testing.T) {
			clustertest.TestBlobs(t, func(t *testing.T) cluster.Blobs {
				o := o
				o.Dir = t.TempDir()
				o.Log = quiet
				c, err := New(&claimed{Blobs: mem.New(mem.Options{}).Blobs}, o)
				if err != nil {
					t.Fatal(err)
				}
				if c.disk != nil {
					c.disk.begin(1)
				}
				t.Cleanup(func() { c.Close() })
				return summing{c}
			})
		})
	}
}

// Ranges of all kinds, by many readers at a time, through a cache that holds a part of it.
func TestRanges(t *testing.T) {
	c, id, data := fresh(t, 5*chunkBytes+12345)
	other := cluster.BlobID{Content: 4, Seq: 1}
	whole := store(t, c, other, 3*chunkBytes) // ends where a chunk does
	b := open(t, c, Options{Memory: 2 * chunkBytes, Dir: t.TempDir(), Disk: 4 * chunkBytes})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for range 300 {
				wantAt(t, b, id, data, r.IntN(len(data)+chunkBytes), r.IntN([]int{10, 5000, 3 * chunkBytes}[r.IntN(3)])+1)
				wantAt(t, b, other, whole, r.IntN(len(whole)+2), r.IntN(2*chunkBytes)+1)
			}
		})
	}
	wg.Wait()
}

// What was read is not asked for again, by however many at once.
func TestOnce(t *testing.T) {
	c, id, data := fresh(t, 3*chunkBytes)
	c.hold = make(chan struct{})
	b := open(t, c, Options{Memory: 64 << 20})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { wantAt(t, b, id, data, 0, len(data)) })
	}
	ctx, cancel := context.WithCancel(bg)
	gaveUp := make(chan error)
	go func() {
		_, err := b.ReadAt(ctx, id, make([]byte, 10), 0)
		gaveUp <- err
	}()
	time.Sleep(20 * time.Millisecond) // they wait, all of them or some
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up got %v", err)
	}
	close(c.hold)
	wg.Wait()
	wantAt(t, b, id, data, 100, chunkBytes)
	if n := c.bytes.Load(); n != int64(len(data)) {
		t.Errorf("%d bytes of %d were asked for", n, len(data))
	}
}

// A reader in order has what follows asked for before it needs that, in few requests.
func TestReadAhead(t *testing.T) {
	c, id, data := fresh(t, 60*chunkBytes+1)
	b := open(t, c, Options{Memory: 64 << 20})
	for off := 0; off < len(data); off += 128 << 10 {
		wantAt(t, b, id, data, off, 128<<10)
	}
	b.loads.Wait()
	if n, read := c.requests.Load(), c.bytes.Load(); n > 22 || read != int64(len(data)) {
		t.Errorf("%d requests for %d bytes of %d", n, read, len(data))
	}
	// Here and there: no more than was asked for.
	c, id, data = fresh(t, 60*chunkBytes)
	b = open(t, c, Options{Memory: 64 << 20})
	for _, n := range []int{50, 3, 30, 12, 40, 20} {
		wantAt(t, b, id, data, n*chunkBytes+100, 1000)
	}
	b.loads.Wait()
	if read := c.bytes.Load(); read != 6*chunkBytes {
		t.Errorf("%d bytes were read", read)
	}
}

// Memory is bounded, and what it has no room for comes from the disk, after a start, too.
func TestDisk(t *testing.T) {
	c, id, data := fresh(t, 20*chunkBytes+99)
	dir := t.TempDir()
	o := Options{Memory: 4 * chunkBytes, Dir: dir, Disk: 64 * chunkBytes}
	b := open(t, c, o)
	for pass := range 3 {
		for off := 0; off < len(data); off += chunkBytes {
			wantAt(t, b, id, data, off, chunkBytes)
			waitWritten(b)
		}
		if s := b.Stats(); s.KeptMemory > 4*chunkBytes+maxAhead*chunkBytes {
			t.Errorf("pass %d: %d bytes in memory", pass, s.KeptMemory)
		}
	}
	asked := c.bytes.Load()
	if asked > int64(len(data))+8*chunkBytes {
		t.Errorf("%d bytes of %d were asked for in three passes", asked, len(data))
	}
	b.Close()
	again := open(t, c, o)
	wantAt(t, again, id, data, 0, 8*chunkBytes)
	if n := c.bytes.Load() - asked; n > 8*chunkBytes/2 {
		t.Errorf("after a start %d bytes were asked for", n)
	}
	if s := again.Stats(); s.Disk == 0 || s.KeptDisk == 0 {
		t.Errorf("%+v", s)
	}
}

// waitWritten waits until the disk has what it was given.
func waitWritten(b *Blobs) {
	pending := func() int {
		b.disk.mu.Lock()
		defer b.disk.mu.Unlock()
		return len(b.disk.waiting)
	}
	for pending() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// Bytes that changed on the disk, in either file, are read from the engine.
func TestDamage(t *testing.T) {
	for _, name := range []string{"chunks", "index"} {
		t.Run(name, func(t *testing.T) {
			c, id, data := fresh(t, 8*chunkBytes)
			o := Options{Memory: chunkBytes, Dir: t.TempDir(), Disk: 64 * chunkBytes}
			b := open(t, c, o)
			for n := range 8 {
				wantAt(t, b, id, data, n*chunkBytes, 10)
				waitWritten(b)
			}
			b.Close()
			file := filepath.Join(o.Dir, name)
			text, err := os.ReadFile(file)
			if err != nil || len(text) == 0 {
				t.Fatal(err, len(text))
			}
			r := rand.New(rand.NewPCG(1, 2))
			for range 400 {
				text[r.IntN(len(text))] ^= 1 << r.IntN(8)
			}
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			again := open(t, c, o)
			for n := range 8 {
				wantAt(t, again, id, data, n*chunkBytes, chunkBytes)
			}
		})
	}
}

// What the disk has is no answer for a blob of the same ID with another checksum, for
// another store, before the store is known, and for who does not know the checksum.
func TestDiskOfOthers(t *testing.T) {
	o := Options{Memory: chunkBytes, Dir: t.TempDir(), Disk: 64 * chunkBytes}
	old, id, was := fresh(t, 3*chunkBytes)
	b := open(t, old, o)
	wantAt(t, b, id, was, 0, len(was))
	b.Close()

	c := &counted{Blobs: keepOpen{mem.New(mem.Options{}).Blobs}}
	data := storeBytes(t, c, id, bytes.Repeat([]byte("other"), 3*chunkBytes/5))
	b = open(t, c, o)
	wantAt(t, b, id, data, 0, len(data))
	waitWritten(b)
	wantAt(t, b, id, data, 0, len(data))
	if s := b.Stats(); s.Fetched < uint64(len(data)) || s.KeptDisk > 3*chunkBytes {
		t.Errorf("with other bytes: %+v", s)
	}
	b.Close()
	b = open(t, c, o)
	wantAt(t, b, id, data, 0, len(data))
	if s := b.Stats(); s.Disk == 0 {
		t.Errorf("it does not take the place of what was there: %+v", s)
	}
	b.Close()

	for name, use := range map[string]func(b *Blobs) error{
		"another store": func(b *Blobs) error {
			_, _, err := b.Claim(bg, 2, 0)
			return err
		},
		"no store yet": func(*Blobs) error { return nil },
		"no checksum": func(b *Blobs) error {
			if _, _, err := b.Claim(bg, 1, 0); err != nil {
				return err
			}
			_, err := b.ReadAt(bg, id, make([]byte, len(data)), 0)
			return err
		},
	} {
		o.Log, o.Memory = quiet, 16*chunkBytes
		b, err := New(c, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := use(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name != "no checksum" {
			wantAt(t, b, id, data, 0, len(data))
		}
		if s := b.Stats(); s.Disk != 0 || s.Fetched == 0 {
			t.Errorf("%s: %+v", name, s)
		}
		b.Close()
	}
}

// What was deleted or is to be forgotten is asked for again; so are errors.
func TestForget(t *testing.T) {
	c, id, data := fresh(t, 3*chunkBytes)
	b := open(t, c, Options{Memory: chunkBytes, Dir: t.TempDir(), Disk: 64 * chunkBytes})
	read := func() (requests int64) {
		before := c.requests.Load()
		for n := range 3 {
			wantAt(t, b, id, data, n*chunkBytes, 5)
			waitWritten(b)
		}
		return c.requests.Load() - before
	}
	if read() == 0 || read() != 0 {
		t.Error("it is not kept")
	}
	if cluster.ForgetBlobs(b, id.Content+1); read() != 0 {
		t.Error("another content was forgotten, too")
	}
	if cluster.ForgetBlobs(b, id.Content); read() == 0 {
		t.Error("it was not forgotten")
	}
	if err := b.Delete(bg, id); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ReadAt(bg, id, make([]byte, 5), 0); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("what was deleted: %v", err)
	}
	again := store(t, c, cluster.BlobID{Content: 9, Seq: 9}, 10)
	c.err = fmt.Errorf("%w: for a moment", cluster.ErrUnavailable)
	if _, err := b.ReadAt(bg, cluster.BlobID{Content: 9, Seq: 9}, make([]byte, 5), 0); !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("an engine that is away: %v", err)
	}
	c.err = nil
	wantAt(t, b, cluster.BlobID{Content: 9, Seq: 9}, again, 0, 20)
}

// slowFile is a file whose writes wait.
type slowFile struct {
	file
	begun, goOn chan struct{}
}

func (f *slowFile) WriteAt(p []byte, off int64) (int, error) {
	f.begun <- struct{}{}
	<-f.goOn
	return f.file.WriteAt(p, off)
}

// What is forgotten while it waits for the disk, or is being written, does not come back.
func TestForgetOnItsWayToDisk(t *testing.T) {
	c, id, data := fresh(t, 3*chunkBytes)
	o := Options{Memory: chunkBytes, Dir: t.TempDir(), Disk: 64 * chunkBytes}
	b := open(t, c, o)
	slow := &slowFile{b.disk.chunks, make(chan struct{}, 10), make(chan struct{})}
	b.disk.chunks = slow
	for n := range 3 {
		wantAt(t, b, id, data, n*chunkBytes, 5)
	}
	<-slow.begun
	cluster.ForgetBlobs(b, id.Content)
	close(slow.goOn)
	waitWritten(b)
	if s := b.Stats(); s.KeptDisk != 0 || s.KeptMemory != 0 {
		t.Errorf("written meanwhile: %+v", s)
	}
	spill := b.mem.spill
	b.mem.spill = func(c *chunk) bool { // which is in neither then
		cluster.ForgetBlobs(b, id.Content)
		return spill(c)
	}
	wantAt(t, b, id, data, 0, len(data))
	waitWritten(b)
	if s := b.Stats(); s.KeptDisk != 0 {
		t.Errorf("made room meanwhile: %+v", s)
	}
	cluster.ForgetBlobs(b, id.Content)
	b.Close()
	again := open(t, c, o)
	if s := again.Stats(); s.KeptDisk != 0 {
		t.Errorf("at the next start: %+v", s)
	}
}

// A full disk, or one that fails, is as none.
func TestDiskFails(t *testing.T) {
	c, id, data := fresh(t, 6*chunkBytes)
	b := open(t, c, Options{Memory: chunkBytes, Dir: t.TempDir(), Disk: 64 * chunkBytes})
	b.disk.chunks.Close()
	for range 2 {
		for n := range 6 {
			wantAt(t, b, id, data, n*chunkBytes, chunkBytes)
		}
	}
}

// BenchmarkReadAt reads what is in memory, as GET does.
func BenchmarkReadAt(b *testing.B) {
	c, id, _ := fresh(b, 32<<20)
	cache := open(b, c, Options{Memory: 64 << 20})
	p := make([]byte, 1<<20)
	b.SetBytes(1 << 20)
	for i := 0; b.Loop(); i++ {
		if _, err := cache.ReadAt(bg, id, p, int64(i%32)<<20); err != nil {
			b.Fatal(err)
		}
	}
}

package local

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/clustertest"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// memOptions puts a whole store on fs.
func memOptions(fs vfs.FS) Options {
	return Options{Dir: "/store", SegmentBytes: record.Bytes(smallMax), CacheBytes: 1 << 20, fs: fs, disk: vfsDisk{fs}, tailAlone: 2}
}

func newMem(t testing.TB) *vfs.MemFS {
	fs := vfs.NewCrashableMem()
	if err := fs.MkdirAll("/store", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := fileio.SyncDir(fs, "/"); err != nil {
		t.Fatal(err)
	}
	return fs
}

// TestPowerCut runs the suite with half of the unsynced pages lost.
func TestPowerCut(t *testing.T) {
	for _, kept := range []int{0, 50, 100} {
		t.Run(fmt.Sprintf("kept=%d%%", kept), func(t *testing.T) {
			clustertest.TestRestart(t, func(t *testing.T) clustertest.Restarter {
				fs := newMem(t)
				rng := rand.New(rand.NewPCG(1, uint64(kept)))
				return clustertest.Restarter{
					Open:     func(t *testing.T) *cluster.Cluster { return openAt(t, memOptions(fs)) },
					PowerCut: func(*testing.T) { fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: rng}) },
				}
			})
		})
	}
}

// journal is what a scenario was promised.
type journal struct {
	mu    sync.Mutex
	blobs map[cluster.BlobID]int     // data of the blobs whose publication was acknowledged, as a seed
	gone  map[cluster.BlobID]bool    // deletions begun: either is right
	keys  map[string]string          // values that were acknowledged
	maybe map[string]map[string]bool // values that were begun
}

func newJournal() *journal {
	return &journal{blobs: map[cluster.BlobID]int{}, gone: map[cluster.BlobID]bool{},
		keys: map[string]string{}, maybe: map[string]map[string]bool{}}
}

func seedBytes(seed int) []byte {
	sizes := []int{0, 300, 5000, 70_000, 200_000, 1 << 20, 1<<20 + 1, 2<<20 + 77}
	data := make([]byte, sizes[seed%len(sizes)])
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(data)
	return data
}

func storeBlob(b cluster.Blobs, id cluster.BlobID, data []byte) error {
	w, err := b.Create(ctx, id, int64(len(data)))
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	_, _, err = w.Commit(ctx)
	return err
}

// set writes a pair and keeps the journal.
func (j *journal) set(kv cluster.KV, key, value string) error {
	j.mu.Lock()
	if j.maybe[key] == nil {
		j.maybe[key] = map[string]bool{}
	}
	j.maybe[key][value] = true
	j.mu.Unlock()
	err := kv.Update(ctx, func(txn cluster.Txn) error { return txn.Set([]byte(key), []byte(value)) })
	if err == nil {
		j.mu.Lock()
		j.keys[key] = value
		j.maybe[key] = map[string]bool{value: true}
		j.mu.Unlock()
	}
	return err
}

// step does one thing: store and publish a blob, change a counter, or delete.
func (j *journal) step(c *cluster.Cluster, worker, i int) error {
	id := cluster.BlobID{Content: uint64(worker + 1), Seq: uint64(i)}
	if err := storeBlob(c.Blobs, id, seedBytes(worker*7+i)); err != nil {
		return err
	}
	if err := j.set(c.KV, fmt.Sprintf("w%d", worker), strconv.Itoa(i)); err != nil {
		return err
	}
	j.mu.Lock()
	j.blobs[id] = worker*7 + i
	j.mu.Unlock()
	if i < 2 || i%3 == 0 {
		return nil
	}
	old := cluster.BlobID{Content: id.Content, Seq: id.Seq - 2}
	j.mu.Lock()
	j.gone[old] = true
	j.mu.Unlock()
	return c.Blobs.Delete(ctx, old)
}

// check compares what a store holds with what j promises, which must be a
// promise from before the cut.
func (j *journal) check(c *cluster.Cluster) error {
	for key, want := range j.keys {
		var got []byte
		if err := c.KV.View(ctx, func(r cluster.Reader) (err error) {
			got, err = r.Get([]byte(key))
			return err
		}); err != nil {
			return err
		}
		if string(got) != want && !j.maybe[key][string(got)] {
			return fmt.Errorf("%s is %q, acknowledged was %q", key, got, want)
		}
	}
	return j.checkBlobs(c)
}

func (j *journal) checkBlobs(c *cluster.Cluster) error {
	for id, seed := range j.blobs {
		err := readBack(c.Blobs, id, seedBytes(seed))
		if err != nil && !(j.gone[id] && errors.Is(err, cluster.ErrNotFound)) {
			return err
		}
	}
	// Whatever is shown is whole.
	return c.Blobs.List(ctx, cluster.BlobID{}, func(info cluster.BlobInfo) error {
		return readBack(c.Blobs, info.ID, seedBytes(int(info.ID.Content-1)*7+int(info.ID.Seq)))
	})
}

func readBack(b cluster.Blobs, id cluster.BlobID, want []byte) error {
	got := make([]byte, len(want)+1)
	n, err := b.ReadAt(ctx, id, got, 0)
	if err != nil && err != io.EOF {
		return fmt.Errorf("blob %v of %d bytes: %w", id, len(want), err)
	}
	if !bytes.Equal(got[:n], want) {
		return fmt.Errorf("blob %v of %d bytes: %d wrong bytes", id, len(want), n)
	}
	return nil
}

func (j *journal) clone() *journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := newJournal()
	for id, seed := range j.blobs {
		k.blobs[id] = seed
	}
	for id := range j.gone {
		k.gone[id] = true
	}
	for key, v := range j.keys {
		k.keys[key] = v
		k.maybe[key] = map[string]bool{}
		for m := range j.maybe[key] {
			k.maybe[key][m] = true
		}
	}
	return k
}

// cutRound is how many cuts one store sees: it grows, and every cut checks all
// of it.
const cutRound = 40

// TestCutPoints cuts the power before mutating calls on the file system while
// two clients work and segments are collected, and checks what each cut leaves.
// OGW_CUT_POINTS sets how many; by default as many as take some seconds.
func TestCutPoints(t *testing.T) {
	points := 2 * cutRound
	if v, err := strconv.Atoi(os.Getenv("OGW_CUT_POINTS")); err == nil {
		points = v
	}
	if testing.Short() {
		points = cutRound / 2
	}
	for done := 0; done < points && !t.Failed(); done += cutRound {
		t.Run(fmt.Sprint(done), func(t *testing.T) { testCutPoints(t, min(cutRound, points-done)) })
	}
}

func testCutPoints(t *testing.T, points int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	base := newMem(t)
	j := newJournal()
	var mu sync.Mutex // one cut at a time
	var on atomic.Bool
	cuts, calls, skip := 0, 0, 0
	var failure error
	fs := errorfs.Wrap(base, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !on.Load() || op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if calls++; cuts >= points || failure != nil || calls < skip {
			return nil
		}
		skip = calls + rng.IntN(8)
		cuts++
		promised := j.clone()
		left := base.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 70, 100}[rng.IntN(4)], RNG: rng})
		failure = checkLeft(promised, left)
		if failure != nil {
			failure = fmt.Errorf("cut %d before %v of %s: %w", cuts, op.Kind, op.Path, failure)
		}
		return nil
	}))
	o := memOptions(fs)
	o.collectEvery, o.markEvery = 20*time.Millisecond, 30*time.Millisecond
	c := openAt(t, o)
	on.Store(true)
	finished := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return cuts >= points || failure != nil
	}
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for i := 0; !finished(); i++ {
				if err := j.step(c, w, i); err != nil {
					t.Errorf("client %d, step %d: %v", w, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	on.Store(false)
	if failure != nil {
		t.Fatal(failure)
	}
	if err := j.check(c); err != nil {
		t.Errorf("without a cut: %v", err)
	}
	t.Logf("%d cut points among %d calls", cuts, calls)
}

func checkLeft(promised *journal, left *vfs.MemFS) error {
	c, err := Open(ctx, memOptions(left))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer c.Close()
	return promised.check(c)
}

package clustertest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"ogw/cluster"
)

// Restarter is a store that can be opened again.
type Restarter struct {
	// Open opens the store, the first time an empty one.
	Open func(t *testing.T) *cluster.Cluster
	// PowerCut ends the open engine without its knowledge: what is not
	// durable is lost. It is called once and followed by Open. Nil if the
	// engine cannot do that.
	PowerCut func(t *testing.T)
}

// TestRestart checks what a store holds after it was closed and opened, and
// after the power went. fresh returns an empty store each time.
func TestRestart(t *testing.T, fresh func(t *testing.T) Restarter) {
	t.Run("Reopen", func(t *testing.T) { testReopen(t, fresh(t)) })
	t.Run("CreateAgain", func(t *testing.T) { testReopenCreatedAgain(t, fresh(t)) })
	t.Run("PowerCut", func(t *testing.T) { testPowerCut(t, fresh(t)) })
	t.Run("PowerCutRelaxed", func(t *testing.T) { testPowerCutRelaxed(t, fresh(t)) })
	t.Run("PowerCutUnderLoad", func(t *testing.T) { testPowerCutUnderLoad(t, fresh(t)) })
}

func testReopen(t *testing.T, s Restarter) {
	c := s.Open(t)
	for i, n := range sizes {
		mustPut(t, c.Blobs, cluster.BlobID{Content: 1, Seq: uint64(i)}, content(uint64(i), n))
	}
	set(t, c.KV, pair{"a", "1"}, pair{"b", "2"})
	if err := c.KV.Update(cluster.Relaxed(ctx), func(txn cluster.Txn) error {
		return errors.Join(txn.Set([]byte("c"), []byte("3")), txn.Delete([]byte("b")))
	}); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		if err := c.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
		c = s.Open(t)
		view(t, c.KV, func(r cluster.Reader) error {
			wantScan(t, r, "", "", cluster.ScanOptions{}, "a=1", "c=3")
			return nil
		})
		for i, n := range sizes {
			id := cluster.BlobID{Content: 1, Seq: uint64(i)}
			if i < round {
				wantAbsent(t, c.Blobs, id)
				continue
			}
			wantBlob(t, c.Blobs, id, content(uint64(i), n))
		}
		if err := c.Blobs.Delete(ctx, cluster.BlobID{Content: 1, Seq: uint64(round)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// testReopenCreatedAgain: what an engine still has to do for a blob that was deleted is
// not done to the one that was created under its ID.
func testReopenCreatedAgain(t *testing.T, s Restarter) {
	c := s.Open(t)
	for round := range 3 {
		for i, n := range sizes {
			id := cluster.BlobID{Content: 1, Seq: uint64(i)}
			if err := c.Blobs.Delete(ctx, id); err != nil {
				t.Fatal(err)
			}
			mustPut(t, c.Blobs, id, content(uint64(round*len(sizes)+i), n))
		}
		if err := c.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
		c = s.Open(t)
		for i, n := range sizes {
			wantBlob(t, c.Blobs, cluster.BlobID{Content: 1, Seq: uint64(i)}, content(uint64(round*len(sizes)+i), n))
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// testPowerCut: what was acknowledged is there; what was not is not, or is
// there whole.
func testPowerCut(t *testing.T, s Restarter) {
	if s.PowerCut == nil {
		t.Skip("the engine cannot lose its power")
	}
	c := s.Open(t)
	small, large := cluster.BlobID{Content: 1, Seq: 1}, cluster.BlobID{Content: 1, Seq: 2}
	mustPut(t, c.Blobs, small, content(1, 5000))
	mustPut(t, c.Blobs, large, content(2, 3<<20))
	set(t, c.KV, pair{"published", "yes"})
	late := cluster.BlobID{Content: 2, Seq: 1}
	mustPut(t, c.Blobs, late, content(3, 5000)) // no Update follows
	started := cluster.BlobID{Content: 2, Seq: 2}
	w, err := c.Blobs.Create(ctx, started, -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content(4, 3<<20)); err != nil {
		t.Fatal(err)
	}
	s.PowerCut(t)
	c = s.Open(t)
	defer c.Close()
	if v := get(t, c.KV, "published"); string(v) != "yes" {
		t.Errorf("an acknowledged Update is lost: %q", v)
	}
	wantBlob(t, c.Blobs, small, content(1, 5000))
	wantBlob(t, c.Blobs, large, content(2, 3<<20))
	wantAbsent(t, c.Blobs, started)
	wantWholeOrAbsent(t, c.Blobs, late, content(3, 5000))
	mustPut(t, c.Blobs, started, content(5, 2<<20)) // leftovers are not in the way
	wantBlob(t, c.Blobs, started, content(5, 2<<20))
}

func wantWholeOrAbsent(t *testing.T, b cluster.Blobs, id cluster.BlobID, data []byte) {
	t.Helper()
	if _, err := b.Locate(ctx, id); errors.Is(err, cluster.ErrNotFound) {
		wantAbsent(t, b, id)
		return
	}
	wantBlob(t, b, id, data)
}

// testPowerCutRelaxed: relaxed commits survive in their order, from a prefix
// to all of them; those before a Sync or a strict Update all do. What a strict
// View returned stays.
func testPowerCutRelaxed(t *testing.T, s Restarter) {
	if s.PowerCut == nil {
		t.Skip("the engine cannot lose its power")
	}
	c := s.Open(t)
	relaxed := cluster.Relaxed(ctx)
	add := func(i int) {
		t.Helper()
		if err := c.KV.Update(relaxed, func(txn cluster.Txn) error {
			return txn.Set(fmt.Appendf(nil, "k%03d", i), []byte("v"))
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		add(i)
	}
	if err := c.KV.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	add(10)
	set(t, c.KV, pair{"strict", ""})
	add(11)
	if get(t, c.KV, "k011") == nil {
		t.Error("a relaxed commit is not visible")
	}
	for i := 12; i < 40; i++ {
		add(i)
	}
	s.PowerCut(t)
	c = s.Open(t)
	defer c.Close()
	if get(t, c.KV, "strict") == nil {
		t.Error("an acknowledged Update is lost")
	}
	present := true
	for i := range 40 {
		found := get(t, c.KV, fmt.Sprintf("k%03d", i)) != nil
		if found && !present {
			t.Errorf("k%03d survived, an earlier commit did not", i)
		}
		if !found && i <= 11 {
			t.Errorf("k%03d was durable and is lost", i)
		}
		present = found
	}
}

// testPowerCutUnderLoad cuts the power while clients write blobs and publish
// them, and delete some.
func testPowerCutUnderLoad(t *testing.T, s Restarter) {
	if s.PowerCut == nil {
		t.Skip("the engine cannot lose its power")
	}
	c := s.Open(t)
	const workers = 4
	var cut atomic.Bool
	// What was acknowledged before the cut: 1 published, 2 taken back.
	var acked [workers]map[int]int
	stop := make(chan struct{})
	size := func(i int) int { return []int{100, 70_000, 1<<20 + 100, 4000}[i%4] }
	var wg sync.WaitGroup
	var reached sync.WaitGroup
	reached.Add(workers)
	for w := range workers {
		wg.Go(func() {
			var once sync.Once
			defer once.Do(reached.Done)
			acked[w] = map[int]int{}
			for i := 1; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if i == 10 {
					once.Do(reached.Done)
				}
				id := cluster.BlobID{Content: uint64(w), Seq: uint64(i)}
				if put(c.Blobs, id, content(uint64(w*1000+i), size(i))) != nil {
					return
				}
				key := fmt.Appendf(nil, "w%d/%04d", w, i)
				if c.KV.Update(ctx, func(txn cluster.Txn) error { return txn.Set(key, nil) }) != nil {
					return
				}
				if !cut.Load() {
					acked[w][i] = 1
				}
				if i%3 == 0 {
					old := fmt.Appendf(nil, "w%d/%04d", w, i-2)
					delete(acked[w], i-2) // either is right until it is acknowledged
					if c.KV.Update(ctx, func(txn cluster.Txn) error { return txn.Delete(old) }) != nil {
						return
					}
					if !cut.Load() {
						acked[w][i-2] = 2
					}
					if c.Blobs.Delete(ctx, cluster.BlobID{Content: uint64(w), Seq: uint64(i - 2)}) != nil {
						return
					}
				}
			}
		})
	}
	reached.Wait()
	cut.Store(true)
	s.PowerCut(t)
	close(stop)
	wg.Wait() // what they still did went to the store that is gone
	c = s.Open(t)
	defer c.Close()
	for w := range workers {
		var published []int
		view(t, c.KV, func(r cluster.Reader) error {
			published = nil
			prefix := fmt.Sprintf("w%d/", w)
			return r.Scan([]byte(prefix), cluster.PrefixEnd([]byte(prefix)), cluster.ScanOptions{}, func(key, _ []byte) error {
				var i int
				_, err := fmt.Sscanf(string(key[len(prefix):]), "%d", &i)
				published = append(published, i)
				return err
			})
		})
		// Whatever is published is there, whole.
		for _, i := range published {
			wantBlob(t, c.Blobs, cluster.BlobID{Content: uint64(w), Seq: uint64(i)}, content(uint64(w*1000+i), size(i)))
		}
		for i, state := range acked[w] {
			if found := slices.Contains(published, i); found != (state == 1) {
				t.Errorf("client %d: entry %d was acknowledged as state %d, found %v", w, i, state, found)
			}
		}
		if len(acked[w]) < 8 {
			t.Errorf("client %d: the test saw only %v", w, acked[w])
		}
	}
	// Whatever exists can be read.
	for _, info := range list(t, c.Blobs, cluster.BlobID{}) {
		i := int(info.ID.Seq)
		wantBlob(t, c.Blobs, info.ID, content(info.ID.Content*1000+info.ID.Seq, size(i)))
	}
}

package engines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/integration/testenv"
	"ogw/vfs"
)

// operation is one whose round trips to the server of the metadata are counted.
type operation struct {
	name string
	run  func(i int) error
	most float64 // round trips that are known; docs/cluster.md has the table
	// told are those of a gateway beside others that tell it what they change.
	told float64
}

const (
	// costRuns of an operation are counted together, under numbers from 0; the next
	// try has the next ones.
	costRuns = 40
	// costTries of an operation may cost more: what runs in the background comes in
	// bursts, and more so on a machine that is busy.
	costTries = 3
	// coldItems are what is to be read once, by all tries.
	coldItems = costTries * costRuns
)

// costs counts for a gateway.
func (x *shared) costs(t *testing.T, a *testenv.Server, list []operation) {
	if x.many {
		for i := range list {
			list[i].most = list[i].told
		}
		waitFor(t, func() bool { return told(a) })
	}
	x.meta.costs(t, list)
}

// costs counts what the server of the metadata is asked for by each operation: a
// round trip each. What runs in the background is taken off.
func (m *metaServer) costs(t *testing.T, list []operation) {
	rate := m.idle(t)
	for _, op := range list {
		var c tripCost
		for try := range costTries {
			if try > 0 { // what comes of the operations before may have begun, or be over
				rate = m.idle(t)
			}
			if c = m.cost(t, op, try*costRuns, rate); c.within(op.most) {
				break
			}
		}
		if !c.within(op.most) {
			t.Errorf("%s: %.1f round trips, at most %.0f are known", op.name, c.each, op.most)
		}
	}
}

// tripCost is what one run of an operation costs.
type tripCost struct {
	each       float64 // the mean, of which background is taken off
	background float64
	least      float64 // that of one run, with what ran in the background then
}

// within reports whether no more round trips are seen than are known. How much runs in the
// background differs from one second to the next: on a machine so slow that what was taken off
// is guesswork, each run has to show more.
func (c tripCost) within(most float64) bool {
	const guesswork = 0.25 // of a round trip
	return c.each <= most+0.5 || c.background > guesswork && c.least <= most
}

// idle returns how many round trips a second are of what runs in the background.
func (m *metaServer) idle(t *testing.T) float64 {
	const idle = 6 * time.Second // three beats, and each of the background's turns
	before := m.trips(t)
	time.Sleep(idle)
	rate := (m.trips(t) - before) / idle.Seconds()
	t.Logf("in the background %.1f round trips a second", rate)
	return rate
}

// cost runs op under numbers from first.
func (m *metaServer) cost(t *testing.T, op operation, first int, rate float64) tripCost {
	begin, before := time.Now(), m.trips(t)
	c, last := tripCost{least: math.Inf(1)}, before
	for i := range costRuns {
		if err := op.run(first + i); err != nil {
			t.Fatalf("%s: %v", op.name, err)
		}
		now := m.trips(t)
		c.least, last = min(c.least, now-last), now
	}
	took := time.Since(begin)
	c.background = rate * took.Seconds() / costRuns
	c.each = (last-before)/costRuns - c.background
	t.Logf("%s: %.1f round trips, at least %.0f, %v", op.name, c.each, c.least, (took / costRuns).Round(100*time.Microsecond))
	return c
}

func TestGatewayCosts(t *testing.T) { onMetadata(t, testGatewayCosts) }

// TestManyGatewaysCosts: a gateway beside another one that does nothing costs the same.
func TestManyGatewaysCosts(t *testing.T) {
	onMetadata(t, func(t *testing.T, x *shared) {
		x.manyGateways()
		testGatewayCosts(t, x)
	})
}

func testGatewayCosts(t *testing.T, x *shared) {
	a := x.gateway(nil)
	if x.many {
		x.gateway(a)
	}
	c := s3Client(t, a)
	ctx := context.Background()
	if err := c.MakeBucket(ctx, "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	key := func(i int) string { return fmt.Sprint("small", i%costRuns) }
	cold := func(i int) string { return fmt.Sprint("cold", i) }
	read := func(key string) error {
		o, err := c.GetObject(ctx, "bkt", key, minio.GetObjectOptions{})
		if err == nil {
			_, err = io.Copy(io.Discard, o)
		}
		return err
	}
	head := func(key string) error {
		_, err := c.StatObject(ctx, "bkt", key, minio.StatObjectOptions{})
		return err
	}
	for i := range coldItems {
		if err := errors.Join(put(c, fmt.Sprint("gone", i), small), put(c, cold(i), small)); err != nil {
			t.Fatal(err)
		}
	}
	x.costs(t, a, []operation{
		{"PUT of 5 bytes", func(i int) error { return put(c, fmt.Sprint("small", i), small) }, 2, 2},
		{"PUT of 5 bytes again", func(i int) error { return put(c, key(i), small) }, 2, 1},
		{"PUT of 5 bytes in a new directory", func(i int) error { return put(c, fmt.Sprint("dir", i, "/key"), small) }, 3, 3},
		{"PUT of 1 MiB", func(i int) error { return put(c, fmt.Sprint("big", i), big[:1<<20]) }, 2, 2},
		{"GET of 5 bytes", func(i int) error { return read(key(i)) }, 1, 0},
		{"HEAD", func(i int) error { return head(key(i)) }, 1, 0},
		{"DELETE", func(i int) error {
			return c.RemoveObject(ctx, "bkt", fmt.Sprint("gone", i), minio.RemoveObjectOptions{})
		}, 1, 1},
	})
	if x.many && os.Geteuid() == 0 {
		mountCosts(t, x, a)
	}
	a.Stop()
	a.Start()
	x.costs(t, a, []operation{
		{"GET of 5 bytes, not in memory", func(i int) error { return read(cold(i)) }, 3, 3},
		{"HEAD, of what was read", func(i int) error { return head(cold(i % costRuns)) }, 1, 0},
	})
}

// mountCosts counts what programs cause that use a mount beside another gateway. The kernel
// keeps nothing unasked, so that it asks for each component of a path, and its rights, each time.
func mountCosts(t *testing.T, x *shared, a *testenv.Server) {
	dir := filepath.Join(a.Mount(), "bkt")
	file := func(i int) string { return filepath.Join(dir, fmt.Sprint("file", i)) }
	var open *os.File
	x.costs(t, a, []operation{
		{name: "mount: create, write 5 bytes and close", run: func(i int) error { return os.WriteFile(file(i), small, 0o644) }, told: 4},
		{name: "mount: stat", run: func(i int) error {
			_, err := os.Stat(file(i % costRuns))
			return err
		}},
		{name: "mount: open and close", run: func(i int) error {
			f, err := os.Open(file(i % costRuns))
			if err == nil {
				err = f.Close()
			}
			return err
		}},
		{name: "mount: open, read 5 bytes and close", run: func(i int) error {
			f, err := os.Open(file(i % costRuns))
			if err == nil {
				_, err = f.Read(make([]byte, 5))
				err = errors.Join(err, f.Close())
			}
			return err
		}},
		{name: "mount: read of what is open", run: func(int) (err error) {
			if open == nil {
				if open, err = os.Open(file(0)); err != nil {
					return err
				}
			}
			_, err = open.ReadAt(make([]byte, 5), 0)
			return err
		}},
		{name: "mount: append 5 bytes", run: func(int) error { return appendTo(file(1), "12345") }, told: 6},
	})
	if err := open.Close(); err != nil {
		t.Error(err)
	}
}

// TestNamespaceCosts counts for the doors of a file system, which wait for it.
func TestNamespaceCosts(t *testing.T) {
	t.Parallel()
	for _, kind := range metaKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			m := kind.start(t)
			t.Run("one", func(t *testing.T) { testNamespaceCosts(t, m, false) })
			t.Run("many", func(t *testing.T) { testNamespaceCosts(t, m, true) })
		})
	}
}

// testNamespaceCosts counts where the process has the store to itself, or beside others.
func testNamespaceCosts(t *testing.T, m *metaServer, beside bool) {
	ctx, root := context.Background(), vfs.NewCred(0, 0)
	blobs := mem.New(mem.Options{}).Blobs
	open := func() *vfs.FS {
		c := &cluster.Cluster{KV: m.open(t), Blobs: blobs, Name: "test", Exclusive: true}
		if beside {
			me := vfs.Gateway{Host: "test", Started: time.Now(), Beside: true, Serves: true}
			var err error
			if c, err = vfs.Join(ctx, c, me, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.KV.Close() })
		}
		fs, err := vfs.Open(ctx, c, vfs.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { fs.Close(ctx) })
		return fs
	}
	fs := open()
	bucket, err := fs.CreateBucket(ctx, fmt.Sprint("bkt-", beside), root)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := fs.Mkdir(ctx, root, bucket.Ino, "dir", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	for i := range coldItems {
		if _, err := fs.Mknod(ctx, root, dir.Ino, fmt.Sprint("cold", i), vfs.NodeOptions{Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	var inodes [costRuns]vfs.Ino
	lookup := func(i int) error {
		i %= costRuns
		a, err := fs.Lookup(ctx, root, dir.Ino, fmt.Sprint("file", i))
		inodes[i] = a.Ino
		return err
	}
	getattr := func(i int) error {
		_, err := fs.GetAttr(ctx, inodes[i%costRuns])
		return err
	}
	var read *vfs.File
	write := 3.0
	if beside {
		write++ // it looks whether another one changed the file
	}
	m.costs(t, []operation{
		{"create, write and close", func(i int) error {
			_, f, _, err := fs.Create(ctx, root, dir.Ino, fmt.Sprint("file", i), vfs.CreateOptions{Mode: 0o644, Flags: vfs.OpenWrite})
			if err != nil {
				return err
			}
			if _, err = f.WriteAt(ctx, small, 0); err != nil {
				return err
			}
			return f.Close(ctx)
		}, write, write},
		{"lookup", lookup, 1, 1},
		{"getattr", getattr, 1, 1},
		{"read with attributes", func(int) (err error) {
			if read == nil {
				if read, err = fs.Open(ctx, root, inodes[0], vfs.OpenRead|vfs.OpenRefreshes); err != nil {
					return err
				}
			}
			_, _, err = read.Refresh(ctx)
			if err == nil {
				_, err = read.ReadAt(ctx, make([]byte, len(small)), 0)
			}
			return err
		}, 1, 1},
	})
	if err := read.Close(ctx); err != nil {
		t.Error(err)
	}
	fs = open()
	m.costs(t, []operation{
		{"lookup, not in memory", func(i int) error {
			a, err := fs.Lookup(ctx, root, dir.Ino, fmt.Sprint("cold", i))
			inodes[i%costRuns] = a.Ino
			return err
		}, 2, 2},
		{"getattr, after that", getattr, 1, 1},
	})
}

//go:build ceph

package engines

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/rados/librados"
	"ogw/integration/testenv"
)

const (
	// radosTime is how long each figure is measured.
	radosTime = 5 * time.Second
	benchBlob = 4 << 20
)

// BenchmarkRADOS measures the engine beside rados bench in the same pool, and what its index
// costs and saves. Each part is one measurement: -benchtime 1x (make bench-ceph).
func BenchmarkRADOS(b *testing.B) {
	c := testenv.StartCeph(b)
	pool := c.Pool()
	blobs, err := tryRADOS(inPool(c, pool))
	if err != nil {
		b.Fatal(err)
	}
	defer blobs.Close()
	var stored atomic.Uint64
	data := make([]byte, benchBlob)
	for _, clients := range []int{1, 4, 16} {
		first := stored.Load()
		b.Run(fmt.Sprint("write4MiB/", clients), func(b *testing.B) {
			report(b, clients, benchBlob, func([]byte) error { return storeBlob(blobs, cluster.BlobID{Content: 1, Seq: stored.Add(1)}, data) })
		})
		b.Run(fmt.Sprint("write4MiB/", clients, "/radosbench"), func(b *testing.B) { radosBench(b, c, pool, clients, "write", "--no-cleanup") })
		n := stored.Load() - first
		b.Run(fmt.Sprint("read4MiB/", clients), func(b *testing.B) {
			var next atomic.Uint64
			report(b, clients, benchBlob, func(buf []byte) error {
				_, err := blobs.ReadAt(context.Background(), cluster.BlobID{Content: 1, Seq: first + 1 + next.Add(1)%n}, buf, 0)
				return err
			})
		})
		b.Run(fmt.Sprint("read4MiB/", clients, "/radosbench"), func(b *testing.B) { radosBench(b, c, pool, clients, "seq") })
		b.Run(fmt.Sprint("read4KiB/", clients), func(b *testing.B) {
			report(b, clients, 4<<10, func(buf []byte) error {
				id := cluster.BlobID{Content: 1, Seq: first + 1 + rand.Uint64N(n)}
				_, err := blobs.ReadAt(context.Background(), id, buf[:4<<10], rand.Int64N(benchBlob/(4<<10))*(4<<10))
				return err
			})
		})
	}
}

// report runs one request after another of each client for radosTime; each has a buffer.
func report(b *testing.B, clients, bytes int, request func(buf []byte) error) {
	b.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	begin := time.Now()
	for range clients {
		wg.Go(func() {
			buf := make([]byte, benchBlob)
			for time.Since(begin) < radosTime {
				from := time.Now()
				if err := request(buf); err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(from))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	seconds := time.Since(begin).Seconds()
	slices.Sort(took)
	if len(took) > 0 {
		b.ReportMetric(float64(len(took))*float64(bytes)/1e6/seconds, "MB/s")
		b.ReportMetric(float64(len(took))/seconds, "requests/s")
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs(median)")
	}
}

var bandwidth = regexp.MustCompile(`Bandwidth \(MB/sec\):\s+([0-9.]+)`)

// radosBench reports what Ceph's own program reaches.
func radosBench(b *testing.B, c *testenv.Ceph, pool string, clients int, args ...string) {
	b.Helper()
	args = append([]string{"-c", c.Conf(), "-p", pool, "-t", fmt.Sprint(clients), "bench", fmt.Sprint(int(radosTime.Seconds()))}, args...)
	out, err := exec.Command("rados", args...).CombinedOutput()
	found := bandwidth.FindSubmatch(out)
	if err != nil || found == nil {
		b.Fatalf("rados bench: %v\n%s", err, out)
	}
	rate, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(rate*(1<<20)/1e6, "MB/s") // it counts in MiB
}

// BenchmarkRADOSIndex measures what the index costs a write, and what listing costs with it and
// by hash.
func BenchmarkRADOSIndex(b *testing.B) {
	c := testenv.StartCeph(b)
	pool := c.Pool()
	o := inPool(c, pool)
	blobs, err := tryRADOS(o)
	if err != nil {
		b.Fatal(err)
	}
	defer blobs.Close()
	bare, err := librados.Open(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	var n atomic.Uint64
	data := make([]byte, 64<<10)
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprint("bare64KiB/", clients), func(b *testing.B) {
			report(b, clients, len(data), func([]byte) error { return bare.Create(context.Background(), fmt.Sprint("bare", n.Add(1)), data) })
		})
		b.Run(fmt.Sprint("entry/", clients), func(b *testing.B) {
			report(b, clients, 0, func([]byte) error {
				i := n.Add(1)
				return bare.Add(context.Background(), fmt.Sprint("pairs", i%256), fmt.Sprintf("%049d", i), data[:8])
			})
		})
		b.Run(fmt.Sprint("blob64KiB/", clients), func(b *testing.B) {
			report(b, clients, len(data), func([]byte) error { return storeBlob(blobs, cluster.BlobID{Content: n.Add(1)}, data) })
		})
	}
	b.Run("list", func(b *testing.B) {
		begin, found := time.Now(), 0
		if err := blobs.List(context.Background(), cluster.BlobID{}, func(cluster.BlobInfo) error { found++; return nil }); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(found), "blobs")
		b.ReportMetric(float64(found)/time.Since(begin).Seconds(), "blobs/s")
	})
	b.Run("list512", func(b *testing.B) {
		report(b, 1, 0, func([]byte) error {
			seen := 0
			return blobs.List(context.Background(), cluster.BlobID{Content: rand.Uint64N(n.Load())}, func(cluster.BlobInfo) error {
				if seen++; seen == 512 {
					return cluster.ErrStop
				}
				return nil
			})
		})
	})
	b.Run("byHash", func(b *testing.B) {
		begin := time.Now()
		found := len(c.With(b).Objects(pool, o.Namespace))
		b.ReportMetric(float64(found), "objects")
		b.ReportMetric(float64(found)/time.Since(begin).Seconds(), "objects/s")
	})
}

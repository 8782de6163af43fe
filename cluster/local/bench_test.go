package local

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"ogw/cluster"
)

// The benchmarks need a disk, not a tmpfs: set TMPDIR. Each is durable.

// parallel runs fn b.N times in all on a number of clients.
func parallel(b *testing.B, clients int, fn func(i int) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range clients {
		wg.Go(func() {
			for {
				i := int(next.Add(1))
				if i > b.N {
					return
				}
				if err := fn(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func be64(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func dentry(i int) []byte { return fmt.Appendf([]byte("d00000001"), "file%09d", i) }
func inode(i int) []byte  { return append([]byte("i"), be64(i)...) }

func createFile(kv cluster.KV, ctx context.Context, i int) error {
	return kv.Update(ctx, func(txn cluster.Txn) error {
		if _, err := txn.Get([]byte("i-parent")); err != nil {
			return err
		}
		if v, err := txn.Get(dentry(i)); err != nil || v != nil {
			return fmt.Errorf("exists: %v", err)
		}
		if err := txn.Set(dentry(i), be64(i)); err != nil {
			return err
		}
		if err := txn.Set(inode(i), make([]byte, 120)); err != nil {
			return err
		}
		return txn.Set([]byte("t-parent"), be64(i))
	})
}

func BenchmarkCreate(b *testing.B) {
	for _, clients := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			c := openAt(b, Options{Dir: b.TempDir()})
			parallel(b, clients, func(i int) error { return createFile(c.KV, context.Background(), i) })
		})
	}
	b.Run("relaxed/clients=1", func(b *testing.B) {
		c := openAt(b, Options{Dir: b.TempDir()})
		ctx := cluster.Relaxed(context.Background())
		parallel(b, 1, func(i int) error { return createFile(c.KV, ctx, i) })
	})
}

func BenchmarkCounter(b *testing.B) {
	c := openAt(b, Options{Dir: b.TempDir()})
	var runs atomic.Int64
	parallel(b, 16, func(int) error {
		return c.KV.Update(context.Background(), func(txn cluster.Txn) error {
			runs.Add(1)
			v, err := txn.Get([]byte("n"))
			if err != nil {
				return err
			}
			n := 0
			if v != nil {
				n = int(binary.BigEndian.Uint64(v))
			}
			return txn.Set([]byte("n"), be64(n+1))
		})
	})
	b.ReportMetric(100*float64(runs.Load()-int64(b.N))/float64(b.N), "%conflicts")
}

// filled returns a store of n files.
func filled(b *testing.B, n int) *cluster.Cluster {
	c := openAt(b, Options{Dir: b.TempDir()})
	const batch = 10000
	for from := 0; from < n; from += batch {
		if err := c.KV.Update(cluster.Relaxed(context.Background()), func(txn cluster.Txn) error {
			for i := from; i < from+batch; i++ {
				if err := txn.Set(dentry(i), be64(i)); err != nil {
					return err
				}
				if err := txn.Set(inode(i), make([]byte, 120)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	return c
}

func BenchmarkRead(b *testing.B) {
	const n = 300_000
	c := filled(b, n)
	ctx := context.Background()
	b.Run("Get/clients=2", func(b *testing.B) {
		parallel(b, 2, func(int) error {
			return c.KV.View(ctx, func(r cluster.Reader) error {
				_, err := r.Get(inode(rand.IntN(n)))
				return err
			})
		})
	})
	b.Run("Page1000", func(b *testing.B) {
		parallel(b, 1, func(i int) error {
			return c.KV.View(ctx, func(r cluster.Reader) error {
				return r.Scan(dentry(i*1000%n), nil, cluster.ScanOptions{Limit: 1000}, func(_, _ []byte) error { return nil })
			})
		})
	})
	b.Run("Listing1000", func(b *testing.B) { // a page and its inodes
		parallel(b, 1, func(i int) error {
			return c.KV.View(ctx, func(r cluster.Reader) error {
				keys := make([][]byte, 0, 1000)
				if err := r.Scan(dentry(i*1000%n), nil, cluster.ScanOptions{Limit: 1000}, func(_, v []byte) error {
					keys = append(keys, append([]byte("i"), v...))
					return nil
				}); err != nil {
					return err
				}
				_, err := r.GetMany(keys)
				return err
			})
		})
	})
	b.Run("GetMany1000Scattered", func(b *testing.B) {
		parallel(b, 1, func(i int) error {
			return c.KV.View(ctx, func(r cluster.Reader) error {
				keys := make([][]byte, 1000)
				for k := range keys {
					keys[k] = inode((k*7919*31 + i) % n)
				}
				_, err := r.GetMany(keys)
				return err
			})
		})
	})
}

func sizeName(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%dMiB", n>>20)
	}
	return fmt.Sprintf("%dKiB", n>>10)
}

func BenchmarkBlobWrite(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20, 64 << 20} {
		for _, clients := range []int{1, 4, 16, 64} {
			if size == 64<<20 && clients > 16 {
				continue
			}
			b.Run(fmt.Sprintf("%s/clients=%d", sizeName(size), clients), func(b *testing.B) {
				c := openAt(b, Options{Dir: b.TempDir(), SegmentBytes: defaultSegmentBytes})
				data := make([]byte, size)
				rand.NewChaCha8([32]byte{}).Read(data)
				b.SetBytes(int64(size))
				ctx := context.Background()
				parallel(b, clients, func(i int) error {
					w, err := c.Blobs.Create(ctx, cluster.BlobID{Content: uint64(i)}, int64(size))
					if err != nil {
						return err
					}
					if _, err := w.Write(data); err != nil {
						return err
					}
					_, _, err = w.Commit(ctx)
					return err
				})
			})
		}
	}
}

// BenchmarkBlobReplace stores blobs of 64 KiB and deletes as many older ones, so
// that segments are emptied and used again.
func BenchmarkBlobReplace(b *testing.B) {
	const live, batch, size = 4000, 16, 64 << 10
	c := openAt(b, Options{Dir: b.TempDir(), SegmentBytes: defaultSegmentBytes})
	data := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(data)
	b.SetBytes(size)
	parallel(b, 16, func(i int) error {
		if err := storeBlob(c.Blobs, cluster.BlobID{Content: uint64(i)}, data); err != nil || i < live || i%batch != 0 {
			return err
		}
		old := make([]cluster.BlobID, batch)
		for k := range old {
			old[k].Content = uint64(i - live + k)
		}
		return c.Blobs.Delete(context.Background(), old...)
	})
}

func BenchmarkBlobRead(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20, 64 << 20} {
		c := openAt(b, Options{Dir: b.TempDir(), SegmentBytes: defaultSegmentBytes})
		count := max(1, min(200, 128<<20/size))
		data := make([]byte, size)
		ctx := context.Background()
		for i := range count {
			w, err := c.Blobs.Create(ctx, cluster.BlobID{Content: uint64(i)}, int64(size))
			if err != nil {
				b.Fatal(err)
			}
			w.Write(data)
			if _, _, err := w.Commit(ctx); err != nil {
				b.Fatal(err)
			}
		}
		chunk := min(size, 1<<20)
		for _, clients := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/clients=%d", sizeName(size), clients), func(b *testing.B) {
				pool := sync.Pool{New: func() any { return make([]byte, chunk) }}
				b.SetBytes(int64(chunk))
				parallel(b, clients, func(i int) error {
					p := pool.Get().([]byte)
					defer pool.Put(p) //nolint:staticcheck // SA6002: a header is nothing beside the read
					off := int64(i) * int64(chunk) % int64(size)
					_, err := c.Blobs.ReadAt(ctx, cluster.BlobID{Content: uint64(i % count)}, p, off)
					return err
				})
			})
		}
		c.Close()
	}
}

// BenchmarkBlobReadPart reads parts of blocks, of one large blob and of small
// ones in segments; the page cache holds them all.
func BenchmarkBlobReadPart(b *testing.B) {
	const part = 4 << 10
	for _, size := range []int{64 << 10, 64 << 20} {
		c := openAt(b, Options{Dir: b.TempDir(), SegmentBytes: defaultSegmentBytes})
		count := 64 << 20 / size
		for i := range count {
			if err := storeBlob(c.Blobs, cluster.BlobID{Content: uint64(i)}, make([]byte, size)); err != nil {
				b.Fatal(err)
			}
			if _, err := c.Blobs.ReadAt(context.Background(), cluster.BlobID{Content: uint64(i)}, make([]byte, size), 0); err != nil {
				b.Fatal(err)
			}
		}
		read := func(b *testing.B, clients int, place func(i int) int) {
			pool := sync.Pool{New: func() any { return new([part]byte) }}
			b.SetBytes(part)
			parallel(b, clients, func(i int) error {
				p := pool.Get().(*[part]byte)
				defer pool.Put(p)
				at := place(i) * part
				_, err := c.Blobs.ReadAt(context.Background(), cluster.BlobID{Content: uint64(at / size)}, p[:], int64(at%size))
				return err
			})
		}
		const parts = 64 << 20 / part
		for _, clients := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/random/clients=%d", sizeName(size), clients), func(b *testing.B) {
				read(b, clients, func(int) int { return rand.IntN(parts) })
			})
			b.Run(fmt.Sprintf("%s/sequential/clients=%d", sizeName(size), clients), func(b *testing.B) {
				read(b, clients, func(i int) int { return i % parts })
			})
		}
		b.Run(sizeName(size)+"/hot", func(b *testing.B) { // 4 MiB, over and over
			read(b, 1, func(int) int { return rand.IntN(parts / 16) })
		})
		c.Close()
	}
}

package vfs

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

func benchPut(b *testing.B, size, clients int) {
	fs := bucketFS(b, benchLocal(b))
	body := randomBytes(size)
	var n atomic.Int64
	b.SetBytes(int64(size))
	b.SetParallelism(max(clients/runtime.GOMAXPROCS(0), 1))
	b.ReportAllocs()
	b.ResetTimer()
	one := func() {
		key := fmt.Sprintf("dir/key%09d", n.Add(1))
		_, err := fs.PutObject(bg, ObjectName{"bucket", key}, bytes.NewReader(body), PutOptions{Size: int64(size)})
		want(b, err, nil)
	}
	if clients == 1 {
		for b.Loop() {
			one()
		}
		return
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			one()
		}
	})
}

func BenchmarkPutObject(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20, 64 << 20} {
		for _, clients := range []int{1, 4, 16} {
			b.Run(fmt.Sprintf("%dKiB/%dclients", size>>10, clients), func(b *testing.B) { benchPut(b, size, clients) })
		}
	}
}

func BenchmarkGetObject(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			fs := bucketFS(b, benchLocal(b))
			for i := range 100 {
				put(b, fs, fmt.Sprint("dir/key", i), string(randomBytes(size)))
			}
			var n atomic.Int64
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				p := make([]byte, size)
				for pb.Next() {
					o, err := fs.GetObject(bg, ObjectName{"bucket", fmt.Sprint("dir/key", n.Add(1)%100)}, GetOptions{})
					want(b, err, nil)
					if _, err := o.ReadAt(p, 0); err != nil {
						b.Fatal(err)
					}
					o.Close()
				}
			})
		})
	}
}

func BenchmarkHeadObject(b *testing.B) {
	fs := bucketFS(b, benchLocal(b))
	put(b, fs, "dir/key", "x")
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, err := fs.HeadObject(bg, ObjectName{"bucket", "dir/key"}, GetOptions{})
			want(b, err, nil)
		}
	})
}

// fillBucket puts n small objects.
func fillBucket(b *testing.B, fs *FS, n int, key func(int) string) []string {
	keys := make([]string, n)
	var next atomic.Int64
	done := make(chan error)
	const clients = 32
	for range clients {
		go func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					done <- nil
					return
				}
				keys[i] = key(i)
				if _, err := fs.PutObject(bg, ObjectName{"bucket", keys[i]}, strings.NewReader("body"), PutOptions{Size: 4}); err != nil {
					done <- err
					return
				}
			}
		}()
	}
	for range clients {
		want(b, <-done, nil)
	}
	return keys
}

const benchKeys = 100_000

// One operation is a listing of 100,000 keys in pages of 1000.
func BenchmarkListObjects(b *testing.B) {
	for name, key := range map[string]func(int) string{
		"flat": func(i int) string { return fmt.Sprintf("key%09d", i) },
		"tree": func(i int) string { return fmt.Sprintf("d%03d/e%02d/key%d", i/1000, i/50%20, i) },
	} {
		b.Run(name, func(b *testing.B) {
			fs := bucketFS(b, benchLocal(b))
			fillBucket(b, fs, benchKeys, key)
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				o := ListOptions{MaxKeys: MaxListKeys}
				for {
					r, err := fs.ListObjects(bg, "bucket", o)
					want(b, err, nil)
					if n += len(r.Objects); !r.Truncated {
						break
					}
					o.StartAfter = r.Next
				}
				if n != benchKeys {
					b.Fatal(n)
				}
			}
			b.ReportMetric(float64(b.N)*benchKeys/b.Elapsed().Seconds(), "keys/s")
		})
	}
}

// One operation is a multi-delete of 1000 keys.
func BenchmarkDeleteObjects(b *testing.B) {
	fs := bucketFS(b, benchLocal(b))
	var keys []string
	b.ReportAllocs()
	for b.Loop() {
		if len(keys) == 0 {
			b.StopTimer()
			keys = fillBucket(b, fs, 50_000, func(i int) string { return fmt.Sprintf("key%09d", i) })
			b.StartTimer()
		}
		results, err := fs.DeleteObjects(bg, "bucket", keys[:1000])
		want(b, err, nil)
		for _, r := range results {
			want(b, r.Err, nil)
		}
		keys = keys[1000:]
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "keys/s")
}

package local

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"ogw/cluster/local/internal/fileio"
)

// BenchmarkBareSegment is the limit of BenchmarkBlobWrite: pages written to
// prewritten space with O_DIRECT and O_DSYNC, and nothing else.
func BenchmarkBareSegment(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20} {
		for _, clients := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/clients=%d", sizeName(size), clients), func(b *testing.B) {
				const room = 256 << 20
				d := fileio.NewOS(b.TempDir())
				f, err := d.OpenSegment(filepath.Join(b.TempDir(), "segment"))
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				zeros := fileio.NewPages(4 << 20)
				for off := int64(0); off < room; off += int64(len(zeros)) {
					if err := f.WritePages(off, zeros); err != nil {
						b.Fatal(err)
					}
				}
				b.SetBytes(int64(size))
				b.ResetTimer()
				var next atomic.Int64
				var wg sync.WaitGroup
				for range clients {
					wg.Go(func() {
						buf := fileio.NewPages(size)
						for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
							if err := f.WritePages(i*int64(size)%room, buf); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

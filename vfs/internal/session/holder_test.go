package session

import (
	"runtime"
	"testing"

	"ogw/vfs/internal/record"
)

// TestHoldMemory measures what a held inode costs.
func TestHoldMemory(t *testing.T) {
	h := New(nil, nil).Open.NewHolder()
	defer h.Close()
	const n = 1 << 20
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range record.Ino(n) {
		h.shards[uint64(i)%tableShards].add(i, 1)
	}
	full := heap()
	for i := range record.Ino(n) {
		h.Release(i, 1)
	}
	after := heap()
	t.Logf("%.1f bytes for each of %d inodes, %d KiB when all are forgotten", float64(full-before)/n, n, (int64(after)-int64(before))>>10)
	if full-before > 64*n {
		t.Errorf("%d bytes for each inode", (full-before)/n)
	}
	if after > before+(full-before)/8 {
		t.Errorf("of %d bytes, %d are left", full-before, after-before)
	}
}

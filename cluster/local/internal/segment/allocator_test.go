package segment

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"
)

func testAllocator(t *testing.T, bytes int64) (*allocator, string) {
	t.Helper()
	dir := t.TempDir()
	a := newAllocator(fileio.NewOS(dir), dir, bytes, 1, slog.New(slog.DiscardHandler))
	t.Cleanup(a.stop)
	return a, dir
}

// takeDead takes a segment as a writer does, and gives it up.
func takeDead(t *testing.T, a *allocator) uint64 {
	t.Helper()
	g, err := a.take()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.close(); err != nil {
		t.Fatal(err)
	}
	return g.number
}

// TestSpareSegments: emptied segments are written again under numbers of their
// own, as many as are worth their space, and go when nobody writes.
func TestSpareSegments(t *testing.T) {
	a, dir := testAllocator(t, 1<<20)
	var dead []uint64
	for range spareMax + 3 {
		dead = append(dead, takeDead(t, a))
	}
	kept := 0
	for _, n := range dead {
		ok, err := a.adopt(n)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			kept++
		}
	}
	if kept != spareMax {
		t.Errorf("%d emptied segments are kept, not %d", kept, spareMax)
	}
	last := dead[len(dead)-1]
	g, err := a.take()
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	if g.prewritten != a.bytes || g.number <= last {
		t.Errorf("segment %d, %d bytes of it were written before", g.number, g.prewritten)
	}
	if err := g.files[0].WritePages(0, fileio.NewPages(fileio.PageBytes)); err != nil {
		t.Error(err)
	}
	// Nobody takes any for two rounds.
	a.trim()
	a.mu.Lock()
	left := len(a.spare)
	a.mu.Unlock()
	if left != spareMax-1 {
		t.Errorf("%d are left soon after", left)
	}
	a.trim()
	a.mu.Lock()
	left = len(a.spare)
	a.mu.Unlock()
	if left != 0 {
		t.Errorf("%d are left later", left)
	}
	a.stop() // with those made ahead
	if files, err := filepath.Glob(filepath.Join(dir, "*"+record.SegmentSuffix)); err != nil || len(files) != 1+len(dead)-kept {
		t.Errorf("files: %v, %v", files, err)
	}
}

// TestSpareOfOtherLength: a segment of a run with another length is not used
// again.
func TestSpareOfOtherLength(t *testing.T) {
	a, dir := testAllocator(t, 1<<20)
	n := takeDead(t, a)
	if err := os.Truncate(filepath.Join(dir, record.SegmentName(n)), 512<<10); err != nil {
		t.Fatal(err)
	}
	if ok, err := a.adopt(n); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

package frame

import (
	"errors"
	"testing"

	"ogw/cluster"
)

func TestDataSize(t *testing.T) {
	for row, want := range map[int64]int64{
		0: 0, 3: 0, 8: 0, 9: 1, Bytes: cluster.BlockBytes, Bytes + 9: cluster.BlockBytes + 1,
		3 * Bytes: 3 * cluster.BlockBytes, 128 * Bytes: 8 << 20,
	} {
		if got := DataSize(row); got != want {
			t.Errorf("a row of %d bytes holds %d, want %d", row, got, want)
		}
		if row >= sumBytes && (RowSize(want) != row || LastFrame(row) != LastBlock(want)) {
			t.Errorf("a blob of %d bytes is a row of %d with last frame %d, want %d, %d", want, RowSize(want), LastBlock(want), row, LastFrame(row))
		}
	}
}

// A frame is good for one blob, one place in it, and as its end or not.
func TestBinding(t *testing.T) {
	id := cluster.BlobID{Content: 1, Seq: 2}
	frame := func(id cluster.BlobID, block int64, last bool) []byte {
		sealed, _ := seal([]byte("data"), 4, id, block, last)
		return sealed
	}
	if got, err := Open(frame(id, 7, true), id, 7, true); err != nil || string(got) != "data" {
		t.Fatalf("%q, %v", got, err)
	}
	for name, other := range map[string][]byte{
		"content": frame(cluster.BlobID{Content: 2, Seq: 2}, 7, true),
		"seq":     frame(cluster.BlobID{Content: 1, Seq: 3}, 7, true),
		"block":   frame(id, 8, true),
		"end":     frame(id, 7, false),
		"short":   frame(id, 7, true)[:5],
	} {
		if _, err := Open(other, id, 7, true); !errors.Is(err, cluster.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package backup

import (
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// Doubts are looked up in the order of the blobs, however many there are, and end all.
func TestDoubts(t *testing.T) {
	kv := mem.New(mem.Distributed(1)).KV
	const blobs = 3*doubtsAtOnce + 7
	blob := func(i int, crc uint64) Blob {
		return Blob{ID: cluster.BlobID{Content: uint64(i / 10), Seq: uint64(i)}, Size: 30, CRC: crc}
	}
	// Of three blobs one was the same, one was another, and one was both.
	c := changes{kv: kv}
	doubt := func(b Blob) {
		if !c.room(100) {
			if err := c.write(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		c.put(record.Doubt{Blob: b.ID, Size: b.Size, CRC: b.CRC}.Key(), []byte{})
	}
	for i := range blobs {
		if i%3 != 1 {
			doubt(blob(i, 1))
		}
		if i%3 != 0 {
			doubt(blob(i, 2))
		}
	}
	if err := c.write(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, step := range []int{1, 2, 500} { // blobs between were not asked for
		d := newDoubts(kv)
		for i := 0; i < blobs; i += step {
			if differs, err := d.differ(t.Context(), blob(i, 1)); err != nil || differs != (i%3 != 0) {
				t.Fatalf("blob %d differs: %v, %v", i, differs, err)
			}
		}
		if differs, err := d.differ(t.Context(), Blob{ID: cluster.BlobID{Content: blobs}}); err != nil || differs {
			t.Errorf("a blob of which nothing is known differs: %v, %v", differs, err)
		}
	}
	d := newDoubts(kv)
	if err := d.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := kv.View(t.Context(), func(r cluster.Reader) error {
		any, err := record.AnyKey(r, []byte{record.TabDoubt})
		if any {
			t.Error("some are left")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

package local

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"
)

// probeAll returns what Probe reports about the blobs that lost bytes.
func probeAll(t *testing.T, b *Blobs) map[cluster.BlobID]string {
	t.Helper()
	found := map[cluster.BlobID]string{}
	if err := b.Probe(ctx, cluster.BlobID{}, func(info cluster.BlobInfo, damage error) error {
		if damage == nil {
			return nil
		}
		if !errors.Is(damage, cluster.ErrCorrupt) {
			t.Errorf("blob %v: %v", info.ID, damage)
		}
		found[info.ID] = damage.Error()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestProbe: a file that is gone or cut shows, for the blobs that lost bytes by
// it and for no other. Reading them stays an error.
func TestProbe(t *testing.T) {
	b := openAt(t, Options{Dir: t.TempDir()}).Blobs.(*Blobs)
	small, _ := segmentBlobs(t, b, 200_000)
	var large []cluster.BlobID
	for i := range 4 {
		id := cluster.BlobID{Content: uint64(1000 + i), Seq: 7}
		if err := storeBlob(b, id, patterned(i, smallMax+100_000)); err != nil {
			t.Fatal(err)
		}
		large = append(large, id)
	}
	at := func(id cluster.BlobID) (string, record.Place) {
		p, err := b.index.get(id)
		if err != nil {
			t.Fatal(err)
		}
		return b.placePath(id, &p), p
	}
	want := map[cluster.BlobID]string{}
	check := func(what string) {
		t.Helper()
		got := probeAll(t, b)
		if len(got) != len(want) {
			t.Errorf("%s: %d blobs lost bytes, want %d", what, len(got), len(want))
		}
		for id, message := range want {
			if !strings.Contains(got[id], message) {
				t.Errorf("%s: %v: %q, want %q", what, id, got[id], message)
			}
			if err := b.Verify(ctx, id); !errors.Is(err, cluster.ErrCorrupt) {
				t.Errorf("%s: Verify: %v", what, err)
			}
		}
	}
	check("whole")

	path, _ := at(large[0])
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want[large[0]] = path + " is missing"
	check("a file is gone")

	path, _ = at(large[1])
	if err := os.Truncate(path, record.Bytes(smallMax+100_000)-1); err != nil {
		t.Fatal(err)
	}
	want[large[1]] = path + " is cut short"
	check("a file lost its last byte")

	path, _ = at(large[2])
	if err := os.Truncate(path, record.Bytes(smallMax+100_000)+1); err != nil {
		t.Fatal(err)
	}
	check("a file is longer")

	// The blob in the middle keeps all but its last byte.
	path, p := at(small[len(small)/2])
	if err := os.Truncate(path, p.Offset+record.Bytes(p.Size)-1); err != nil {
		t.Fatal(err)
	}
	for _, id := range small {
		if _, q := at(id); q.Offset >= p.Offset {
			want[id] = path + " is cut short"
		}
	}
	if len(want)-2 >= len(small) {
		t.Fatal("no blob is before the cut")
	}
	check("a segment is cut")

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, id := range small {
		want[id] = path + " is missing"
	}
	check("a segment is gone")

	// What is deleted is not missing.
	if err := b.Delete(ctx, slices.Collect(maps.Keys(want))...); err != nil {
		t.Fatal(err)
	}
	clear(want)
	check("deleted")
}

package clustertest

import (
	"slices"
	"testing"
	"time"

	"ogw/cluster"
)

func list(t *testing.T, b cluster.Blobs, from cluster.BlobID) (found []cluster.BlobInfo) {
	t.Helper()
	if err := b.List(ctx, from, func(info cluster.BlobInfo) error {
		found = append(found, info)
		return nil
	}); err != nil {
		t.Errorf("List: %v", err)
	}
	return found
}

const block = cluster.BlockBytes

// sizes are around every boundary: pages, blocks, segments and files.
var sizes = []int{0, 1, 511, 512, 4095, 4096, 4097, 65455, 65456, 65457, block - 1, block, block + 1, 2*block - 7,
	1<<20 - 208, 1<<20 - 1, 1 << 20, 1<<20 + 1, 1<<20 + block, 2 << 20, 2<<20 + 3, 5<<20 - 4096, 9<<20 + 12345}

func testList(t *testing.T, b cluster.Blobs) {
	var ids []cluster.BlobID
	for c := range uint64(12) {
		for s := range uint64(3) {
			ids = append(ids, cluster.BlobID{Content: (c * 7919) << (c % 5 * 10), Seq: s << (s * 20)})
		}
	}
	begin := time.Now().Add(-time.Minute)
	for i, id := range ids {
		mustPut(t, b, id, content(uint64(i), i))
	}
	bySize := map[cluster.BlobID]int64{}
	for i, id := range ids {
		bySize[id] = int64(i)
	}
	slices.SortFunc(ids, func(a, b cluster.BlobID) int {
		if a.Less(b) {
			return -1
		}
		return 1
	})
	for _, from := range []int{0, 1, 20, len(ids) - 1} {
		found := list(t, b, ids[from])
		if len(found) != len(ids)-from {
			t.Fatalf("%d blobs from number %d on, want %d", len(found), from, len(ids)-from)
		}
		for i, info := range found {
			if info.ID != ids[from+i] || info.Size != bySize[info.ID] || info.Modified.Before(begin) || info.Modified.After(time.Now().Add(time.Minute)) {
				t.Errorf("entry %d: %+v", i, info)
			}
		}
	}
	if found := list(t, b, cluster.BlobID{Content: ^uint64(0), Seq: ^uint64(0)}); len(found) != 0 {
		t.Errorf("behind the end: %v", found)
	}
	testEnds(t, func(each func() error) error {
		return b.List(ctx, cluster.BlobID{}, func(cluster.BlobInfo) error { return each() })
	})
}

func testListChanging(t *testing.T, b cluster.Blobs) {
	const n = 40
	for i := range uint64(n) {
		mustPut(t, b, cluster.BlobID{Content: 1, Seq: 10 * i}, content(i, 10))
	}
	var kept []uint64
	if err := b.List(ctx, cluster.BlobID{}, func(info cluster.BlobInfo) error {
		if info.ID.Seq%10 != 0 {
			return nil
		}
		if info.ID.Seq%20 == 0 {
			return b.Delete(ctx, info.ID)
		}
		kept = append(kept, info.ID.Seq)
		return put(b, cluster.BlobID{Content: 1, Seq: info.ID.Seq + 1}, []byte("new"))
	}); err != nil {
		t.Fatal(err)
	}
	if len(kept) != n/2 {
		t.Errorf("%d of %d blobs that stayed were shown", len(kept), n/2)
	}
	if found := list(t, b, cluster.BlobID{}); len(found) != n {
		t.Errorf("%d blobs at the end, want %d", len(found), n)
	}
}

func testProbe(t *testing.T, b cluster.Blobs) {
	for i, n := range sizes {
		mustPut(t, b, cluster.BlobID{Content: uint64(i / 5), Seq: uint64(i)}, content(uint64(i), n))
	}
	if err := b.Delete(ctx, cluster.BlobID{Content: 0, Seq: 3}, cluster.BlobID{Content: 4, Seq: 21}); err != nil {
		t.Fatal(err)
	}
	for _, from := range []cluster.BlobID{{}, {Content: 2, Seq: 12}, {Content: 99}} {
		var found []cluster.BlobInfo
		if err := cluster.ProbeBlobs(ctx, b, from, func(info cluster.BlobInfo, damage error) error {
			if damage != nil {
				t.Errorf("%v: %v", info.ID, damage)
			}
			found = append(found, info)
			return nil
		}); err != nil {
			t.Errorf("Probe: %v", err)
		}
		if want := list(t, b, from); !slices.Equal(found, want) {
			t.Errorf("from %v: %d blobs are probed, %d listed", from, len(found), len(want))
		}
	}
	testEnds(t, func(each func() error) error {
		return cluster.ProbeBlobs(ctx, b, cluster.BlobID{}, func(cluster.BlobInfo, error) error { return each() })
	})
}

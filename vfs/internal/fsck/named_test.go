package fsck

import (
	"context"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// scanCounter counts the scans that begin in a table.
type scanCounter struct {
	cluster.Reader
	tab   byte
	scans *int
}

func (c scanCounter) Scan(start, end []byte, o cluster.ScanOptions, fn func(k, v []byte) error) error {
	if len(start) > 0 && start[0] == c.tab {
		*c.scans++
	}
	return c.Reader.Scan(start, end, o, fn)
}

// TestNamedBlobsNeedNoQueue: the queue, which may be long, is looked through
// only for blobs that nothing else names.
func TestNamedBlobsNeedNoQueue(t *testing.T) {
	ctx, c := context.Background(), mem.New(mem.Options{})
	defer c.Close() //nolint:errcheck // of a test
	named := record.Extent{Len: 20, Kind: record.ExtentBlob, Seq: 5, BlobSize: 20}
	err := c.KV.Update(ctx, func(t cluster.Txn) error { return t.Set(record.ExtentKey(4, 0), named.Encode()) })
	if err != nil {
		t.Fatal(err)
	}
	blob, orphan := named.BlobID(4), cluster.BlobID{Content: 4, Seq: 6}
	for left, ids := range [][]cluster.BlobID{{blob}, {blob, orphan}} {
		suspects := make(map[cluster.BlobID]cluster.BlobInfo)
		for _, id := range ids {
			suspects[id] = cluster.BlobInfo{ID: id}
		}
		scans := 0
		err := c.KV.View(ctx, func(r cluster.Reader) error { return dropNamed(scanCounter{r, record.TabQueue, &scans}, suspects) })
		if _, is := suspects[orphan]; err != nil || scans != left || len(suspects) != left || is != (left == 1) {
			t.Errorf("%d scans of the queue, %d suspects are left, want %d: %v", scans, len(suspects), left, err)
		}
	}
}

package local

import (
	"bytes"
	"fmt"
	"testing"

	"ogw/cluster"
	ns "ogw/vfs"
)

// TestMetadataBytes measures what metadata take on the disk, after
// compaction; docs/format.md states it. The bounds are two to three times what was measured.
func TestMetadataBytes(t *testing.T) {
	const count = 2000
	async := cluster.Relaxed(ctx)
	for _, test := range []struct {
		name string
		max  int64 // bytes each
		make func(n *ns.FS, i int) error
	}{
		{"empty file of POSIX", 120, func(n *ns.FS, i int) error {
			_, err := n.Mknod(async, ns.Root, ns.RootIno, fmt.Sprintf("file%08d", i), ns.NodeOptions{Mode: ns.ModeRegular | 0o644})
			return err
		}},
		{"object of S3, its 16 bytes inline", 250, func(n *ns.FS, i int) error {
			_, err := n.PutObject(async, ns.ObjectName{Bucket: "bbb", Key: fmt.Sprintf("object%08d", i)}, bytes.NewReader(fmt.Appendf(nil, "%016d", i)), ns.PutOptions{Size: 16})
			return err
		}},
		{"object of S3, a blob in a segment", 280, func(n *ns.FS, i int) error {
			_, err := n.PutObject(async, ns.ObjectName{Bucket: "bbb", Key: fmt.Sprintf("object%08d", i)}, bytes.NewReader(make([]byte, 20_000)), ns.PutOptions{Size: 20_000})
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := openAt(t, Options{Dir: t.TempDir()})
			n, err := ns.Open(ctx, c, ns.Config{NoBackground: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := n.CreateBucket(ctx, "bbb", nil); err != nil {
				t.Fatal(err)
			}
			for i := range count {
				if err := test.make(n, i); err != nil {
					t.Fatal(err)
				}
			}
			db := c.KV.(*KV).db
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := db.Compact(ctx, []byte{0}, []byte{0xff, 0xff}, true); err != nil {
				t.Fatal(err)
			}
			m := db.Metrics()
			var total int64
			for _, level := range m.Levels {
				total += level.TablesSize
			}
			each := total / count
			t.Logf("%d bytes each", each)
			if each > test.max {
				t.Errorf("%d bytes each, want at most %d", each, test.max)
			}
			if err := n.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

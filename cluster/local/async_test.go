package local

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"ogw/cluster"
	ns "ogw/vfs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestDurabilitySettings cuts the power: what the whole, or a bucket, says is
// sync is there when it was acknowledged; what is async is there after the
// time that is promised, and does not wait for the disk before.
func TestDurabilitySettings(t *testing.T) {
	for _, test := range []struct {
		name   string
		whole  bool // async
		bucket ns.Durability
		async  bool
	}{
		{"default", false, "", false},
		{"all async", true, "", true},
		{"bucket async", false, ns.Async, true},
		{"bucket sync", true, ns.Sync, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			fs := newMem(t)
			cfg := ns.Config{NoBackground: true, Async: test.whole}
			c := openAt(t, memOptions(fs))
			n, err := ns.Open(ctx, c, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := n.CreateBucket(cluster.Strict(ctx), "bbb", nil); err != nil {
				t.Fatal(err)
			}
			if test.bucket != "" {
				if err := n.SetBucketDurability(ctx, "bbb", test.bucket); err != nil {
					t.Fatal(err)
				}
				// The setting outlives a start.
				if err := n.Close(ctx); err != nil {
					t.Fatal(err)
				}
				if n, err = ns.Open(ctx, c, cfg); err != nil {
					t.Fatal(err)
				}
			}
			kv := c.KV.(*KV)
			lagging := false
			bodies := map[string][]byte{"tiny": []byte("a"), "small": seedBytes(3), "large": seedBytes(7)}
			put := func() {
				for key, body := range bodies {
					if _, err := n.PutObject(ctx, ns.ObjectName{Bucket: "bbb", Key: key}, bytes.NewReader(body), ns.PutOptions{Size: int64(len(body))}); err != nil {
						t.Fatal(err)
					}
					lagging = lagging || kv.durability.synced.Load() < kv.visible.Load()
				}
			}
			// The timer may fire just now, but not every time.
			for range 20 {
				if put(); lagging || !test.async {
					break
				}
			}
			if lagging && !test.async {
				t.Error("a change was acknowledged before it was durable")
			}
			if test.async {
				if !lagging {
					t.Error("async changes waited for the disk each time")
				}
				last := kv.visible.Load()
				begun := time.Now()
				waitFor(t, "the promised time", func() bool { return kv.durability.synced.Load() >= last })
				// On an idle machine it is half of the bound.
				t.Logf("durable after %v", time.Since(begun))
			}
			cut := openAt(t, memOptions(fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})))
			again, err := ns.Open(ctx, cut, cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close(ctx)
			for key, body := range bodies {
				o, err := again.GetObject(ctx, ns.ObjectName{Bucket: "bbb", Key: key}, ns.GetOptions{})
				if err != nil {
					t.Errorf("%s after the power cut: %v", key, err)
					continue
				}
				got, err := io.ReadAll(io.NewSectionReader(o, 0, int64(len(body))))
				if err != nil || !bytes.Equal(got, body) {
					t.Errorf("%s after the power cut: %d bytes, %v", key, len(got), err)
				}
				o.Close()
			}
			if err := n.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDurabilityWord: only the two words are settings.
func TestDurabilityWord(t *testing.T) {
	c := openAt(t, memOptions(newMem(t)))
	n, err := ns.Open(ctx, c, ns.Config{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(ctx)
	if _, err := n.CreateBucket(ctx, "b12", nil); err != nil {
		t.Fatal(err)
	}
	if err := n.SetBucketDurability(ctx, "b12", "soon"); !errors.Is(err, ns.ErrInvalid) {
		t.Errorf("a made-up durability: %v", err)
	}
	if err := n.SetBucketDurability(ctx, "none", ns.Async); !errors.Is(err, ns.ErrNoSuchBucket) {
		t.Errorf("no bucket: %v", err)
	}
	if err := n.SetBucketDurability(ctx, "b12", ns.Async); err != nil {
		t.Error(err)
	}
	if err := n.SetBucketDurability(ctx, "b12", ""); err != nil {
		t.Error(err)
	}
	if d, err := n.BucketDurability(ctx, "b12"); d != "" || err != nil {
		t.Errorf("after it was removed: %q, %v", d, err)
	}
}

package rados

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"ogw/cluster"
	"ogw/cluster/internal/frame"
)

// Objects that were changed, cut, lost, or put in the place of others are corrupt, never other
// bytes; and can be deleted.
func TestDamage(t *testing.T) {
	other := cluster.BlobID{Content: 2}
	data := bytesOf(2*partData + 3*cluster.BlockBytes)
	for name, damage := range map[string]func(pool *memPool, h head){
		"byte of the first part": func(p *memPool, h head) { p.objects[h.name(0)][headBytes+frame.Bytes+5] ^= 1 },
		"byte of the head":       func(p *memPool, h head) { p.objects[h.name(0)][30] ^= 1 },
		"head that is cut":       func(p *memPool, h head) { p.objects[h.name(0)] = p.objects[h.name(0)][:headBytes-1] },
		"empty head":             func(p *memPool, h head) { p.objects[h.name(0)] = nil },
		"first part is cut":      func(p *memPool, h head) { p.objects[h.name(0)] = p.objects[h.name(0)][:headBytes+2*frame.Bytes] },
		"byte of a part":         func(p *memPool, h head) { p.objects[h.name(1)][frame.Bytes-1] ^= 1 },
		"a part is cut":          func(p *memPool, h head) { p.objects[h.name(2)] = p.objects[h.name(2)][:2*frame.Bytes+9] },
		"an empty part":          func(p *memPool, h head) { p.objects[h.name(1)] = nil },
		"a part is gone":         func(p *memPool, h head) { delete(p.objects, h.name(1)) },
		"a part is another one":  func(p *memPool, h head) { p.objects[h.name(1)] = p.objects[h.name(2)] },
		"the head of another one": func(p *memPool, h head) {
			p.objects[h.name(0)] = bytes.Clone(p.objects[headName(other)])
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool := newMemPool()
			b := openMem(t, pool)
			if err := errors.Join(store(b, testID, data), store(b, other, data)); err != nil {
				t.Fatal(err)
			}
			h, err := b.readHead(context.Background(), testID)
			if err != nil {
				t.Fatal(err)
			}
			pool.objects[h.name(0)] = bytes.Clone(pool.objects[h.name(0)])
			damage(pool, h)
			for _, client := range []*Blobs{b, openMem(t, pool)} { // one remembers the head
				if n, err := client.ReadAt(context.Background(), testID, make([]byte, len(data)), 0); n != 0 || !errors.Is(err, cluster.ErrCorrupt) {
					t.Errorf("%d bytes, %v", n, err)
				}
				if err := cluster.VerifyBlob(context.Background(), client, testID); !errors.Is(err, cluster.ErrCorrupt) {
					t.Errorf("VerifyBlob: %v", err)
				}
			}
			if n := listed(t, b); n != 2 {
				t.Errorf("%d blobs are listed", n)
			}
			if err := b.Delete(context.Background(), testID); err != nil {
				t.Errorf("Delete: %v", err)
			}
			if n := len(pool.names("part/")); n != 2 || pool.entries() != 1 {
				t.Errorf("after Delete, there are %d parts and %d entries", n, pool.entries())
			}
			if err := check(b, other, data); err != nil {
				t.Errorf("the other one: %v", err)
			}
		})
	}
}

// What one client deleted and another one wrote, a client that remembers the head reads anew.
func TestRememberedHead(t *testing.T) {
	pool := newMemPool()
	a, b := openMem(t, pool), openMem(t, pool)
	data := bytesOf(2 * partData)
	late := func(client *Blobs) error {
		p := make([]byte, 100)
		_, err := client.ReadAt(context.Background(), testID, p, partData+50)
		if err == nil && !bytes.Equal(p, data[partData+50:][:100]) {
			err = errors.New("other bytes")
		}
		return err
	}
	if err := errors.Join(store(a, testID, data), late(b), b.Delete(context.Background(), testID)); err != nil {
		t.Fatal(err)
	}
	for _, client := range []*Blobs{a, b} {
		if err := late(client); !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("deleted: %v", err)
		}
	}
	data = bytesOf(partData + 200)
	if err := errors.Join(store(b, testID, data), late(b), late(a)); err != nil {
		t.Error(err)
	}
}

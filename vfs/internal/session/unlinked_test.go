package session

import (
	"slices"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// Of more inodes without links than a gateway can name its Holders learn, until they are few
// enough; it looks for them once at a time.
func TestFindManyOrphans(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	l := besideLease(t, c.KV, "a", &hand{})
	open := &New(nil, nil).Open
	open.store = &inodes{}
	l.reads.attach(nil, nil, open)
	h := open.NewHolder()
	const n = orphanPage + 5
	err := c.KV.Update(bg, func(t cluster.Txn) error {
		for i := record.Ino(2); i < 2+n; i++ {
			in := record.Inode{Ino: i, Parent: 1, Name: "name"}
			if err := t.Set(record.OrphanKey(i), record.EncodeOrphan(1, 1)); err != nil {
				return err
			}
			if err := t.Set(record.InodeKey(i), in.Encode()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := record.Ino(2); i < 2+n; i++ {
		h.HoldOpen(i, 1)
	}
	var told []record.Ino
	h.OnUnlinked(func(list []Unlinked) {
		for _, x := range list {
			if told = append(told, x.Ino); x.Dir != 1 || x.Name != "name" {
				t.Fatalf("told of %+v", x)
			}
			h.Release(x.Ino, 1)
		}
	})
	p := &l.reads
	p.epoch = 7
	if _, ok := p.inUse(); ok {
		t.Fatal("all are said")
	}
	epoch, table := p.wants()
	if epoch != 7 {
		t.Fatalf("asked for epoch %d", epoch)
	}
	_, _ = p.inUse()
	if again, _ := p.wants(); again != 0 {
		t.Error("asked for while it is looked for")
	}
	if err := l.findOrphans(bg, epoch, table); err != nil {
		t.Fatal(err)
	}
	p.looked()
	if p.orphans.ok || len(told) != n || slices.Max(told) != n+1 {
		t.Errorf("found %v, told of %d", p.orphans.ok, len(told))
	}
	if list, ok := p.inUse(); !ok || len(list) > 0 {
		t.Errorf("in use: %d, %v", len(list), ok)
	}
}

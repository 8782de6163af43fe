package session

import (
	"context"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// orphanPage is how many inodes without links one look finds.
const orphanPage = 8192

// tellPage is how many of them one read finds the names of.
const tellPage = 256

// findOrphans finds out which inodes in use had no links when an epoch had begun: those
// among all that have none now. Whoever begins to use one later does not find it.
func (l *Lease) findOrphans(ctx context.Context, epoch uint64, open *Table) error {
	found := orphans{epoch: epoch}
	for from := []byte{record.TabOrphan}; from != nil && len(found.inos) <= maxHeld; {
		var page []record.Ino
		err := l.kv.View(ctx, func(r cluster.Reader) error {
			page = page[:0]
			return r.Scan(from, []byte{record.TabOrphan + 1}, cluster.ScanOptions{Limit: orphanPage, KeysOnly: true}, func(k, _ []byte) error {
				page = append(page, record.InoOfKey(k))
				return nil
			})
		})
		if err != nil {
			return err
		}
		from = nil
		if len(page) == orphanPage {
			from = append(record.OrphanKey(page[orphanPage-1]), 0)
		}
		used := open.usedOf(page)
		if err := l.tellHolders(ctx, open, used); err != nil {
			return err
		}
		found.inos = append(found.inos, used...)
	}
	found.ok = len(found.inos) <= maxHeld
	if few := l.reads.found(found); few && !found.ok { // else it was said
		l.log.Warn("more is in use here without links than can be said: no gateway removes anything until programs close it, or the kernel forgets it",
			"inodes", len(found.inos), "most", maxHeld)
	}
	return nil
}

// tellHolders notifies Holders of those of a list of orphans that are not open.
func (l *Lease) tellHolders(ctx context.Context, open *Table, used []record.Ino) error {
	if !open.tells() {
		return nil
	}
	used = slices.DeleteFunc(slices.Clone(used), func(ino record.Ino) bool { return open.Get(ino) != nil })
	for part := range slices.Chunk(used, tellPage) {
		list, err := l.unlinked(ctx, part)
		if err != nil {
			return err
		}
		for _, h := range open.allHolders() {
			h.tell(list)
		}
	}
	return nil
}

// unlinked returns where the inodes of a list were.
func (l *Lease) unlinked(ctx context.Context, inos []record.Ino) (list []Unlinked, err error) {
	keys := make([][]byte, len(inos))
	for i, ino := range inos {
		keys[i] = record.InodeKey(ino)
	}
	err = l.kv.View(ctx, func(r cluster.Reader) error {
		list = list[:0]
		values, err := r.GetMany(keys)
		if err != nil {
			return err
		}
		for i, v := range values {
			if v == nil {
				continue
			}
			if n, err := record.DecodeInode(inos[i], v); err == nil { // else others report it
				list = append(list, Unlinked{n.Ino, n.Parent, n.Name})
			}
		}
		return nil
	})
	return list, err
}

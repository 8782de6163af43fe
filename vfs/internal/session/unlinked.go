package session

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// orphanPage is how many inodes without links one look finds.
const orphanPage = 8192

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
		found.inos = append(found.inos, open.usedOf(page)...)
	}
	found.ok = len(found.inos) <= maxHeld
	l.reads.found(found)
	return nil
}

// Package damage finds the files that use damaged blobs, by a walk over all inodes.
package damage

import (
	"context"
	"errors"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/quarantine"
	"ogw/vfs/internal/record"
)

// tracePage is how many inodes one snapshot covers.
const tracePage = 4096

// Users adds to found the files that use these damaged blobs.
func Users(ctx context.Context, s *content.Store, found map[cluster.BlobID][]record.Ino) error {
	t := &tracer{of: s, found: found, contents: make(map[record.ContentID]bool)}
	return t.run(ctx)
}

// tracer walks all inodes for those whose contents use damaged blobs.
type tracer struct {
	of       *content.Store
	found    map[cluster.BlobID][]record.Ino
	contents map[record.ContentID]bool // that may use one: their own, and by reference
}

func (t *tracer) run(ctx context.Context) error {
	err := t.of.View(ctx, func(r cluster.Reader) error {
		for id := range t.found {
			source := record.ContentID(id.Content)
			t.contents[source] = true
			prefix := record.RefPrefix(source)
			err := r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
				if len(k) == 17 {
					_, user := record.ParseRefKey(k)
					t.contents[user] = true
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	from, to := record.Table(record.TabInode)
	for from != nil {
		var users []record.Ino
		err := t.of.View(ctx, func(r cluster.Reader) error {
			users = nil
			n, start := 0, from
			from = nil
			return r.Scan(start, to, cluster.ScanOptions{Limit: tracePage}, func(k, v []byte) error {
				if n++; n == tracePage {
					from = append(slices.Clone(k), 0)
				}
				// One that cannot be read is Check's to report.
				if x, err := record.DecodeInode(record.InoOfKey(k), v); err == nil && t.contents[x.Content] {
					users = append(users, x.Ino)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		for _, ino := range users {
			if err := t.look(ctx, ino); err != nil && !errors.Is(err, fserr.ErrStale) && !errors.Is(err, fserr.ErrCorrupt) {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// look finds which damaged blobs a file uses.
func (t *tracer) look(ctx context.Context, ino record.Ino) error {
	rd, err := t.of.OpenStored(ctx, ino)
	if err != nil {
		return err
	}
	defer rd.Close()
	for off := int64(0); off < rd.Size(); {
		p, err := rd.Page(ctx, off)
		if err != nil {
			return err
		}
		for i := range p.Segs {
			id := p.Segs[i].Blob
			users, damaged := t.found[id]
			if damaged && p.Segs[i].Data == nil && len(users) < quarantine.MaxFiles && !slices.Contains(users, ino) {
				t.found[id] = append(users, ino)
			}
		}
		off = p.To
	}
	return nil
}

package fsck

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"
)

// confirm looks again at what was suspicious, once there is enough of it.
func (m *merge) confirm(all bool) error {
	if len(m.orphans) >= checkSuspects || all && len(m.orphans) > 0 {
		if err := m.confirmOrphans(); err != nil {
			return err
		}
		m.orphans = m.orphans[:0]
	}
	if len(m.missing) >= checkSuspects || all && len(m.missing) > 0 {
		if err := m.confirmMissing(); err != nil {
			return err
		}
		m.missing = m.missing[:0]
	}
	if len(m.strays) >= checkSuspects || all && len(m.strays) > 0 {
		if err := m.confirmStrays(); err != nil {
			return err
		}
		m.strays = m.strays[:0]
	}
	return nil
}

// confirmOrphans reports the blobs that nothing names: no extent, no part,
// no queue entry, no writer, and that are no leftovers of a crash, which go by
// themselves.
func (m *merge) confirmOrphans() error {
	c := m.c
	before := c.Blobs.Now().Add(-youngBlob)
	suspects := make(map[cluster.BlobID]cluster.BlobInfo)
	for _, b := range m.orphans {
		if c.Leftovers.Pending(b.ID) && !c.o.Repair {
			continue // it goes by itself
		}
		if b.Modified.Before(before) && !c.Store.Pinned(record.ContentID(b.ID.Content)) {
			suspects[b.ID] = b
		}
	}
	if len(suspects) == 0 {
		return nil
	}
	oldest := c.Store.Oldest() // before the snapshot, or it would miss what is named in between
	err := c.Store.View(c.ctx, func(r cluster.Reader) error {
		left, err := c.Store.Left(r)
		if err != nil {
			return err
		}
		left = min(left, oldest)
		maps.DeleteFunc(suspects, func(id cluster.BlobID, _ cluster.BlobInfo) bool { return id.Seq >= left })
		return dropNamed(r, suspects)
	})
	if err != nil {
		return err
	}
	known, err := c.Blobs.Find(c.ctx, slices.Collect(maps.Keys(suspects)))
	if err != nil {
		return err
	}
	for id, b := range suspects {
		if _, err := c.Blobs.Engine.Locate(c.ctx, id); errors.Is(err, cluster.ErrNotFound) || known[id].Aside {
			continue // it is gone, or the quarantine keeps it
		}
		p := Problem{Kind: "orphan-blob", Detail: fmt.Sprintf("nothing names blob %v of %d bytes", id, b.Size)}
		if c.o.Repair {
			if _, err := c.Blobs.Drop(c.ctx, id); err == nil {
				p.Repaired = true
			}
		} else {
			c.rep.Mendable++
		}
		c.add(p)
	}
	return nil
}

// dropNamed removes what the snapshot names from suspects, and what a record
// that cannot be read may name.
func dropNamed(r cluster.Reader, suspects map[cluster.BlobID]cluster.BlobInfo) error {
	contents := make(map[record.ContentID]bool)
	for id := range suspects {
		contents[record.ContentID(id.Content)] = true
	}
	for c := range contents {
		drop := func(list []record.Extent) {
			for i := range list {
				delete(suspects, list[i].BlobID(c))
			}
		}
		err := eachNamed(r, c, drop)
		if damaged(err) {
			maps.DeleteFunc(suspects, func(id cluster.BlobID, _ cluster.BlobInfo) bool { return record.ContentID(id.Content) == c })
			err = nil
		}
		if err != nil {
			return err
		}
	}
	if len(suspects) == 0 { // as nearly always: the queue may be long
		return nil
	}
	from, to := record.Table(record.TabQueue)
	return r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
		e, err := record.DecodeQueueEntry(k, v)
		if damaged(err) {
			clear(suspects)
			return cluster.ErrStop
		}
		if err == nil && e.Kind == record.QueueBlob {
			delete(suspects, cluster.BlobID{Content: uint64(e.Content), Seq: e.Seq})
		}
		return err
	})
}

// eachNamed calls fn with the extents of a content, and those of its parts if it
// is an upload.
func eachNamed(r cluster.Reader, c record.ContentID, fn func([]record.Extent)) error {
	for off, more := int64(0), true; more; {
		list, m, err := extents.Load(r, c, off, record.MaxFileBytes, extents.PageExtents)
		if err != nil {
			return err
		}
		fn(list)
		if more = m; more {
			off = list[len(list)-1].End()
		}
	}
	prefix := record.PartPrefix(c)
	return r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(_, v []byte) error {
		list, err := record.PartExtents(v)
		if err == nil {
			fn(list)
		}
		return err
	})
}

// confirmMissing takes blobs for missing that an extent or a part names before and
// after they were looked for.
func (m *merge) confirmMissing() error {
	for _, x := range m.missing {
		for look := range 2 {
			if look == 1 && x.damage == nil {
				if _, err := m.c.Blobs.Engine.Locate(m.c.ctx, x.id); !errors.Is(err, cluster.ErrNotFound) {
					break
				}
			}
			named := false
			err := m.c.Store.View(m.c.ctx, func(r cluster.Reader) (err error) {
				if x.part != 0 {
					named, err = partNames(r, x.id, x.part)
				} else {
					named, err = extentNames(r, &x)
				}
				return err
			})
			if err != nil {
				return err
			}
			if !named {
				break
			}
			if look == 1 {
				m.c.lose(x)
			}
		}
	}
	return nil
}

// extentNames reports whether an extent of a content that is not due for removal
// names a blob.
func extentNames(r cluster.Reader, x *missingBlob) (bool, error) {
	list, _, err := extents.Load(r, x.content, x.off, x.off+1, 1)
	if damaged(err) {
		return false, nil // reported with the extents
	}
	if err != nil || len(list) != 1 || list[0].Kind != record.ExtentBlob || list[0].Seq != x.id.Seq {
		return false, err
	}
	dead, err := queued(r, x.content, record.QueueContent)
	return err == nil && !dead, err
}

// confirmStrays reports contents with extents and without an owner, which
// one snapshot shows for certain: both come in one transaction. They stay
// where a record that cannot be read may own them.
func (m *merge) confirmStrays() error {
	var found findings
	err := m.c.Store.View(m.c.ctx, func(r cluster.Reader) error {
		found = nil
		suspects := make(map[record.ContentID]bool)
		for _, id := range m.strays {
			suspects[id] = true
		}
		unsure := false
		err := m.c.ownersIn(r, func(o owner) {
			delete(suspects, o.id)
			unsure = unsure || o.unknown
		})
		if err != nil {
			return err
		}
		for id := range suspects {
			exists, err := record.AnyKey(r, record.ExtentPrefix(id))
			if err != nil {
				return err
			}
			switch {
			case exists && unsure:
				found.add("orphan-content", nil, "extents of content %d belong to nothing, or to a record that cannot be read", id)
			case exists:
				found.add("orphan-content", func(t cluster.Txn, r Repairer) error { return r.RemoveContent(t, id) },
					"extents of content %d belong to nothing", id)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	m.c.report(found)
	return nil
}

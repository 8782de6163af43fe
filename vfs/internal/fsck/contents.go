package fsck

import (
	"cmp"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"
)

// checkSharing compares an inode with the record of its content.
func (c *checker) checkSharing(r cluster.Reader, n *record.Inode, f *findings) error {
	if n.Content == 0 {
		return nil
	}
	b, err := r.Get(record.ContentKey(n.Content))
	if err != nil {
		return err
	}
	held := false
	if b != nil {
		rec, err := record.DecodeContent(b)
		held = err == nil && rec.Held
	}
	if held != n.Has(record.FlagShared) || b != nil && !held {
		ino := n.Ino
		f.add("shared-record", func(t cluster.Txn, r Repairer) error {
			n, err := record.GetInode(t, ino)
			if err != nil || n.Content == 0 {
				return err
			}
			n.Set(record.FlagShared, false)
			return r.Share(t, n)
		}, "inode %d and the record of its content %d disagree whether it is shared", n.Ino, n.Content)
	}
	return nil
}

// checkOneInline holds an inode to what it says of its content's form.
func (c *checker) checkOneInline(r cluster.Reader, n *record.Inode, f *findings) error {
	if !n.Has(record.FlagOneInline) {
		return nil
	}
	list, more, err := extents.Load(r, n.Content, 0, record.MaxFileBytes, 1)
	if damaged(err) {
		return nil // reported with the extent
	}
	if err != nil {
		return err
	}
	if n.Content != 0 && !more && extents.OneInline(list, n.Used) {
		return nil
	}
	ino := n.Ino
	f.add("content-form", func(t cluster.Txn, _ Repairer) error {
		n, err := record.GetInode(t, ino)
		if err != nil {
			return err
		}
		n.Set(record.FlagOneInline, false)
		return record.PutInode(t, n)
	}, "the content %d of inode %d is not one inline extent", n.Content, n.Ino)
	return nil
}

// checkShared walks the records of contents and the holds on them.
func (c *checker) checkShared() error {
	from, to := record.Table(record.TabContent)
	err := c.walk(from, to, false, func(r cluster.Reader, page []pair, f *findings) error {
		for _, p := range page {
			id := record.ContentID(record.InoOfKey(p.key))
			rec, err := record.DecodeContent(p.value)
			if err != nil {
				f.add("other-record", nil, "%v", err)
				continue
			}
			if rec.Staging || rec.Held {
				continue
			}
			referred, err := record.AnyKey(r, record.RefPrefix(id))
			if err != nil {
				return err
			}
			if !referred {
				f.add("leaked-content", func(t cluster.Txn, r Repairer) error {
					if err := t.Delete(record.ContentKey(id)); err != nil {
						return err
					}
					return r.RemoveContent(t, id)
				}, "content %d is neither held nor referred to", id)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	from, to = record.Table(record.TabRef)
	return c.walk(from, to, true, func(r cluster.Reader, page []pair, f *findings) error {
		for _, p := range page {
			if len(p.key) != 17 {
				f.add("other-record", nil, "key %x", p.key)
				continue
			}
			source, user := record.ParseRefKey(p.key)
			used, err := refUsed(r, source, user)
			if err != nil {
				return err
			}
			if !used {
				f.add("stray-ref", func(t cluster.Txn, r Repairer) error { return r.ReleaseRef(t, source, user) },
					"content %d holds %d and does not refer to it", user, source)
			}
		}
		return nil
	})
}

// refUsed reports whether user refers to source, or is an upload or a content
// that is being staged or collected and may.
func refUsed(r cluster.Reader, source, user record.ContentID) (bool, error) {
	values, err := r.GetMany([][]byte{record.ContentKey(user), record.UploadIDKey(user)})
	if err != nil {
		return false, err
	}
	if values[1] != nil {
		return true, nil
	}
	if values[0] != nil {
		rec, err := record.DecodeContent(values[0])
		if err != nil || rec.Staging {
			return true, nil //nolint:nilerr // what cannot be read may own the blob
		}
	}
	for off := int64(0); ; {
		list, more, err := extents.Load(r, user, off, record.MaxFileBytes, extents.PageExtents)
		if damaged(err) {
			return true, nil // it may
		}
		if err != nil {
			return false, err
		}
		for i := range list {
			if list[i].Kind == record.ExtentRef && list[i].Src == source {
				return true, nil
			}
		}
		if !more {
			break
		}
		off = list[len(list)-1].End()
	}
	return queued(r, user, record.QueueContent, record.QueueUpload, record.QueueHold)
}

// owner is whose a content is.
type owner struct {
	id   record.ContentID
	ino  record.Ino // 0: not an inode's
	size int64      // of the inode
	dead bool       // queued: its blobs may be gone
	// unknown: the record cannot be read, and nobody knows what is its own.
	unknown bool
}

// checkContents walks extents and blobs side by side, as many contents at a
// time as there is memory for their owners.
func (c *checker) checkContents() error {
	var made uint64
	err := c.Store.View(c.ctx, func(r cluster.Reader) (err error) {
		made, err = record.Counter(r, record.CounterNumber)
		return err
	})
	if err != nil {
		return err
	}
	for lo := record.ContentID(0); ; {
		owners, hi, err := c.gatherOwners(lo)
		if err != nil {
			return err
		}
		m := merge{c: c, owners: owners, hi: hi, made: record.ContentID(made)}
		if err := m.run(lo); err != nil {
			return err
		}
		if hi == 0 {
			return nil
		}
		lo = hi
	}
}

// gatherOwners returns the owners of the contents from lo on, at most
// checkOwners of them, and where the rest begins (0: there is none).
func (c *checker) gatherOwners(lo record.ContentID) (list []owner, hi record.ContentID, err error) {
	add := func(o owner) {
		if o.id == 0 || o.id < lo || hi != 0 && o.id >= hi {
			return
		}
		if list = append(list, o); len(list) < 2*checkOwners {
			return
		}
		sortOwners(list)
		hi = list[checkOwners].id
		for len(list) > 0 && list[len(list)-1].id >= hi {
			list = list[:len(list)-1]
		}
	}
	err = c.ownersIn(nil, add)
	sortOwners(list)
	return list, hi, err
}

func sortOwners(list []owner) {
	slices.SortFunc(list, func(a, b owner) int { return cmp.Compare(a.id, b.id) })
}

// ownersIn calls add with all owners, in one snapshot if r is given, else page
// by page.
func (c *checker) ownersIn(r cluster.Reader, add func(owner)) error {
	var source record.ContentID // of the hold before: they are sorted by it
	for _, x := range []struct {
		tab byte
		get func(p pair) owner
	}{
		{record.TabInode, func(p pair) owner {
			n, err := record.DecodeInode(record.InoOfKey(p.key), p.value)
			if err != nil {
				return owner{unknown: true}
			}
			return owner{id: n.Content, ino: n.Ino, size: n.Size}
		}},
		{record.TabContent, func(p pair) owner {
			rec, err := record.DecodeContent(p.value)
			if err != nil || rec.Held {
				return owner{unknown: err != nil}
			}
			return owner{id: record.ContentID(record.InoOfKey(p.key)), dead: rec.Staging}
		}},
		{record.TabRef, func(p pair) owner { // who holds a content needs it, whatever its record says
			if len(p.key) != 17 {
				return owner{unknown: true}
			}
			before := source
			if source, _ = record.ParseRefKey(p.key); source == before {
				return owner{}
			}
			return owner{id: source}
		}},
		{record.TabUploadID, func(p pair) owner { return owner{id: record.ContentID(record.InoOfKey(p.key))} }},
		{record.TabQueue, func(p pair) owner {
			e, err := record.DecodeQueueEntry(p.key, p.value)
			if err != nil || e.Kind == record.QueueBlob || e.Kind == record.QueueHold {
				return owner{unknown: err != nil}
			}
			return owner{id: e.Content, dead: true}
		}},
	} {
		from, to := record.Table(x.tab)
		each := func(_ cluster.Reader, page []pair, _ *findings) error {
			for _, p := range page {
				add(x.get(p))
			}
			return nil
		}
		if r == nil {
			if err := c.walk(from, to, false, each); err != nil {
				return err
			}
			continue
		}
		err := r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
			add(x.get(pair{k, v}))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

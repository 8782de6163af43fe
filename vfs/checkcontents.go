package vfs

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"ogw/cluster"
)

// checkSharing compares an inode with the record of its content.
func (c *checker) checkSharing(r cluster.Reader, n *inode, f *findings) error {
	if n.content == 0 {
		return nil
	}
	b, err := r.Get(contentKey(n.content))
	if err != nil {
		return err
	}
	held := false
	if b != nil {
		rec, err := decodeContentRecord(b)
		held = err == nil && rec.held
	}
	if held != n.has(flagShared) || b != nil && !held {
		ino := n.ino
		f.add("shared-record", func(t cluster.Txn, o *op) error {
			n, err := getInode(t, ino)
			if err != nil || n.content == 0 {
				return err
			}
			n.set(flagShared, false)
			return o.share(t, n)
		}, "inode %d and the record of its content %d disagree whether it is shared", n.ino, n.content)
	}
	return nil
}

// checkShared walks the records of contents and the holds on them.
func (c *checker) checkShared() error {
	from, to := table(tabContent)
	err := c.walk(from, to, false, func(r cluster.Reader, page []pair, f *findings) error {
		for _, p := range page {
			id := ContentID(keyIno(p.key))
			rec, err := decodeContentRecord(p.value)
			if err != nil {
				f.add("other-record", nil, "%v", err)
				continue
			}
			if rec.staging || rec.held {
				continue
			}
			referred, err := anyKey(r, refPrefix(id))
			if err != nil {
				return err
			}
			if !referred {
				f.add("leaked-content", func(t cluster.Txn, o *op) error {
					if err := t.Delete(contentKey(id)); err != nil {
						return err
					}
					return o.removeContent(t, id)
				}, "content %d is neither held nor referred to", id)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	from, to = table(tabRef)
	return c.walk(from, to, true, func(r cluster.Reader, page []pair, f *findings) error {
		for _, p := range page {
			if len(p.key) != 17 {
				f.add("other-record", nil, "key %x", p.key)
				continue
			}
			source, user := ContentID(keyIno(p.key)), ContentID(binary.BigEndian.Uint64(p.key[9:]))
			used, err := refUsed(r, source, user)
			if err != nil {
				return err
			}
			if !used {
				f.add("stray-ref", func(t cluster.Txn, o *op) error { return o.releaseRef(t, source, user) },
					"content %d holds %d and does not refer to it", user, source)
			}
		}
		return nil
	})
}

// refUsed tells whether user refers to source, or is an upload or a content
// that is being staged or collected and may.
func refUsed(r cluster.Reader, source, user ContentID) (bool, error) {
	values, err := r.GetMany([][]byte{contentKey(user), uploadIDKey(user)})
	if err != nil {
		return false, err
	}
	if values[1] != nil {
		return true, nil
	}
	if values[0] != nil {
		rec, err := decodeContentRecord(values[0])
		if err != nil || rec.staging {
			return true, nil //nolint:nilerr // what cannot be read may own the blob
		}
	}
	for off := int64(0); ; {
		list, more, err := loadExtents(r, user, off, MaxFileBytes, extentPage)
		if err != nil {
			return false, err
		}
		for i := range list {
			if list[i].kind == extentRef && list[i].src == source {
				return true, nil
			}
		}
		if !more {
			break
		}
		off = list[len(list)-1].end()
	}
	return queued(r, user, queueContent, queueUpload)
}

// owner says whose a content is.
type owner struct {
	id   ContentID
	ino  Ino   // 0: not an inode's
	size int64 // of the inode
	dead bool  // queued: its blobs may be gone
}

// checkContents walks extents and blobs side by side, as many contents at a
// time as there is memory for their owners.
func (c *checker) checkContents() error {
	for lo := ContentID(0); ; {
		owners, hi, err := c.gatherOwners(lo)
		if err != nil {
			return err
		}
		m := merge{c: c, owners: owners, hi: hi}
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
func (c *checker) gatherOwners(lo ContentID) (list []owner, hi ContentID, err error) {
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

// ownersIn tells add of all owners, in one snapshot if r is given, else page
// by page.
func (c *checker) ownersIn(r cluster.Reader, add func(owner)) error {
	for _, x := range []struct {
		tab byte
		get func(p pair) owner
	}{
		{tabInode, func(p pair) owner {
			n, err := decodeInode(keyIno(p.key), p.value)
			if err != nil {
				return owner{}
			}
			return owner{id: n.content, ino: n.ino, size: n.size}
		}},
		{tabContent, func(p pair) owner {
			rec, err := decodeContentRecord(p.value)
			if err != nil || rec.held {
				return owner{}
			}
			return owner{id: ContentID(keyIno(p.key)), dead: rec.staging}
		}},
		{tabUploadID, func(p pair) owner { return owner{id: ContentID(keyIno(p.key))} }},
		{tabQueue, func(p pair) owner {
			e, err := decodeQueueEntry(p.key, p.value)
			if err != nil || e.kind == queueBlob {
				return owner{}
			}
			return owner{id: e.content, dead: true}
		}},
	} {
		from, to := table(x.tab)
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

// merge walks the extents and the blobs of the contents below hi.
type merge struct {
	c      *checker
	owners []owner
	hi     ContentID

	extents []extentAt // page of the extents
	next    []byte     // where the next begins; nil at the end
	blobs   []cluster.BlobInfo
	more    bool
	from    cluster.BlobID

	orphans []cluster.BlobInfo
	missing []missingBlob
	strays  []ContentID
	readBuf []byte
}

type extentAt struct {
	content ContentID
	extent
}

type missingBlob struct {
	content ContentID
	off     int64
	id      cluster.BlobID
	size    int64
}

func (m *merge) run(lo ContentID) error {
	m.next = extentPrefix(lo)
	m.from, m.more = cluster.BlobID{Content: uint64(lo)}, true
	for {
		if err := m.fill(); err != nil {
			return err
		}
		var id ContentID
		switch {
		case len(m.extents) > 0 && (len(m.blobs) == 0 || m.extents[0].content <= ContentID(m.blobs[0].ID.Content)):
			id = m.extents[0].content
		case len(m.blobs) > 0:
			id = ContentID(m.blobs[0].ID.Content)
		default:
			return m.confirm(true)
		}
		if m.hi != 0 && id >= m.hi {
			return m.confirm(true)
		}
		if err := m.content(id); err != nil {
			return err
		}
		if err := m.confirm(false); err != nil {
			return err
		}
	}
}

// fill loads the next page of extents and blobs where there is none.
func (m *merge) fill() error {
	for len(m.extents) == 0 && m.next != nil {
		_, to := table(tabExtent)
		var page []pair
		err := m.c.fs.view(m.c.ctx, func(r cluster.Reader) (err error) {
			page, err = readPairs(r, m.next, to, false)
			return err
		})
		if err != nil {
			return err
		}
		m.next = nil
		if len(page) == checkPage {
			m.next = append(append([]byte(nil), page[len(page)-1].key...), 0)
		}
		for _, p := range page {
			id, off, err := parseExtentKey(p.key)
			var e extent
			if err == nil {
				e, err = decodeExtent(off, p.value)
			}
			if err != nil {
				m.c.report(findings{{"extent-record", err.Error(), nil}})
				continue
			}
			m.extents = append(m.extents, extentAt{id, e})
		}
	}
	if len(m.blobs) > 0 || !m.more {
		return nil
	}
	n := 0
	err := m.c.fs.blobs.List(m.c.ctx, m.from, func(b cluster.BlobInfo) error {
		m.blobs = append(m.blobs, b)
		if n++; n == checkSuspects {
			return cluster.ErrStop
		}
		return nil
	})
	if err != nil {
		return mapErr(err)
	}
	if m.more = n == checkSuspects; m.more {
		last := m.blobs[n-1].ID
		m.from = cluster.BlobID{Content: last.Content, Seq: last.Seq + 1}
	}
	return nil
}

// content handles all extents and blobs of one content.
func (m *merge) content(id ContentID) error {
	own := m.owner(id)
	m.c.rep.Contents++
	named := make(map[uint64]missingBlob)
	var end int64
	any := false
	for len(m.extents) > 0 && m.extents[0].content == id {
		e := m.extents[0].extent
		m.extents = m.extents[1:]
		m.c.rep.Extents++
		any = true
		if own != nil && !own.dead {
			m.checkExtent(id, own, &e, end)
		}
		end = max(end, e.end())
		if e.kind == extentBlob {
			named[e.seq] = missingBlob{id, e.off, e.blobID(id), e.blobSize}
		}
		if err := m.fill(); err != nil {
			return err
		}
	}
	if own == nil && any {
		m.strays = append(m.strays, id)
	}
	for len(m.blobs) > 0 && ContentID(m.blobs[0].ID.Content) == id {
		b := m.blobs[0]
		m.blobs = m.blobs[1:]
		m.c.rep.Blobs++
		x, ok := named[b.ID.Seq]
		switch {
		case !ok:
			m.orphans = append(m.orphans, b)
		case x.size != b.Size:
			m.c.report(findings{{"blob-size", fmt.Sprintf("blob %v has %d bytes, not %d", b.ID, b.Size, x.size), nil}})
		case m.c.o.Data && own != nil && own.ino == 0 && !own.dead:
			m.readBlob(b)
		}
		delete(named, b.ID.Seq)
		if err := m.fill(); err != nil {
			return err
		}
	}
	if own != nil && !own.dead {
		for _, x := range named {
			m.missing = append(m.missing, x)
		}
	}
	return nil
}

// owner returns who owns a content, an inode first.
func (m *merge) owner(id ContentID) *owner {
	i, ok := slices.BinarySearchFunc(m.owners, id, func(o owner, id ContentID) int { return cmp.Compare(o.id, id) })
	if !ok {
		return nil
	}
	best := &m.owners[i]
	for ; i < len(m.owners) && m.owners[i].id == id; i++ {
		if m.owners[i].dead || best.dead {
			best = &owner{id: id, dead: true}
		} else if m.owners[i].ino != 0 {
			best = &m.owners[i]
		}
	}
	return best
}

// checkExtent looks at one extent beside the end of the one before, which
// only counts if nothing changed since: it is looked at again.
func (m *merge) checkExtent(id ContentID, own *owner, e *extent, end int64) {
	beyond := own.ino != 0 && e.end() > own.size
	if e.off >= end && !beyond && e.kind != extentRef {
		return
	}
	var found findings
	err := m.c.fs.view(m.c.ctx, func(r cluster.Reader) error {
		list, _, err := loadExtents(r, id, max(e.off-1, 0), e.end(), extentPage)
		if err != nil {
			return err
		}
		for i := range list {
			if i > 0 && list[i].off < list[i-1].end() {
				found.add("overlap", nil, "extents of content %d overlap at %d", id, list[i].off)
			}
			if list[i].kind != extentRef || list[i].off != e.off {
				continue
			}
			values, err := r.GetMany([][]byte{refKey(list[i].src, id), contentKey(list[i].src)})
			if err != nil {
				return err
			}
			if values[0] == nil || values[1] == nil {
				found.add("missing-ref", nil, "content %d refers to %d without holding it", id, list[i].src)
			}
		}
		if !beyond || len(list) == 0 {
			return nil
		}
		n, err := getInode(r, own.ino)
		if isStale(err) {
			return nil
		}
		if err == nil && n.content == id && list[len(list)-1].end() > n.size {
			found.add("beyond-size", nil, "inode %d of %d bytes has an extent up to %d", n.ino, n.size, list[len(list)-1].end())
		}
		return err
	})
	if err != nil {
		found.add("extent-record", nil, "content %d: %v", id, err)
	}
	m.c.report(found)
}

// readBlob verifies a blob that no inode leads to directly.
func (m *merge) readBlob(b cluster.BlobInfo) {
	if m.readBuf == nil {
		m.readBuf = make([]byte, copyBufferBytes)
	}
	for off := int64(0); off < b.Size; off += int64(len(m.readBuf)) {
		p := m.readBuf[:min(int64(len(m.readBuf)), b.Size-off)]
		n, err := m.c.fs.blobs.ReadAt(m.c.ctx, b.ID, p, off)
		if errors.Is(err, cluster.ErrNotFound) {
			return // collected meanwhile
		}
		if n < len(p) {
			m.c.report(findings{{"corrupt-data", fmt.Sprintf("blob %v: %v", b.ID, err), nil}})
			return
		}
	}
}

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
// no queue entry, no writer.
func (m *merge) confirmOrphans() error {
	fs, young := m.c.fs, youngBlob
	if !fs.clu.Exclusive {
		young = youngSharedBlob
	}
	before := fs.cfg.Now().Add(-young)
	suspects := make(map[cluster.BlobID]cluster.BlobInfo)
	for _, b := range m.orphans {
		if b.Modified.Before(before) && !fs.pins.pinned(ContentID(b.ID.Content)) {
			suspects[b.ID] = b
		}
	}
	if len(suspects) == 0 {
		return nil
	}
	err := fs.view(m.c.ctx, func(r cluster.Reader) error { return dropNamed(r, suspects) })
	if err != nil {
		return err
	}
	for id, b := range suspects {
		if _, err := fs.blobs.Locate(m.c.ctx, id); errors.Is(err, cluster.ErrNotFound) {
			continue
		}
		p := Problem{Kind: "orphan-blob", Detail: fmt.Sprintf("nothing names blob %v of %d bytes", id, b.Size)}
		if m.c.o.Repair {
			if err := fs.blobs.Delete(m.c.ctx, id); err == nil {
				p.Repaired = true
			}
		}
		m.c.add(p)
	}
	return nil
}

// dropNamed removes what the snapshot names from suspects.
func dropNamed(r cluster.Reader, suspects map[cluster.BlobID]cluster.BlobInfo) error {
	contents := make(map[ContentID]bool)
	for id := range suspects {
		contents[ContentID(id.Content)] = true
	}
	for c := range contents {
		drop := func(list []extent) {
			for i := range list {
				delete(suspects, list[i].blobID(c))
			}
		}
		for off, more := int64(0), true; more; {
			list, m, err := loadExtents(r, c, off, MaxFileBytes, extentPage)
			if err != nil {
				return err
			}
			drop(list)
			if more = m; more {
				off = list[len(list)-1].end()
			}
		}
		prefix := partPrefix(c)
		err := r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(_, v []byte) error {
			list, err := partExtents(v)
			if err == nil {
				drop(list)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	from, to := table(tabQueue)
	return r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
		e, err := decodeQueueEntry(k, v)
		if err == nil && e.kind == queueBlob {
			delete(suspects, cluster.BlobID{Content: uint64(e.content), Seq: e.seq})
		}
		return err
	})
}

// confirmMissing reports blobs that an extent names before and after they
// were looked for.
func (m *merge) confirmMissing() error {
	for _, x := range m.missing {
		for look := range 2 {
			if look == 1 {
				if _, err := m.c.fs.blobs.Locate(m.c.ctx, x.id); !errors.Is(err, cluster.ErrNotFound) {
					break
				}
			}
			named := false
			err := m.c.fs.view(m.c.ctx, func(r cluster.Reader) error {
				list, _, err := loadExtents(r, x.content, x.off, x.off+1, 1)
				if err != nil {
					return err
				}
				named = len(list) == 1 && list[0].kind == extentBlob && list[0].seq == x.id.Seq
				if !named {
					return nil
				}
				dead, err := queued(r, x.content, queueContent)
				named = !dead
				return err
			})
			if err != nil {
				return err
			}
			if !named {
				break
			}
			if look == 1 {
				m.c.add(Problem{Kind: "missing-blob", Detail: fmt.Sprintf("content %d at %d: blob %v does not exist", x.content, x.off, x.id)})
			}
		}
	}
	return nil
}

// confirmStrays reports contents with extents and without an owner, which
// one snapshot shows for certain: both come in one transaction.
func (m *merge) confirmStrays() error {
	var found findings
	err := m.c.fs.view(m.c.ctx, func(r cluster.Reader) error {
		found = nil
		suspects := make(map[ContentID]bool)
		for _, id := range m.strays {
			suspects[id] = true
		}
		if err := m.c.ownersIn(r, func(o owner) { delete(suspects, o.id) }); err != nil {
			return err
		}
		for id := range suspects {
			exists, err := anyKey(r, extentPrefix(id))
			if err != nil {
				return err
			}
			if exists {
				found.add("orphan-content", func(t cluster.Txn, o *op) error { return o.removeContent(t, id) },
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

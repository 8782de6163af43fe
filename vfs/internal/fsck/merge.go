package fsck

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// merge walks the extents, the parts and the blobs of the contents below hi.
type merge struct {
	c      *checker
	owners []owner
	hi     record.ContentID
	made   record.ContentID // others were made since owners were gathered

	extents []extentAt // page of the extents
	next    []byte     // where the next begins; nil at the end
	// parts is a page of those of uploads, and nextPart where the next begins.
	parts    []partAt
	nextPart []byte
	blobs    []probedBlob
	more     bool
	from     cluster.BlobID

	orphans []cluster.BlobInfo
	missing []missingBlob
	strays  []record.ContentID
	readBuf []byte
}

type extentAt struct {
	content record.ContentID
	record.Extent
}

// probedBlob is a blob, and what is wrong with it as far as that shows without
// reading it.
type probedBlob struct {
	cluster.BlobInfo
	damage error
}

// missingBlob is a blob that an extent names and that has not all its bytes.
type missingBlob struct {
	content record.ContentID
	part    int   // of the upload content; 0: the extent is the content's own
	off     int64 // of the extent, in the part if it is one's
	used    bool  // by a file, an upload, or a copy
	id      cluster.BlobID
	size    int64
	damage  error // nil: the engine does not have it
}

func (m *merge) run(lo record.ContentID) error {
	m.next, m.nextPart = record.ExtentPrefix(lo), record.PartPrefix(lo)
	m.from, m.more = cluster.BlobID{Content: uint64(lo)}, true
	for {
		if err := m.fill(); err != nil {
			return err
		}
		id, ok := m.first()
		if !ok || m.hi != 0 && id >= m.hi {
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

// first returns the content that comes next.
func (m *merge) first() (id record.ContentID, ok bool) {
	next := func(c record.ContentID) {
		if !ok || c < id {
			id, ok = c, true
		}
	}
	if len(m.extents) > 0 {
		next(m.extents[0].content)
	}
	if len(m.parts) > 0 {
		next(m.parts[0].upload)
	}
	if len(m.blobs) > 0 {
		next(record.ContentID(m.blobs[0].ID.Content))
	}
	return id, ok
}

// load reads a page of a table, with what also needs of the same snapshot, and returns
// where the next one begins, nil at the end.
func (m *merge) load(tab byte, from []byte, also func(cluster.Reader, []pair) error) (page []pair, next []byte, err error) {
	_, to := record.Table(tab)
	err = m.c.Store.View(m.c.ctx, func(r cluster.Reader) (err error) {
		if page, err = readPairs(r, from, to, false); err != nil {
			return err
		}
		return also(r, page)
	})
	if err == nil && len(page) == checkPage {
		next = append(slices.Clone(page[len(page)-1].key), 0)
	}
	return page, next, err
}

func nothingElse(cluster.Reader, []pair) error { return nil }

// fill loads the next page of extents, parts and blobs where there is none.
func (m *merge) fill() error {
	for len(m.extents) == 0 && m.next != nil {
		page, next, err := m.load(record.TabExtent, m.next, nothingElse)
		if err != nil {
			return err
		}
		m.next = next
		for _, p := range page {
			id, e, err := record.ParseExtent(p.key, p.value)
			if err != nil {
				m.c.report(findings{{"extent-record", err.Error(), nil}})
				continue
			}
			m.extents = append(m.extents, extentAt{id, e})
		}
	}
	if err := m.fillParts(); err != nil || len(m.blobs) > 0 || !m.more {
		return err
	}
	n := 0
	err := cluster.ProbeBlobs(m.c.ctx, m.c.Blobs.Engine, m.from, func(b cluster.BlobInfo, damage error) error {
		m.blobs = append(m.blobs, probedBlob{b, damage})
		if n++; n == checkSuspects {
			return cluster.ErrStop
		}
		return nil
	})
	if err != nil {
		return fserr.Map(err)
	}
	if m.more = n == checkSuspects; m.more {
		m.from = record.NextBlob(m.blobs[n-1].ID)
	}
	return nil
}

// fillParts loads the next page of parts where there is none. Those that were replaced, and
// those of uploads that ended, are the collector's, which removes their blobs first.
func (m *merge) fillParts() error {
	for len(m.parts) == 0 && m.nextPart != nil {
		var alive [][]byte
		page, next, err := m.load(record.TabPart, m.nextPart, func(r cluster.Reader, page []pair) (err error) {
			keys := make([][]byte, len(page))
			for i, p := range page {
				keys[i] = record.UploadIDKey(record.ContentID(record.InoOfKey(p.key)))
			}
			alive, err = r.GetMany(keys)
			return err
		})
		if err != nil {
			return err
		}
		m.nextPart = next
		for i, p := range page {
			x, err := record.DecodePart(p.key, p.value)
			if err != nil {
				m.c.report(findings{{"part-record", err.Error(), nil}})
				continue
			}
			if alive[i] != nil && x.Number < record.GarbagePart {
				m.parts = append(m.parts, partAt{record.ContentID(record.InoOfKey(p.key)), x.Number, x.Extents})
			}
		}
	}
	return nil
}

// partBlobs adds to named the blobs of the parts of an upload.
func (m *merge) partBlobs(id record.ContentID, named map[uint64]missingBlob) error {
	for len(m.parts) > 0 && m.parts[0].upload == id {
		p := m.parts[0]
		m.parts = m.parts[1:]
		for i := range p.extents {
			if e := &p.extents[i]; e.Kind == record.ExtentBlob {
				named[e.Seq] = missingBlob{content: id, part: p.number, off: e.Off, id: e.BlobID(id), size: e.BlobSize, used: true}
			}
		}
		if err := m.fillParts(); err != nil {
			return err
		}
	}
	return nil
}

// content handles all extents, parts and blobs of one content.
func (m *merge) content(id record.ContentID) error {
	own := m.owner(id)
	used := own != nil && !own.dead
	m.c.rep.Contents++
	named := make(map[uint64]missingBlob)
	var end int64
	any := false
	for len(m.extents) > 0 && m.extents[0].content == id {
		e := m.extents[0].Extent
		m.extents = m.extents[1:]
		m.c.rep.Extents++
		any = true
		if used {
			if err := m.checkExtent(id, own, &e, end); err != nil {
				return err
			}
		}
		end = max(end, e.End())
		if e.Kind == record.ExtentBlob {
			named[e.Seq] = missingBlob{content: id, off: e.Off, id: e.BlobID(id), size: e.BlobSize, used: used}
		}
		if err := m.fill(); err != nil {
			return err
		}
	}
	if own == nil && any && id < m.made {
		m.strays = append(m.strays, id)
	}
	if err := m.partBlobs(id, named); err != nil {
		return err
	}
	for len(m.blobs) > 0 && record.ContentID(m.blobs[0].ID.Content) == id {
		b := m.blobs[0]
		m.blobs = m.blobs[1:]
		m.c.rep.Blobs++
		x, ok := named[b.ID.Seq]
		switch {
		case !ok:
			m.orphans = append(m.orphans, b.BlobInfo)
		case x.size != b.Size:
			m.c.report(findings{{"blob-size", fmt.Sprintf("blob %v has %d bytes, not %d", b.ID, b.Size, x.size), nil}})
		case x.used:
			if b.damage != nil {
				x.damage = b.damage
				m.missing = append(m.missing, x)
			}
			if m.c.o.Data && (x.part != 0 || own.ino == 0) {
				if err := m.readBlob(&x); err != nil {
					return err
				}
			}
		}
		delete(named, b.ID.Seq)
		if err := m.fill(); err != nil {
			return err
		}
	}
	for _, x := range named {
		if x.used {
			m.missing = append(m.missing, x)
		}
	}
	return nil
}

// owner returns who owns a content, an inode first.
func (m *merge) owner(id record.ContentID) *owner {
	i, ok := slices.BinarySearchFunc(m.owners, id, func(o owner, id record.ContentID) int { return cmp.Compare(o.id, id) })
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
func (m *merge) checkExtent(id record.ContentID, own *owner, e *record.Extent, end int64) error {
	beyond := own.ino != 0 && e.End() > own.size
	if e.Off >= end && !beyond && e.Kind != record.ExtentRef {
		return nil
	}
	var found findings
	err := m.c.Store.View(m.c.ctx, func(r cluster.Reader) error {
		list, _, err := extents.Load(r, id, max(e.Off-1, 0), e.End(), extents.PageExtents)
		if err != nil {
			return err
		}
		for i := range list {
			if i > 0 && list[i].Off < list[i-1].End() {
				found.add("overlap", nil, "extents of content %d overlap at %d", id, list[i].Off)
			}
			if list[i].Kind != record.ExtentRef || list[i].Off != e.Off {
				continue
			}
			values, err := r.GetMany([][]byte{record.RefKey(list[i].Src, id), record.ContentKey(list[i].Src)})
			if err != nil {
				return err
			}
			if values[0] == nil || values[1] == nil {
				found.add("missing-ref", holdAgain(id, e.Off), "content %d refers to %d without holding it", id, list[i].Src)
			}
		}
		if !beyond || len(list) == 0 {
			return nil
		}
		n, err := record.GetInode(r, own.ino)
		if isStale(err) {
			return nil
		}
		if err == nil && n.Content == id && list[len(list)-1].End() > n.Size {
			found.add("beyond-size", nil, "inode %d of %d bytes has an extent up to %d", n.Ino, n.Size, list[len(list)-1].End())
		}
		return err
	})
	if damaged(err) {
		found.add("extent-record", nil, "content %d: %v", id, err)
		err = nil
	}
	m.c.report(found)
	return err
}

// holdAgain is a repair: content user holds what its extent at off refers to.
func holdAgain(user record.ContentID, off int64) Repair {
	return func(t cluster.Txn, r Repairer) error {
		list, _, err := extents.Load(t, user, off, off+1, 1)
		if err != nil || len(list) == 0 || list[0].Off != off || list[0].Kind != record.ExtentRef {
			return err
		}
		if there, err := record.AnyKey(t, record.ExtentPrefix(list[0].Src)); err != nil || !there {
			return cmp.Or(err, errNothingToHold)
		}
		return r.Hold(t, list[0].Src, user)
	}
}

// errNothingToHold is why a reference cannot be mended.
var errNothingToHold = errors.New("it is gone")

// readBlob verifies a blob that no inode leads to directly.
func (m *merge) readBlob(b *missingBlob) error {
	if m.readBuf == nil {
		m.readBuf = make([]byte, readBufferBytes)
	}
	for off := int64(0); off < b.size; off += int64(len(m.readBuf)) {
		p := m.readBuf[:min(int64(len(m.readBuf)), b.size-off)]
		n, err := m.c.Blobs.Read(m.c.ctx, b.id, p, off)
		if errors.Is(err, cluster.ErrNotFound) {
			return nil // collected concurrently
		}
		if n == len(p) {
			continue
		}
		if err = fserr.Map(err); err != nil && !damaged(err) {
			return err
		}
		text := fmt.Sprintf("blob %v: %v", b.id, err)
		if b.part != 0 {
			text = partText(m.c.ctx, m.c.Store, m.c.Blobs.Files, b.content, b.part) + ": " + text
			m.c.parts[b.id] = true
		}
		m.c.report(findings{{"corrupt-data", text, nil}})
		return nil
	}
	return nil
}

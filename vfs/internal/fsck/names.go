package fsck

import (
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/record"
)

// maxRooted bounds the directories remembered to lead to the root.
const maxRooted = 1 << 16

// checkInodes: every inode has the links that it says it has.
func (c *checker) checkInodes() error {
	from, to := record.Table(record.TabInode)
	return c.walk(from, to, false, func(r cluster.Reader, page []pair, f *findings) error {
		for _, p := range page {
			n, err := record.DecodeInode(record.InoOfKey(p.key), p.value)
			if err != nil {
				f.add("inode-record", nil, "%v", err)
				continue
			}
			c.rep.Inodes++
			if n.IsDir() {
				c.rep.Directories++
			} else if n.IsRegular() {
				c.rep.Files++
				c.rep.Bytes += n.Size
			}
			if err := c.checkLinks(r, n, f); err != nil {
				return err
			}
			if err := c.checkSharing(r, n, f); err != nil {
				return err
			}
			if err := c.checkOneInline(r, n, f); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkLinks compares an inode with the dentries that it should have.
func (c *checker) checkLinks(r cluster.Reader, n *record.Inode, f *findings) error {
	if n.Ino == record.RootIno {
		return nil
	}
	if n.Nlink == 0 {
		b, err := r.Get(record.OrphanKey(n.Ino))
		if err == nil && b == nil {
			f.add("nlink", func(t cluster.Txn, r Repairer) error { return r.RemoveUnused(t, n) },
				"inode %d has no links and nobody has it open", n.Ino)
		}
		return err
	}
	if n.IsDir() || !n.Has(record.FlagLinks) {
		e, err := record.GetDentry(r, n.Parent, n.Name, n.IsDir())
		if damaged(err) {
			e, err = nil, nil
		}
		if err != nil {
			return err
		}
		if e == nil || e.Ino != n.Ino {
			f.add("unreachable", adopt(n.Ino), "inode %d is not in directory %d as %q", n.Ino, n.Parent, n.Name)
			return nil
		}
		if n.Nlink != 1 {
			f.add("nlink", setLinks(n.Ino, 1), "inode %d has 1 link, not %d", n.Ino, n.Nlink)
		}
		if n.IsDir() {
			return c.checkRooted(r, n, f)
		}
		return nil
	}
	links, err := record.Links(r, n.Ino)
	if err != nil {
		return err
	}
	var count uint32
	for _, l := range links {
		e, err := record.GetDentry(r, l.Parent, l.Name, false)
		if err != nil && !damaged(err) {
			return err
		}
		if err == nil && e != nil && e.Ino == n.Ino {
			count++
		}
	}
	switch {
	case count == 0:
		f.add("unreachable", adopt(n.Ino), "inode %d is in none of the directories that it was linked to", n.Ino)
	case count != n.Nlink:
		f.add("nlink", setLinks(n.Ino, count), "inode %d has %d links, not %d", n.Ino, count, n.Nlink)
	}
	return nil
}

// refreshEntry makes an entry repeat what the inode says.
func refreshEntry(parent record.Ino, e *record.Dentry) Repair {
	return func(t cluster.Txn, _ Repairer) error {
		n, err := record.GetInode(t, e.Ino)
		if err != nil {
			return err
		}
		now := *e
		now.DirBits = n.DirBits()
		return record.PutDentry(t, parent, &now)
	}
}

func setLinks(ino record.Ino, count uint32) Repair {
	return func(t cluster.Txn, _ Repairer) error {
		n, err := record.GetInode(t, ino)
		if err != nil {
			return err
		}
		n.Nlink = count
		return record.PutInode(t, n)
	}
}

// checkRooted follows the parents of a directory to the root.
func (c *checker) checkRooted(r cluster.Reader, n *record.Inode, f *findings) error {
	way := []record.Ino{n.Ino}
	var loop record.LoopDetector
	for at := n.Parent; at != record.RootIno && !c.rooted[at]; {
		if err := loop.Visit(at); err != nil {
			f.add("directory-loop", nil, "directory %d does not lead to the root", n.Ino)
			return nil //nolint:nilerr // it is the finding
		}
		way = append(way, at)
		d, err := record.GetInode(r, at)
		if damaged(err) || err == nil && !d.IsDir() {
			return nil // it is unreachable, and reported as such
		}
		if err != nil {
			return err
		}
		at = d.Parent
	}
	if len(c.rooted)+len(way) > maxRooted {
		clear(c.rooted)
	}
	for _, d := range way {
		c.rooted[d] = true
	}
	return nil
}

// adopt is a repair.
func adopt(ino record.Ino) Repair {
	return func(t cluster.Txn, r Repairer) error { return r.Adopt(t, ino) }
}

// checkDentries: every dentry leads to an inode that knows of it.
func (c *checker) checkDentries() error {
	from, to := record.Table(record.TabDentry)
	return c.walk(from, to, false, func(r cluster.Reader, page []pair, f *findings) error {
		keys := make([][]byte, 0, 2*len(page))
		list := make([]*record.Dentry, len(page))
		for i, p := range page {
			e, err := record.DecodeDentry(p.key[min(9, len(p.key)):], p.value)
			if err != nil {
				f.add("dentry-record", nil, "%v", err)
				keys = append(keys, p.key, p.key)
				continue
			}
			list[i] = &e
			keys = append(keys, record.InodeKey(e.Ino), record.InodeKey(record.InoOfKey(p.key)))
		}
		values, err := r.GetMany(keys)
		if err != nil {
			return err
		}
		for i, e := range list {
			if e == nil {
				continue
			}
			parent := record.InoOfKey(page[i].key)
			if values[2*i+1] == nil {
				f.add("entry-without-parent", nil, "entry %q leads from directory %d, which does not exist, to inode %d", e.Name, parent, e.Ino)
				continue
			}
			if values[2*i] == nil {
				e := *e
				f.add("dangling-entry", func(t cluster.Txn, r Repairer) error { return r.DeleteEntry(t, parent, &e) },
					"entry %q of directory %d leads to inode %d, which does not exist", e.Name, parent, e.Ino)
				continue
			}
			if err := c.checkEntry(r, parent, e, values[2*i], f); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *checker) checkEntry(r cluster.Reader, parent record.Ino, e *record.Dentry, value []byte, f *findings) error {
	n, err := record.DecodeInode(e.Ino, value)
	if err != nil {
		return nil //nolint:nilerr // reported with the inodes
	}
	if n.Mode&record.ModeTypeMask != e.Mode {
		f.add("entry-type", nil, "entry %q of directory %d has type %o, its inode %d has %o", e.Name, parent, e.Mode, e.Ino, n.Mode&record.ModeTypeMask)
	}
	if want := n.DirBits(); !n.IsDir() && e.DirBits != 0 || e.DirBits&^want != 0 || want&^e.DirBits&(record.DirFlags|record.DirPolicy) != 0 {
		f.add("entry-mode", refreshEntry(parent, e), "entry %q of directory %d lets pass what the mode or the flags of its inode %d deny", e.Name, parent, e.Ino)
	}
	switch {
	case n.Has(record.FlagLinks) && !n.IsDir():
		k := record.LinkKey(n.Ino, parent, e.Name)
		b, err := r.Get(k)
		if err != nil {
			return err
		}
		if b == nil {
			f.add("link-record", func(t cluster.Txn, _ Repairer) error { return t.Set(k, []byte{}) },
				"inode %d does not know that it is in directory %d as %q", n.Ino, parent, e.Name)
		}
	case n.Parent != parent || n.Name != e.Name:
		f.add("extra-entry", nil, "entry %q of directory %d leads to inode %d, which is in directory %d as %q", e.Name, parent, e.Ino, n.Parent, n.Name)
	}
	if !naming.MaybeHashed(e.Name, e.Dir) {
		return nil
	}
	h := naming.Hash(e.Name, e.Dir)
	k, v := record.LongNameKey(parent, h[:]), []byte(e.S3Name())
	b, err := r.Get(k)
	if err == nil && string(b) != string(v) {
		f.add("long-name", func(t cluster.Txn, _ Repairer) error { return t.Set(k, v) }, "entry %q of directory %d is not in the index of long names", e.Name, parent)
	}
	return err
}

// checkTables: what hangs on an inode or an entry has it. A record that
// cannot be read itself hangs on nothing; one that hangs on such a record
// stays.
func (c *checker) checkTables() error {
	for _, x := range []struct {
		tab  byte
		kind string
		ok   func(r cluster.Reader, p pair) (bool, error)
	}{
		{record.TabLink, "link-record", linkOK},
		{record.TabLongName, "long-name", longNameOK},
		{record.TabDirTime, "stray-times", func(r cluster.Reader, p pair) (bool, error) { return inodeOK(r, p, (*record.Inode).IsDir) }},
		{record.TabXattr, "stray-attribute", func(r cluster.Reader, p pair) (bool, error) { return inodeOK(r, p, nil) }},
		{record.TabOrphan, "stray-orphan", orphanOK},
		{record.TabLock, "stray-lock", locksOK},
		{record.TabWait, "stray-lock", func(r cluster.Reader, p pair) (bool, error) { return waitOK(r, p.key, p.value) }},
		{record.TabLocker, "stray-lock", func(r cluster.Reader, p pair) (bool, error) { return lockerOK(r, p.key) }},
		{record.TabBucket, "stray-bucket", func(r cluster.Reader, p pair) (bool, error) { return inodeOK(r, p, (*record.Inode).IsDir) }},
		{record.TabPolicy, "stray-policy", func(r cluster.Reader, p pair) (bool, error) {
			return inodeOK(r, p, func(n *record.Inode) bool { return n.IsDir() && n.Has(record.FlagPolicy) })
		}},
		{record.TabUpload, "upload-record", uploadOK},
		{record.TabUploadID, "upload-record", uploadIDOK},
		{record.TabPart, "stray-part", partOK},
		{record.TabQueue, "queue-record", func(_ cluster.Reader, p pair) (bool, error) {
			_, err := record.DecodeQueueEntry(p.key, p.value)
			return true, err
		}},
	} {
		from, to := record.Table(x.tab)
		err := c.walk(from, to, false, func(r cluster.Reader, page []pair, f *findings) error {
			for _, p := range page {
				ok, err := x.ok(r, p)
				switch {
				case errors.Is(err, fserr.ErrCorrupt):
					f.add(x.kind, nil, "key %q hangs on a record that cannot be read: %v", p.key, err)
				case err != nil && !errors.Is(err, fserr.ErrStale):
					return err
				case !ok:
					f.add(x.kind, deleteKey(p.key), "key %q hangs on nothing", p.key)
				case x.tab == record.TabLock:
					missing, err := unlisted(r, p.key, p.value)
					for client, list := range missing {
						f.add("unlisted-lock", func(t cluster.Txn, _ Repairer) error { return list(t) },
							"locks of %q on inode %d are not in the list of its locks", client, record.InoOfKey(p.key))
					}
					if err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func linkOK(r cluster.Reader, p pair) (bool, error) {
	parent, name, err := record.ParseLinkKey(p.key)
	if err != nil {
		return false, nil //nolint:nilerr // it is nothing
	}
	e, err := record.GetDentry(r, parent, name, false)
	return e != nil && e.Ino == record.InoOfKey(p.key), err
}

func longNameOK(r cluster.Reader, p pair) (bool, error) {
	e, err := record.DecodeLongName(p.value)
	if err != nil {
		return false, nil //nolint:nilerr // it is nothing
	}
	found, err := record.GetDentry(r, record.InoOfKey(p.key), e.Name, e.Dir)
	return found != nil, err
}

func inodeOK(r cluster.Reader, p pair, is func(*record.Inode) bool) (bool, error) {
	n, err := record.GetInode(r, record.InoOfKey(p.key))
	if err != nil {
		return false, err
	}
	return is == nil || is(n), nil
}

func orphanOK(r cluster.Reader, p pair) (bool, error) {
	ok, err := inodeOK(r, p, func(n *record.Inode) bool { return n.Nlink == 0 })
	if err == nil && ok {
		_, _, err = record.DecodeOrphan(p.value)
	}
	return ok, err
}

// locksOK reports whether locks can be read, and are those of an inode.
func locksOK(r cluster.Reader, p pair) (bool, error) {
	if _, err := record.DecodeFileLocks(p.value); err != nil {
		return false, nil //nolint:nilerr // they are none
	}
	return inodeOK(r, p, nil)
}

func uploadOK(r cluster.Reader, p pair) (bool, error) {
	_, _, id, err := record.ParseUploadKey(p.key)
	if err != nil {
		return false, nil //nolint:nilerr // it is nothing
	}
	b, err := r.Get(record.UploadIDKey(id))
	return string(b) == string(p.key), err
}

func uploadIDOK(r cluster.Reader, p pair) (bool, error) {
	if len(p.value) == 0 {
		return false, nil // no key
	}
	b, err := r.Get(p.value)
	return b != nil, err
}

func partOK(r cluster.Reader, p pair) (bool, error) {
	id := record.ContentID(record.InoOfKey(p.key))
	b, err := r.Get(record.UploadIDKey(id))
	if err != nil || b != nil {
		return b != nil, err
	}
	return queued(r, id, record.QueueUpload)
}

// queued reports whether the collector will come to a content or upload.
func queued(r cluster.Reader, id record.ContentID, kinds ...record.QueueKind) (found bool, err error) {
	from, to := record.Table(record.TabQueue)
	err = r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
		e, err := record.DecodeQueueEntry(k, v)
		if damaged(err) { // it may be that
			found = true
			return cluster.ErrStop
		}
		if err != nil {
			return err
		}
		for _, kind := range kinds {
			if e.Content == id && e.Kind == kind {
				found = true
				return cluster.ErrStop
			}
		}
		return nil
	})
	return found, err
}

package vfs

import (
	"encoding/binary"
	"errors"
	"fmt"

	"ogw/cluster"
)

const (
	lostFoundName = "lost+found"
	// maxRooted bounds the directories remembered to lead to the root.
	maxRooted = 1 << 16
)

func keyIno(k []byte) Ino {
	if len(k) < 9 {
		return 0
	}
	return Ino(binary.BigEndian.Uint64(k[1:]))
}

// checkInodes: every inode has the links that it says it has.
func (c *checker) checkInodes() error {
	from, to := table(tabInode)
	return c.walk(from, to, false, func(r cluster.Reader, page []pair, f *findings) error {
		for _, p := range page {
			n, err := decodeInode(keyIno(p.key), p.value)
			if err != nil {
				f.add("inode-record", nil, "%v", err)
				continue
			}
			c.rep.Inodes++
			if n.isDir() {
				c.rep.Directories++
			} else if n.isRegular() {
				c.rep.Files++
				c.rep.Bytes += n.size
			}
			if err := c.checkLinks(r, n, f); err != nil {
				return err
			}
			if err := c.checkSharing(r, n, f); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkLinks compares an inode with the dentries that it should have.
func (c *checker) checkLinks(r cluster.Reader, n *inode, f *findings) error {
	if n.ino == RootIno {
		return nil
	}
	if n.nlink == 0 {
		b, err := r.Get(orphanKey(n.ino))
		if err == nil && b == nil {
			f.add("nlink", func(t cluster.Txn, o *op) error {
				o.fs.orphans.again()
				return o.makeOrphan(t, n)
			}, "inode %d has no links and nobody has it open", n.ino)
		}
		return err
	}
	if n.isDir() || !n.has(flagLinks) {
		e, err := getDentry(r, n.parent, n.name, n.isDir())
		if damaged(err) {
			e, err = nil, nil
		}
		if err != nil {
			return err
		}
		if e == nil || e.ino != n.ino {
			f.add("unreachable", c.toLostFound(n.ino), "inode %d is not in directory %d as %q", n.ino, n.parent, n.name)
			return nil
		}
		if n.nlink != 1 {
			f.add("nlink", setLinks(n.ino, 1), "inode %d has 1 link, not %d", n.ino, n.nlink)
		}
		if n.isDir() {
			return c.checkRooted(r, n, f)
		}
		return nil
	}
	links, err := linksOf(r, n.ino)
	if err != nil {
		return err
	}
	var count uint32
	for _, l := range links {
		e, err := getDentry(r, l.parent, l.name, false)
		if err != nil && !damaged(err) {
			return err
		}
		if err == nil && e != nil && e.ino == n.ino {
			count++
		}
	}
	switch {
	case count == 0:
		f.add("unreachable", c.toLostFound(n.ino), "inode %d is in none of the directories that it was linked to", n.ino)
	case count != n.nlink:
		f.add("nlink", setLinks(n.ino, count), "inode %d has %d links, not %d", n.ino, count, n.nlink)
	}
	return nil
}

// tellAgain makes an entry tell what the inode says.
func tellAgain(parent Ino, e *dentry) func(cluster.Txn, *op) error {
	return func(t cluster.Txn, _ *op) error {
		n, err := getInode(t, e.ino)
		if err != nil {
			return err
		}
		now := *e
		now.tells = n.entryTells()
		return putDentry(t, parent, &now)
	}
}

func setLinks(ino Ino, count uint32) func(cluster.Txn, *op) error {
	return func(t cluster.Txn, _ *op) error {
		n, err := getInode(t, ino)
		if err != nil {
			return err
		}
		n.nlink = count
		return putInode(t, n)
	}
}

// checkRooted follows the parents of a directory to the root.
func (c *checker) checkRooted(r cluster.Reader, n *inode, f *findings) error {
	way := []Ino{n.ino}
	var circle wayUp
	for at := n.parent; at != RootIno && !c.rooted[at]; {
		if err := circle.pass(at); err != nil {
			f.add("directory-loop", nil, "directory %d does not lead to the root", n.ino)
			return nil //nolint:nilerr // it is the finding
		}
		way = append(way, at)
		d, err := getInode(r, at)
		if damaged(err) || err == nil && !d.isDir() {
			return nil // it is unreachable, and reported as such
		}
		if err != nil {
			return err
		}
		at = d.parent
	}
	if len(c.rooted)+len(way) > maxRooted {
		clear(c.rooted)
	}
	for _, d := range way {
		c.rooted[d] = true
	}
	return nil
}

// toLostFound gives an inode that no directory holds a name in /lost+found.
func (c *checker) toLostFound(ino Ino) func(cluster.Txn, *op) error {
	return func(t cluster.Txn, o *op) error {
		n, err := getInode(t, ino)
		if err != nil {
			return err
		}
		dir, err := o.makeParents(t, RootIno, []string{lostFoundName}, Root)
		if err != nil {
			return err
		}
		d, err := getInode(t, dir)
		if err != nil {
			return err
		}
		if !d.has(flagExplicit) {
			d.set(flagExplicit, true)
			d.mode = ModeDirectory | 0o700
			d.choose()
			if err := putInode(t, d); err != nil {
				return err
			}
			if err := tellEntry(t, d); err != nil {
				return err
			}
		}
		if err := deletePrefix(t, linkPrefix(ino)); err != nil {
			return err
		}
		if n.isDir() {
			o.dirMoved()
		}
		n.parent, n.name, n.nlink = dir, fmt.Sprintf("inode-%d", ino), 1
		n.set(flagLinks, false)
		if err := o.addEntry(t, dir, entryOf(n)); err != nil {
			return err
		}
		return putInode(t, n)
	}
}

// checkDentries: every dentry leads to an inode that knows of it.
func (c *checker) checkDentries() error {
	from, to := table(tabDentry)
	return c.walk(from, to, false, func(r cluster.Reader, page []pair, f *findings) error {
		keys := make([][]byte, 0, 2*len(page))
		list := make([]*dentry, len(page))
		for i, p := range page {
			e, err := decodeDentry(p.key[min(9, len(p.key)):], p.value)
			if err != nil {
				f.add("dentry-record", nil, "%v", err)
				keys = append(keys, p.key, p.key)
				continue
			}
			list[i] = &e
			keys = append(keys, inodeKey(e.ino), inodeKey(keyIno(p.key)))
		}
		values, err := r.GetMany(keys)
		if err != nil {
			return err
		}
		for i, e := range list {
			if e == nil {
				continue
			}
			parent := keyIno(page[i].key)
			if values[2*i+1] == nil {
				f.add("entry-without-parent", nil, "entry %q leads from directory %d, which does not exist, to inode %d", e.name, parent, e.ino)
				continue
			}
			if values[2*i] == nil {
				e := *e
				f.add("dangling-entry", func(t cluster.Txn, o *op) error { return o.deleteEntry(t, parent, &e) },
					"entry %q of directory %d leads to inode %d, which does not exist", e.name, parent, e.ino)
				continue
			}
			if err := c.checkEntry(r, parent, e, values[2*i], f); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *checker) checkEntry(r cluster.Reader, parent Ino, e *dentry, value []byte, f *findings) error {
	n, err := decodeInode(e.ino, value)
	if err != nil {
		return nil //nolint:nilerr // reported with the inodes
	}
	if n.mode&ModeTypeMask != e.mode {
		f.add("entry-type", nil, "entry %q of directory %d has type %o, its inode %d has %o", e.name, parent, e.mode, e.ino, n.mode&ModeTypeMask)
	}
	if told := n.entryTells(); !n.isDir() && e.tells != 0 || e.tells&^told != 0 || told&^e.tells&tellsFlags != 0 {
		f.add("entry-mode", tellAgain(parent, e), "entry %q of directory %d lets pass what the mode or the flags of its inode %d deny", e.name, parent, e.ino)
	}
	switch {
	case n.has(flagLinks) && !n.isDir():
		k := linkKey(n.ino, parent, e.name)
		b, err := r.Get(k)
		if err != nil {
			return err
		}
		if b == nil {
			f.add("link-record", func(t cluster.Txn, _ *op) error { return t.Set(k, []byte{}) },
				"inode %d does not know that it is in directory %d as %q", n.ino, parent, e.name)
		}
	case n.parent != parent || n.name != e.name:
		f.add("extra-entry", nil, "entry %q of directory %d leads to inode %d, which is in directory %d as %q", e.name, parent, e.ino, n.parent, n.name)
	}
	if !maybeHashed(e.name, e.dir) {
		return nil
	}
	h := nameHash(e.name, e.dir)
	k, v := longNameKey(parent, h[:]), []byte(e.s3name())
	b, err := r.Get(k)
	if err == nil && string(b) != string(v) {
		f.add("long-name", func(t cluster.Txn, _ *op) error { return t.Set(k, v) }, "entry %q of directory %d is not in the index of long names", e.name, parent)
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
		{tabLink, "link-record", linkOK},
		{tabLongName, "long-name", longNameOK},
		{tabDirTime, "stray-times", func(r cluster.Reader, p pair) (bool, error) { return inodeOK(r, p, (*inode).isDir) }},
		{tabXattr, "stray-attribute", func(r cluster.Reader, p pair) (bool, error) { return inodeOK(r, p, nil) }},
		{tabOrphan, "stray-orphan", func(r cluster.Reader, p pair) (bool, error) {
			return inodeOK(r, p, func(n *inode) bool { return n.nlink == 0 })
		}},
		{tabBucket, "stray-bucket", func(r cluster.Reader, p pair) (bool, error) { return inodeOK(r, p, (*inode).isDir) }},
		{tabUpload, "upload-record", uploadOK},
		{tabUploadID, "upload-record", uploadIDOK},
		{tabPart, "stray-part", partOK},
	} {
		from, to := table(x.tab)
		err := c.walk(from, to, false, func(r cluster.Reader, page []pair, f *findings) error {
			for _, p := range page {
				ok, err := x.ok(r, p)
				switch {
				case errors.Is(err, ErrCorrupt):
					f.add(x.kind, nil, "key %q hangs on a record that cannot be read: %v", p.key, err)
				case err != nil && !errors.Is(err, ErrStale):
					return err
				case !ok:
					f.add(x.kind, deleteKey(p.key), "key %q hangs on nothing", p.key)
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
	parent, name, err := parseLinkKey(p.key)
	if err != nil {
		return false, nil //nolint:nilerr // it is nothing
	}
	e, err := getDentry(r, parent, name, false)
	return e != nil && e.ino == keyIno(p.key), err
}

func longNameOK(r cluster.Reader, p pair) (bool, error) {
	e, err := decodeLongName(p.value)
	if err != nil {
		return false, nil //nolint:nilerr // it is nothing
	}
	found, err := getDentry(r, keyIno(p.key), e.name, e.dir)
	return found != nil, err
}

func inodeOK(r cluster.Reader, p pair, is func(*inode) bool) (bool, error) {
	n, err := getInode(r, keyIno(p.key))
	if err != nil {
		return false, err
	}
	return is == nil || is(n), nil
}

func uploadOK(r cluster.Reader, p pair) (bool, error) {
	_, _, id, err := parseUploadKey(p.key)
	if err != nil {
		return false, nil //nolint:nilerr // it is nothing
	}
	b, err := r.Get(uploadIDKey(id))
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
	id := ContentID(keyIno(p.key))
	b, err := r.Get(uploadIDKey(id))
	if err != nil || b != nil {
		return b != nil, err
	}
	return queued(r, id, queueUpload)
}

// queued tells whether the collector will come to a content or upload.
func queued(r cluster.Reader, id ContentID, kinds ...queueKind) (found bool, err error) {
	from, to := table(tabQueue)
	err = r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
		e, err := decodeQueueEntry(k, v)
		if damaged(err) { // it may be that
			found = true
			return cluster.ErrStop
		}
		if err != nil {
			return err
		}
		for _, kind := range kinds {
			if e.content == id && e.kind == kind {
				found = true
				return cluster.ErrStop
			}
		}
		return nil
	})
	return found, err
}

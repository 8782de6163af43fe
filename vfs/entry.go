package vfs

import (
	"context"
	"fmt"

	"ogw/cluster"
)

const (
	// pruneLevels bounds how many implied directories one transaction
	// removes on an engine that limits transactions; each costs 8 operations
	// at the most. The rest goes in transactions of their own.
	pruneLevels = 8
	// pruneLevelsUnlimited is deeper than any object key.
	pruneLevelsUnlimited = MaxKeyBytes
)

// newID returns a fresh number. update has leased enough of them, so that
// this does not wait for another transaction inside of one.
func (o *op) newID() (uint64, error) { return o.fs.ids.take(o.ctx) }

// newInode returns an inode with the number id, times of now, owner from
// cred (nil: root), one link, version 1, and a mode that nobody chose. It is
// not stored yet; the caller sets parent and name.
func (o *op) newInode(id uint64, mode uint32, cred *Cred) *inode {
	if cred == nil {
		cred = Root
	}
	return &inode{
		ino: Ino(id), gen: 1, mode: mode, nlink: 1, uid: cred.UID, gid: cred.GID, version: 1, flags: flagUnchosen,
		atime: TimeNS(o.nowNS), mtime: TimeNS(o.nowNS), ctimeNS: o.nowNS, btimeNS: o.nowNS,
	}
}

// makeParents returns the directory that comps (stored names) lead to below
// root, making implied directories (owned by cred) for what is missing. What
// it read makes the transaction conflict with the removal of any of them;
// root is the caller's to guard.
func (o *op) makeParents(t cluster.Txn, root Ino, comps []string, cred *Cred) (Ino, error) {
	dir := root
	for i, name := range comps {
		e, err := getDentry(t, dir, name, true)
		if err != nil {
			return 0, err
		}
		if e == nil {
			return o.makeImplied(t, dir, comps[i:], cred)
		}
		dir = e.ino
	}
	return dir, nil
}

// makeImplied makes a chain of implied directories below dir, of which the
// first is known to be missing.
func (o *op) makeImplied(t cluster.Txn, dir Ino, comps []string, cred *Cred) (Ino, error) {
	for i, name := range comps {
		if len(name) > MaxNameBytes {
			return 0, ErrNameTooLong
		}
		id, err := o.newID()
		if err != nil {
			return 0, err
		}
		n := o.newInode(id, ModeDirectory|o.fs.cfg.DirMode, cred)
		n.parent, n.name = dir, name
		if err := putInode(t, n); err != nil {
			return 0, err
		}
		e := entryOf(n)
		if i == 0 {
			err = o.addEntry(t, dir, e)
		} else {
			err = o.putEntry(t, dir, e) // in a directory that is new: no pair, no times
		}
		if err != nil {
			return 0, err
		}
		dir = n.ino
	}
	return dir, nil
}

// addEntry makes entry e in dir: dentry, long-name index, directory time,
// flagShadows if it makes a pair, event. The inode is the caller's, and so
// is reading something that guards the existence of dir.
func (o *op) addEntry(t cluster.Txn, dir Ino, e *dentry) error {
	other := dentry{name: e.name, dir: !e.dir}
	v, err := t.Get(other.key(dir))
	if err != nil {
		return err
	}
	return o.addEntryBeside(t, dir, e, v != nil)
}

// addEntryBeside is addEntry for callers that know whether the other entry
// of the same stored name exists.
func (o *op) addEntryBeside(t cluster.Txn, dir Ino, e *dentry, pair bool) error {
	if dir == RootIno && e.dir && o.fs.reserved(e.name) {
		return fmt.Errorf("%q: %w", e.name, ErrReservedName)
	}
	if pair {
		if err := o.markShadows(t, dir); err != nil {
			return err
		}
	}
	if err := o.putEntry(t, dir, e); err != nil {
		return err
	}
	return o.touchDir(t, dir)
}

// putEntry stores e and its long-name index, and records the event.
func (o *op) putEntry(t cluster.Txn, dir Ino, e *dentry) error {
	if maybeHashed(e.name, e.dir) {
		h := nameHash(e.name, e.dir)
		if err := t.Set(longNameKey(dir, h[:]), []byte(e.s3name())); err != nil {
			return err
		}
	}
	o.entryChanged(dir, e.name)
	return putDentry(t, dir, e)
}

// markShadows notes in dir that a pair exists, so that listings look for it.
func (o *op) markShadows(t cluster.Txn, dir Ino) error {
	d, err := getInode(t, dir)
	if err != nil || d.has(flagShadows) {
		return err
	}
	d.set(flagShadows, true)
	return putInode(t, d)
}

// touchDir records a change of dir's entries.
func (o *op) touchDir(t cluster.Txn, dir Ino) error {
	return putDirTime(t, dir, o.nowNS, o.nowNS)
}

// removeEntry removes entry e from dir (dentry, long-name index, directory
// time, event) and then every implied directory that this left empty, from
// dir upwards. The inode is the caller's (see dropLink).
func (o *op) removeEntry(t cluster.Txn, dir Ino, e *dentry) error {
	if err := o.deleteEntry(t, dir, e); err != nil {
		return err
	}
	d, err := getInode(t, dir)
	if err != nil {
		return err
	}
	return o.settle(t, d, e.key(dir))
}

// deleteEntry undoes putEntry.
func (o *op) deleteEntry(t cluster.Txn, dir Ino, e *dentry) error {
	if maybeHashed(e.name, e.dir) {
		h := nameHash(e.name, e.dir)
		if err := t.Delete(longNameKey(dir, h[:])); err != nil {
			return err
		}
	}
	o.entryChanged(dir, e.name)
	return t.Delete(e.key(dir))
}

// keep ends the removal of the dentry at key from d by a POSIX operation: d
// stays, explicit from now on if it was implied and is empty now.
func (o *op) keep(t cluster.Txn, d *inode, key []byte) error {
	if d.ino != RootIno && !d.has(flagExplicit) {
		empty, err := emptyBeside(t, d.ino, key)
		if err != nil {
			return err
		}
		if empty {
			d.set(flagExplicit, true)
			if err := putInode(t, d); err != nil {
				return err
			}
		}
	}
	return o.touchDir(t, d.ino)
}

// settle ends the removal of the dentry at key from d by an object operation:
// it records the time, or removes d and its parents as far as they are implied
// and now empty.
func (o *op) settle(t cluster.Txn, d *inode, key []byte) error {
	levels := pruneLevelsUnlimited
	if o.fs.kv.Limits().Ops > 0 {
		levels = pruneLevels
	}
	for ; ; levels-- {
		if d.ino == RootIno || d.has(flagExplicit) {
			return o.touchDir(t, d.ino)
		}
		empty, err := emptyBeside(t, d.ino, key)
		if err != nil {
			return err
		}
		if !empty {
			return o.touchDir(t, d.ino)
		}
		if levels == 0 {
			o.prune = append(o.prune, d.ino)
			return o.touchDir(t, d.ino)
		}
		e := &dentry{name: d.name, dir: true, ino: d.ino, mode: ModeDirectory}
		parent, err := getInode(t, d.parent)
		if err != nil {
			return fmt.Errorf("%w: directory %d has no parent: %w", ErrCorrupt, e.ino, err)
		}
		if parent.fileFlags()&flagsHeld != 0 { // nothing goes from it
			return o.touchDir(t, d.ino)
		}
		if err := o.dropDir(t, d); err != nil {
			return err
		}
		if err := o.deleteEntry(t, parent.ino, e); err != nil {
			return err
		}
		key, d = e.key(parent.ino), parent
	}
}

// prunes removes dir if it is still implied and empty, and its parents
// likewise.
func (o *op) pruneDir(t cluster.Txn, dir Ino) error {
	b, err := t.Get(inodeKey(dir))
	if err != nil || b == nil {
		return err
	}
	d, err := decodeInode(dir, b)
	if err != nil {
		return err
	}
	return o.settle(t, d, dentryPrefix(dir))
}

// pruneRest removes empty implied directories in transactions of their own.
// What fails stays an empty directory, which Check finds.
func (fs *FS) pruneRest(ctx context.Context, dirs []Ino) {
	for _, dir := range dirs {
		err := fs.update(ctx, func(t cluster.Txn, o *op) error { return o.pruneDir(t, dir) })
		if err != nil {
			fs.log.Warn("empty implied directory not removed", "inode", uint64(dir), "error", err)
		}
	}
}

// emptyBeside tells whether dir is empty, looking first behind key, then
// before it, so that it steps over at most the tombstones around one place.
func emptyBeside(r cluster.Reader, dir Ino, key []byte) (bool, error) {
	prefix := dentryPrefix(dir)
	empty := true
	seen := func(_, _ []byte) error { empty = false; return nil }
	o := cluster.ScanOptions{Limit: 1, KeysOnly: true}
	if err := r.Scan(key, cluster.PrefixEnd(prefix), o, seen); err != nil || !empty {
		return empty, err
	}
	o.Reverse = true
	err := r.Scan(prefix, key, o, seen)
	return empty, err
}

// isEmpty tells whether dir has no entries.
func isEmpty(r cluster.Reader, dir Ino) (bool, error) {
	return emptyBeside(r, dir, dentryPrefix(dir))
}

// dropDir removes the inode of an empty directory and what hangs on it, or
// makes it an orphan if it is in use; the entry is the caller's.
func (o *op) dropDir(t cluster.Txn, d *inode) error {
	if err := t.Delete(bucketKey(d.ino)); err != nil { // it may be, or have been, a bucket
		return err
	}
	if d.has(flagUploads) {
		uploads, err := anyKey(t, uploadPrefix(d.ino))
		if err != nil {
			return err
		}
		if uploads {
			o.buckets = append(o.buckets, d.ino)
		}
	}
	return o.dropLast(t, d)
}

// dropLast removes the inode n, whose last link is gone, or makes it an orphan
// if it is in use.
func (o *op) dropLast(t cluster.Txn, n *inode) error {
	if !o.beginUnlink(n.ino) {
		o.inodeChanged(n.ino, true)
		return o.deleteInode(t, n)
	}
	o.inodeChanged(n.ino, false)
	n.nlink, n.ctimeNS = 0, o.nowNS
	if err := o.makeOrphan(t, n); err != nil {
		return err
	}
	return putInode(t, n)
}

// dropLink takes one link, dir/name, off inode n: at the last one the inode,
// its attributes and its content go, or it becomes an orphan if it is in use.
// It stores n if it stays.
func (o *op) dropLink(t cluster.Txn, n *inode, dir Ino, name string) error {
	if n.has(flagLinks) {
		if err := t.Delete(linkKey(n.ino, dir, name)); err != nil {
			return err
		}
	}
	if n.nlink > 1 {
		o.inodeChanged(n.ino, false)
		n.nlink--
		n.ctimeNS = o.nowNS
		if n.parent == dir && n.name == name {
			if err := pickLink(t, n); err != nil {
				return err
			}
		}
		return putInode(t, n)
	}
	return o.dropLast(t, n)
}

// pickLink sets parent and name of n to one of its remaining links.
func pickLink(r cluster.Reader, n *inode) error {
	prefix := linkPrefix(n.ino)
	o := cluster.ScanOptions{Limit: 1, KeysOnly: true}
	return r.Scan(prefix, cluster.PrefixEnd(prefix), o, func(k, _ []byte) error {
		parent, name, err := parseLinkKey(k)
		n.parent, n.name = parent, name
		return err
	})
}

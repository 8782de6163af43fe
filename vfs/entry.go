package vfs

import (
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
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
func (o *op) newID() (uint64, error) { return o.fs.ids.Take(o.ctx) }

// newInode returns an inode with the number id, times of now, owner from
// cred, one link, version 1, and a mode that nobody chose. It is
// not stored yet; the caller sets parent and name.
func (o *op) newInode(id uint64, mode uint32, cred *Cred) *record.Inode {
	return &record.Inode{
		Ino: Ino(id), Gen: 1, Mode: mode, Nlink: 1, UID: cred.UID(), GID: cred.GID(), Version: 1, Flags: record.FlagUnchosen,
		Atime: TimeNS(o.nowNS), Mtime: TimeNS(o.nowNS), CtimeNS: o.nowNS, BtimeNS: o.nowNS,
	}
}

// makeParents returns the directory that comps (stored names) lead to below
// root, making implied directories (owned by cred) for what is missing. What
// it read makes the transaction conflict with the removal of any of them;
// root is the caller's to guard.
func (o *op) makeParents(t cluster.Txn, root Ino, comps []string, cred *Cred) (Ino, error) {
	dir := root
	for i, name := range comps {
		e, err := record.GetDentry(t, dir, name, true)
		if err != nil {
			return 0, err
		}
		if e == nil {
			return o.makeImplied(t, dir, comps[i:], cred)
		}
		dir = e.Ino
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
		n.Parent, n.Name = dir, name
		if err := record.PutInode(t, n); err != nil {
			return 0, err
		}
		e := record.EntryOf(n)
		if i == 0 {
			err = o.addEntry(t, dir, e)
		} else {
			err = o.putEntry(t, dir, e) // in a directory that is new: no pair, no times
		}
		if err != nil {
			return 0, err
		}
		dir = n.Ino
	}
	return dir, nil
}

// addEntry makes entry e in dir: dentry, long-name index, directory time,
// record.FlagShadows if it makes a pair, event. The inode is the caller's, and so
// is reading something that guards the existence of dir.
func (o *op) addEntry(t cluster.Txn, dir Ino, e *record.Dentry) error {
	other := record.Dentry{Name: e.Name, Dir: !e.Dir}
	v, err := t.Get(other.Key(dir))
	if err != nil {
		return err
	}
	return o.addEntryBeside(t, dir, e, v != nil)
}

// addEntryBeside is addEntry for callers that know whether the other entry
// of the same stored name exists.
func (o *op) addEntryBeside(t cluster.Txn, dir Ino, e *record.Dentry, pair bool) error {
	if dir == RootIno && e.Dir && naming.Reserved(e.Name, o.fs.cfg.Reserved) {
		return fmt.Errorf("%q: %w", e.Name, ErrReservedName)
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
func (o *op) putEntry(t cluster.Txn, dir Ino, e *record.Dentry) error {
	if naming.MaybeHashed(e.Name, e.Dir) {
		h := naming.Hash(e.Name, e.Dir)
		if err := t.Set(record.LongNameKey(dir, h[:]), []byte(e.S3Name())); err != nil {
			return err
		}
	}
	o.feed.EntryChanged(dir, e.Name)
	return record.PutDentry(t, dir, e)
}

// markShadows notes in dir that a pair exists, so that listings look for it.
func (o *op) markShadows(t cluster.Txn, dir Ino) error {
	d, err := record.GetInode(t, dir)
	if err != nil || d.Has(record.FlagShadows) {
		return err
	}
	d.Set(record.FlagShadows, true)
	return record.PutInode(t, d)
}

// touchDir records a change of dir's entries.
func (o *op) touchDir(t cluster.Txn, dir Ino) error {
	return record.PutDirTime(t, dir, o.nowNS, o.nowNS)
}

// removeEntry removes entry e from dir (dentry, long-name index, directory
// time, event) and then every implied directory that this left empty, from
// dir upwards. The inode is the caller's (see dropLink).
func (o *op) removeEntry(t cluster.Txn, dir Ino, e *record.Dentry) error {
	if err := o.deleteEntry(t, dir, e); err != nil {
		return err
	}
	d, err := record.GetInode(t, dir)
	if err != nil {
		return err
	}
	return o.prune(t, d, e.Key(dir))
}

// deleteEntry undoes putEntry.
func (o *op) deleteEntry(t cluster.Txn, dir Ino, e *record.Dentry) error {
	if naming.MaybeHashed(e.Name, e.Dir) {
		h := naming.Hash(e.Name, e.Dir)
		if err := t.Delete(record.LongNameKey(dir, h[:])); err != nil {
			return err
		}
	}
	o.feed.EntryChanged(dir, e.Name)
	return t.Delete(e.Key(dir))
}

// keep ends the removal of the dentry at key from d, where d stays: by a POSIX
// operation, or of a bucket. It is explicit from now on if it was implied and is
// empty now.
func (o *op) keep(t cluster.Txn, d *record.Inode, key []byte) error {
	if d.Ino != RootIno && !d.Has(record.FlagExplicit) {
		empty, err := emptyBeside(t, d.Ino, key)
		if err != nil {
			return err
		}
		if empty {
			d.Set(record.FlagExplicit, true)
			if err := record.PutInode(t, d); err != nil {
				return err
			}
		}
	}
	return o.touchDir(t, d.Ino)
}

// prune ends the removal of the dentry at key from d by an object operation:
// it records the time, or removes d and its parents as far as they are implied
// and now empty. A bucket stays: who empties one writes into it again.
func (o *op) prune(t cluster.Txn, d *record.Inode, key []byte) error {
	levels := pruneLevelsUnlimited
	if o.fs.kv.Limits().Ops > 0 {
		levels = pruneLevels
	}
	for ; ; levels-- {
		if d.Ino == RootIno || d.Has(record.FlagExplicit) {
			return o.touchDir(t, d.Ino)
		}
		if d.Parent == RootIno && naming.ValidBucket(d.Name) {
			return o.keep(t, d, key)
		}
		empty, err := emptyBeside(t, d.Ino, key)
		if err != nil {
			return err
		}
		if !empty {
			return o.touchDir(t, d.Ino)
		}
		if levels == 0 {
			o.later.then(func(ctx context.Context) { o.fs.pruneRest(ctx, d.Ino) })
			return o.touchDir(t, d.Ino)
		}
		e := &record.Dentry{Name: d.Name, Dir: true, Ino: d.Ino, Mode: ModeDirectory}
		parent, err := record.GetInode(t, d.Parent)
		if err != nil {
			return fmt.Errorf("%w: directory %d has no parent: %w", ErrCorrupt, e.Ino, err)
		}
		if perm.FlagsOf(parent)&perm.HeldFlags != 0 { // nothing goes from it
			return o.touchDir(t, d.Ino)
		}
		if err := o.dropDir(t, d); err != nil {
			return err
		}
		if err := o.deleteEntry(t, parent.Ino, e); err != nil {
			return err
		}
		key, d = e.Key(parent.Ino), parent
	}
}

// pruneDir removes dir if it is still implied and empty, and its parents
// likewise.
func (o *op) pruneDir(t cluster.Txn, dir Ino) error {
	b, err := t.Get(record.InodeKey(dir))
	if err != nil || b == nil {
		return err
	}
	d, err := record.DecodeInode(dir, b)
	if err != nil {
		return err
	}
	return o.prune(t, d, record.DentryPrefix(dir))
}

// pruneRest removes an empty implied directory, and its parents likewise, in
// transactions of their own. What fails stays an empty directory, which Check
// finds.
func (fs *FS) pruneRest(ctx context.Context, dir Ino) {
	err := fs.update(ctx, func(t cluster.Txn, o *op) error { return o.pruneDir(t, dir) })
	if err != nil {
		fs.log.Warn("empty implied directory not removed", "inode", uint64(dir), "error", err)
	}
}

// emptyBeside reports whether dir is empty, looking first behind key, then
// before it, so that it steps over at most the tombstones around one place.
func emptyBeside(r cluster.Reader, dir Ino, key []byte) (bool, error) {
	prefix := record.DentryPrefix(dir)
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

// isEmpty reports whether dir has no entries.
func isEmpty(r cluster.Reader, dir Ino) (bool, error) {
	return emptyBeside(r, dir, record.DentryPrefix(dir))
}

// dropDir removes the inode of an empty directory and what hangs on it, or
// makes it an orphan if it is in use; the entry is the caller's.
func (o *op) dropDir(t cluster.Txn, d *record.Inode) error {
	if err := t.Delete(record.BucketKey(d.Ino)); err != nil { // it may be, or have been, a bucket
		return err
	}
	if d.Has(record.FlagPolicy) {
		if err := t.Delete(record.PolicyKey(d.Ino)); err != nil {
			return err
		}
	}
	if d.Has(record.FlagUploads) {
		uploads, err := record.AnyKey(t, record.UploadPrefix(d.Ino))
		if err != nil {
			return err
		}
		if uploads {
			o.later.then(func(ctx context.Context) { o.fs.multipart.AbortAll(ctx, d.Ino) })
		}
	}
	return o.dropLast(t, d)
}

// dropLast removes the inode n, whose last link is gone, or makes it an orphan
// if it is in use, or may be in another process.
func (o *op) dropLast(t cluster.Txn, n *record.Inode) error {
	if used := o.removals.Begin(n.Ino); !used && o.fs.session.Alone() {
		o.feed.InodeChanged(n.Ino, true)
		return o.deleteInode(t, n)
	}
	o.feed.InodeChanged(n.Ino, n.IsDir()) // it lists nothing any more
	n.Nlink, n.CtimeNS = 0, o.nowNS
	if err := o.makeOrphan(t, n); err != nil {
		return err
	}
	return record.PutInode(t, n)
}

// dropLink takes one link, dir/name, off inode n: at the last one the inode,
// its attributes and its content go, or it becomes an orphan if it is in use.
// It stores n if it stays.
func (o *op) dropLink(t cluster.Txn, n *record.Inode, dir Ino, name string) error {
	if n.Has(record.FlagLinks) {
		if err := t.Delete(record.LinkKey(n.Ino, dir, name)); err != nil {
			return err
		}
	}
	if n.Nlink > 1 {
		o.feed.FileMoved(n.Ino)
		n.Nlink--
		n.CtimeNS = o.nowNS
		if n.Parent == dir && n.Name == name {
			if err := pickLink(t, n); err != nil {
				return err
			}
		}
		return record.PutInode(t, n)
	}
	return o.dropLast(t, n)
}

// pickLink sets parent and name of n to one of its remaining links.
func pickLink(r cluster.Reader, n *record.Inode) error {
	prefix := record.LinkPrefix(n.Ino)
	o := cluster.ScanOptions{Limit: 1, KeysOnly: true}
	return r.Scan(prefix, cluster.PrefixEnd(prefix), o, func(k, _ []byte) error {
		parent, name, err := record.ParseLinkKey(k)
		n.Parent, n.Name = parent, name
		return err
	})
}

package vfs

import (
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// EntryName names an entry of a directory, as the POSIX doors show it.
type EntryName struct {
	Dir  Ino
	Name string
}

// Rename moves an entry, directories with all below, in one transaction: it
// costs the same whatever they hold. A replaced file is unlinked, a replaced
// directory must be empty. Two links of one file are left as they are. What was written
// to a file that takes the place of another one is stored before: the end of the process
// leaves the old bytes or the new ones under the name.
//
// ErrNotExist, ErrExist (RenameNoReplace), ErrIsDir, ErrNotDir, ErrNotEmpty,
// ErrInvalid (a directory into itself, bad flags or names), ErrAccess,
// ErrPerm (sticky directory).
func (fs *FS) Rename(ctx context.Context, cred *Cred, from, to EntryName, flags RenameFlags) error {
	const all = RenameNoReplace | RenameExchange | RenameWhiteout
	if flags&^all != 0 || flags&RenameExchange != 0 && flags != RenameExchange {
		return fmt.Errorf("%w: rename flags %#x", ErrInvalid, uint32(flags))
	}
	for _, s := range [...]string{from.Name, to.Name} {
		if s == "." || s == ".." {
			return ErrInvalid
		}
	}
	source, err := naming.ParsePosix(from.Name)
	if err != nil {
		return lookupErr(err)
	}
	target, err := naming.ParsePosix(to.Name)
	if err != nil {
		return err
	}
	return fs.updateFlushed(ctx, func(t cluster.Txn, o *op, f *flushing) error {
		r := &renaming{o: o, t: t, cred: cred, flags: flags}
		if err := r.find(from.Dir, source, to.Dir, target); err != nil {
			return err
		}
		return r.run(f)
	})
}

// run does what was asked for, if it may be done. What takes the place of another file is
// flushed before.
func (r *renaming) run(f *flushing) error {
	if r.same {
		return nil
	}
	if err := r.check(); err != nil {
		return err
	}
	if r.to.n != nil && f.lacks(r.from.n) || r.flags&RenameExchange != 0 && f.lacks(r.to.n) {
		return errUnflushed
	}
	if r.flags&RenameExchange != 0 {
		return r.exchange()
	}
	return r.move()
}

// renaming is one run of the transaction of Rename.
type renaming struct {
	o     *op
	t     cluster.Txn
	cred  *Cred
	flags RenameFlags

	from, to place
	same     bool // nothing to do
}

// place is one of the two names.
type place struct {
	dir *record.Inode
	found
	n *record.Inode // of the entry; nil if there is none
}

// find reads both places.
func (r *renaming) find(from Ino, source naming.Posix, to Ino, target naming.Posix) (err error) {
	if err := r.from.find(r, from, source, nil); err != nil {
		return err
	}
	if err := r.to.find(r, to, target, r.from.e); err != nil {
		return err
	}
	switch {
	case r.from.e == nil:
		return ErrNotExist
	case r.flags&RenameNoReplace != 0 && r.to.e != nil:
		return ErrExist
	case r.flags&RenameExchange != 0 && r.to.e == nil:
		return ErrNotExist
	case r.to.e != nil && r.to.e.Ino == r.from.e.Ino,
		// A directory and the file that it shadows have one name already.
		r.flags&RenameExchange != 0 && from == to && r.from.name.Stored == r.to.name.Stored:
		r.same = true
		return nil
	}
	if r.from.n, err = getTarget(r.t, r.from.e); err != nil {
		return err
	}
	if r.to.e != nil {
		r.to.n, err = getTarget(r.t, r.to.e)
	}
	return err
}

func (p *place) find(r *renaming, dir Ino, name naming.Posix, as *record.Dentry) (err error) {
	if p.dir, p.found, err = findFor(r.t, dir, name, as); err != nil {
		return err
	}
	return perm.Check(r.t, r.cred, p.dir, AccessExec)
}

// check decides whether the rename is allowed.
func (r *renaming) check() error {
	if err := r.checkAncestors(); err != nil {
		return err
	}
	if err := perm.CheckRemove(r.t, r.cred, r.from.dir, r.from.n); err != nil {
		return err
	}
	if r.to.n != nil {
		if err := perm.CheckRemove(r.t, r.cred, r.to.dir, r.to.n); err != nil {
			return err
		}
	} else if err := perm.Check(r.t, r.cred, r.to.dir, AccessWrite|AccessExec); err != nil {
		return err
	}
	if r.from.dir.Ino != r.to.dir.Ino {
		// A directory that moves has its ".." written.
		for _, n := range [...]*record.Inode{r.from.n, r.to.n} {
			if n == nil || !n.IsDir() || n == r.to.n && r.flags&RenameExchange == 0 {
				continue
			}
			if err := perm.Check(r.t, r.cred, n, AccessWrite); err != nil {
				return err
			}
		}
	}
	if r.flags&RenameExchange != 0 {
		return r.checkExchange()
	}
	return r.checkKinds()
}

// checkAncestors refuses to move a directory below itself. The inodes that it
// reads are those that a concurrent rename of an ancestor writes.
func (r *renaming) checkAncestors() error {
	if r.from.dir.Ino == r.to.dir.Ino {
		return nil
	}
	if r.from.n.IsDir() {
		if err := notBelow(r.t, r.to.dir, r.from.n.Ino); err != nil {
			return err
		}
	}
	if r.flags&RenameExchange != 0 && r.to.n.IsDir() {
		return notBelow(r.t, r.from.dir, r.to.n.Ino)
	}
	return nil
}

// notBelow returns ErrInvalid if dir is top or below it.
func notBelow(r cluster.Reader, dir *record.Inode, top Ino) (err error) {
	var way record.LoopDetector
	for dir.Ino != RootIno {
		if dir.Ino == top {
			return ErrInvalid
		}
		if err := way.Visit(dir.Ino); err != nil {
			return err
		}
		up := dir.Parent
		if dir, err = keypath.GetDir(r, up); err != nil {
			return fmt.Errorf("%w: directory %d: %w", ErrCorrupt, up, err)
		}
	}
	return nil
}

// checkKinds checks that the source can take the place of the target.
func (r *renaming) checkKinds() error {
	dir := r.from.n.IsDir()
	switch n := r.to.n; {
	case n == nil && r.to.name.IsUnknown():
		return fmt.Errorf("%w: the new name is a hash that stands for nothing", ErrInvalid)
	case n == nil && (dir && r.to.name.File || !dir && r.to.name.Stored == ""):
		return fmt.Errorf("%w: no such kind of file can have the new name", ErrInvalid)
	case n == nil:
		return nil
	case dir && !n.IsDir():
		return ErrNotDir
	case !dir && n.IsDir():
		return ErrIsDir
	case !dir:
		return nil
	}
	empty, err := isEmpty(r.t, r.to.n.Ino)
	if err == nil && !empty {
		err = ErrNotEmpty
	}
	return err
}

// checkExchange checks that each can take the other's name: a shadowed file
// and its directory leave no room for another of either kind.
func (r *renaming) checkExchange() error {
	for _, x := range [...]struct {
		p *place
		n *record.Inode
	}{{&r.from, r.to.n}, {&r.to, r.from.n}} {
		kind := x.p.file
		if x.n.IsDir() {
			kind = x.p.found.dir
		}
		if kind != nil && kind != x.p.e {
			return ErrExist
		}
		if x.p.name.Stored == "" && !x.n.IsDir() {
			return ErrInvalid
		}
	}
	return nil
}

// move is a rename without exchange.
func (r *renaming) move() error {
	o, t := r.o, r.t
	if err := o.deleteEntry(t, r.from.dir.Ino, r.from.e); err != nil {
		return err
	}
	if n := r.to.n; n != nil {
		// The new dentry overwrites the old one, which is of the same kind.
		drop := o.dropDir
		if !n.IsDir() {
			drop = func(t cluster.Txn, n *record.Inode) error { return o.dropLink(t, n, r.to.dir.Ino, r.to.name.Stored) }
		}
		if err := drop(t, n); err != nil {
			return err
		}
	}
	if err := r.put(&r.to, r.from.n, &r.from); err != nil {
		return err
	}
	if r.flags&RenameWhiteout != 0 {
		return r.whiteOut()
	}
	if r.from.dir.Ino == r.to.dir.Ino {
		return nil
	}
	return o.keep(t, r.from.dir, r.from.e.Key(r.from.dir.Ino))
}

// whiteOut makes a device 0/0 under the old name, by which the upper layer of
// an overlay says that the lower one's entry is gone. Anyone may make that.
func (r *renaming) whiteOut() error {
	f := r.from.found
	switch {
	case f.e == f.dir && f.file != nil:
		return fmt.Errorf("%w: the name has a shadowed file", ErrExist)
	case f.e == f.dir:
		f.dir = nil
	default:
		f.file = nil
	}
	f.e = nil
	_, err := r.o.makeNode(r.t, r.cred, r.from.dir, &f, newNode{mode: ModeChar})
	return err
}

// exchange makes each entry the other's.
func (r *renaming) exchange() error {
	for _, p := range [...]*place{&r.from, &r.to} {
		if err := r.o.deleteEntry(r.t, p.dir.Ino, p.e); err != nil {
			return err
		}
	}
	if err := r.put(&r.to, r.from.n, &r.from); err != nil {
		return err
	}
	return r.put(&r.from, r.to.n, &r.to)
}

// put makes the entry of n at place p; it was at old.
func (r *renaming) put(p *place, n *record.Inode, old *place) error {
	if n.Has(record.FlagLinks) {
		if err := r.t.Delete(record.LinkKey(n.Ino, old.dir.Ino, old.e.Name)); err != nil {
			return err
		}
		if err := r.t.Set(record.LinkKey(n.Ino, p.dir.Ino, p.name.Stored), []byte{}); err != nil {
			return err
		}
	}
	switch {
	case n.IsDir():
		r.o.feed.DirMoved(n.Ino)
	case p.dir.Ino != old.dir.Ino:
		r.o.feed.FileMoved(n.Ino)
	default:
		r.o.feed.InodeChanged(n.Ino, false)
	}
	n.Parent, n.Name, n.CtimeNS = p.dir.Ino, p.name.Stored, r.o.nowNS
	if err := record.PutInode(r.t, n); err != nil {
		return err
	}
	e := record.EntryOf(n)
	pair := p.file
	if !e.Dir {
		pair = p.found.dir
	}
	return r.o.addEntryBeside(r.t, p.dir.Ino, e, pair != nil && pair != p.e)
}

package vfs

import "ogw/cluster"

// A mode that somebody chose denies at the object doors too (rights.go): that
// of an inode made through a POSIX door, or that chmod or setfacl set there.
// The mode that an object operation gave to what it made was chosen by nobody.
//
// Two flags of the inode say which. Records older than format 2 have neither:
// there a mode counts as chosen if it denies more than the configured default
// does, or if there is a POSIX ACL.

// choose notes that somebody chose n's mode; see entryTold.
func (n *inode) choose() {
	n.set(flagChosen, true)
	n.set(flagUnchosen, false)
}

// unchoose is the opposite.
func (n *inode) unchoose() {
	n.set(flagChosen, false)
	n.set(flagUnchosen, true)
}

// chosen reports whether somebody chose n's mode.
func (fs *FS) chosen(n *inode) bool {
	switch {
	case n.has(flagChosen):
		return true
	case n.has(flagUnchosen):
		return false
	}
	usual := fs.cfg.FileMode
	if n.isDir() {
		usual = fs.cfg.DirMode
	}
	return usual&^n.mode&0o777 != 0 || n.has(flagACL)
}

// entryTells is what the entry of n tells of its mode and flags.
func (n *inode) entryTells() tells {
	if n.isDir() && n.fileFlags()&flagsHeld != 0 {
		return n.modeTells() | tellsFlags
	}
	return n.modeTells()
}

func (n *inode) modeTells() tells {
	const passable = 0o555 // read and execute, for each class
	switch {
	case !n.isDir():
		return 0
	case n.has(flagUnchosen):
		return tellsOpen | tellsUnchosen
	case n.has(flagChosen) && n.mode&passable == passable && !n.has(flagACL):
		return tellsOpen
	}
	return 0
}

// entryOf is the entry of n under its name.
func entryOf(n *inode) *dentry {
	return &dentry{name: n.name, dir: n.isDir(), ino: n.ino, mode: n.mode & ModeTypeMask, tells: n.entryTells()}
}

// tellEntry brings the entry of a directory in line with its mode, after each
// change of that.
func tellEntry(t cluster.Txn, n *inode) error {
	if !n.isDir() || n.ino == RootIno {
		return nil
	}
	e, err := getDentry(t, n.parent, n.name, true)
	if err != nil || e == nil || e.ino != n.ino || e.tells == n.entryTells() {
		return err
	}
	return putDentry(t, n.parent, entryOf(n))
}

// makeExplicit keeps a directory that S3 implied: with it would go the mode that
// somebody chose, and what comes next at its name would be open.
func (n *inode) makeExplicit() {
	if n.isDir() {
		n.set(flagExplicit, true)
	}
}

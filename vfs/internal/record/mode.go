package record

// A mode that somebody chose denies at the object doors too: that
// of an inode made through a POSIX door, or that chmod or setfacl set there.
// The mode that an object operation gave to what it made was chosen by nobody.
//
// Two flags of the inode say which. Records older than format 2 have neither:
// there a mode counts as chosen if it denies more than the configured default
// does, or if there is a POSIX ACL.

// Choose notes that somebody chose n's mode; see entryTold.
func (n *Inode) Choose() {
	n.Set(FlagChosen, true)
	n.Set(FlagUnchosen, false)
}

// Unchoose is the opposite.
func (n *Inode) Unchoose() {
	n.Set(FlagChosen, false)
	n.Set(FlagUnchosen, true)
}

// DirBits is what the entry of n repeats of its mode, flags and policy.
func (n *Inode) DirBits() DirBits {
	t := n.modeBits()
	if n.IsDir() && n.FileFlags()&fileFlagsHeld != 0 {
		t |= DirFlags
	}
	if n.IsDir() && n.Has(FlagPolicy|FlagOwnership) {
		t |= DirPolicy
	}
	return t
}

func (n *Inode) modeBits() DirBits {
	const passable = 0o555 // read and execute, for each class
	switch {
	case !n.IsDir():
		return 0
	case n.Has(FlagUnchosen):
		return DirOpen | DirUnchosen
	case n.Has(FlagChosen) && n.Mode&passable == passable && !n.Has(FlagACL):
		return DirOpen
	}
	return 0
}

// EntryOf is the entry of n under its name.
func EntryOf(n *Inode) *Dentry {
	return &Dentry{Name: n.Name, Dir: n.IsDir(), Ino: n.Ino, Mode: n.Mode & ModeTypeMask, DirBits: n.DirBits()}
}

// MakeExplicit keeps a directory that S3 implied: with it would go the mode that
// somebody chose, and what comes next at its name would be open.
func (n *Inode) MakeExplicit() {
	if n.IsDir() {
		n.Set(FlagExplicit, true)
	}
}

package vfs

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// Unlink removes an entry that is not a directory. ErrIsDir, ErrNotExist,
// ErrAccess, ErrPerm (sticky directory).
func (fs *FS) Unlink(ctx context.Context, cred *Cred, dir Ino, name string) error {
	if name == "." || name == ".." {
		return ErrIsDir
	}
	p, err := naming.ParsePosix(name)
	if err != nil {
		return lookupErr(err)
	}
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		d, n, e, err := findToRemove(t, cred, dir, p)
		if err != nil {
			return err
		}
		if e.Dir {
			return ErrIsDir
		}
		if err := o.deleteEntry(t, dir, e); err != nil {
			return err
		}
		if err := o.dropLink(t, n, dir, e.Name); err != nil {
			return err
		}
		return o.keep(t, d, e.Key(dir))
	})
}

// Rmdir removes an empty directory. ErrNotEmpty, ErrNotDir, ErrNotExist,
// ErrAccess, ErrPerm (sticky directory), ErrInvalid for ".".
func (fs *FS) Rmdir(ctx context.Context, cred *Cred, dir Ino, name string) error {
	switch name {
	case ".":
		return ErrInvalid
	case "..":
		return ErrNotEmpty
	}
	p, err := naming.ParsePosix(name)
	if err != nil {
		return lookupErr(err)
	}
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		d, n, e, err := findToRemove(t, cred, dir, p)
		if err != nil {
			return err
		}
		if !e.Dir {
			return ErrNotDir
		}
		empty, err := isEmpty(t, n.Ino)
		if err != nil {
			return err
		}
		if !empty {
			return ErrNotEmpty
		}
		if err := o.dropDir(t, n); err != nil {
			return err
		}
		if err := o.deleteEntry(t, dir, e); err != nil {
			return err
		}
		return o.keep(t, d, e.Key(dir))
	})
}

// findToRemove reads dir and the entry that p stands for, and checks that
// cred may remove it.
func findToRemove(t cluster.Txn, cred *Cred, dir Ino, p naming.Posix) (d, n *record.Inode, e *record.Dentry, err error) {
	d, f, err := findIn(t, dir, p)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := perm.Check(t, cred, d, AccessExec); err != nil {
		return nil, nil, nil, err
	}
	if f.e == nil {
		return nil, nil, nil, ErrNotExist
	}
	if n, err = getTarget(t, f.e); err != nil {
		return nil, nil, nil, err
	}
	return d, n, f.e, perm.CheckRemove(t, cred, d, n)
}

// Link makes a hard link to anything but a directory. ErrPerm for a
// directory, ErrTooManyLinks, ErrExist, ErrAccess. A file without a name
// (OpenTemp) gets its first one; ErrNotExist for what has lost its last one, and is
// still in use.
func (fs *FS) Link(ctx context.Context, cred *Cred, ino, dir Ino, name string) (a Attr, err error) {
	p, err := parseNewName(name)
	if err != nil {
		return Attr{}, err
	}
	err = fs.update(ctx, func(t cluster.Txn, o *op) error {
		n, err := record.GetInode(t, ino)
		if err != nil {
			return err
		}
		d, f, err := findFor(t, dir, p, record.EntryOf(n))
		if err != nil {
			return err
		}
		if err := perm.Check(t, cred, d, AccessExec); err != nil {
			return err
		}
		if err := checkNewFile(&f); err != nil {
			return err
		}
		if err := perm.Check(t, cred, d, AccessWrite|AccessExec); err != nil {
			return err
		}
		if n.IsDir() {
			return ErrPerm
		}
		if err := checkLink(t, cred, n); err != nil {
			return err
		}
		if err := o.addLink(t, n, d, &f); err != nil {
			return err
		}
		a, err = fs.attrWith(n, nil)
		return err
	})
	return a, err
}

// checkLink refuses another's file to who could not write it: whose directory
// its new name is in has rights to it at the object doors. It is the rule of
// Linux's fs.protected_hardlinks, which no client of NFS applies for us.
func checkLink(r cluster.Reader, cred *Cred, n *record.Inode) error {
	if err := perm.FlagsOf(n).CheckFree(); err != nil {
		return err
	}
	if cred.Owns(n) {
		return nil
	}
	const elevated = ModeSetGID | 0o010
	if !n.IsRegular() || n.Mode&ModeSetUID != 0 || n.Mode&elevated == elevated {
		return ErrPerm
	}
	if perm.Check(r, cred, n, AccessRead|AccessWrite) != nil {
		return ErrPerm
	}
	return nil
}

// checkNewFile checks that an entry other than a directory can be made where
// f found none.
func checkNewFile(f *found) error {
	switch {
	case f.e != nil:
		return ErrExist
	case f.name.Stored == "":
		return ErrInvalid
	}
	return nil
}

// addLink makes the entry that f names in d for n, and stores n.
func (o *op) addLink(t cluster.Txn, n, d *record.Inode, f *found) error {
	switch {
	case n.Nlink >= MaxLinks:
		return ErrTooManyLinks
	case n.Nlink == 0:
		b, err := t.Get(record.OrphanKey(n.Ino))
		if err != nil {
			return err
		}
		if b == nil || n.Name != "" { // it had one
			return ErrNotExist
		}
		if err := o.endOrphan(t, n); err != nil {
			return err
		}
	case !n.Has(record.FlagLinks):
		if err := t.Set(record.LinkKey(n.Ino, n.Parent, n.Name), []byte{}); err != nil {
			return err
		}
		n.Set(record.FlagLinks, true)
	}
	n.Nlink++
	n.Parent, n.Name, n.CtimeNS = d.Ino, f.name.Stored, o.nowNS
	if n.Has(record.FlagLinks) {
		if err := t.Set(record.LinkKey(n.Ino, n.Parent, n.Name), []byte{}); err != nil {
			return err
		}
	}
	if err := record.PutInode(t, n); err != nil {
		return err
	}
	o.feed.InodeChanged(n.Ino, false)
	return o.addEntryBeside(t, d.Ino, record.EntryOf(n), f.dir != nil)
}

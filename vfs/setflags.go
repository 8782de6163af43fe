package vfs

import (
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// SetFlags replaces the FileFlags of a file or a directory. A flag that forbids
// something is the superuser's to set and to clear, the others are the owner's.
// ErrPerm, ErrNotSupported for other flags and other kinds of files.
func (fs *FS) SetFlags(ctx context.Context, cred *Cred, ino Ino, flags FileFlags) error {
	if flags&^perm.AllFlags != 0 {
		return fmt.Errorf("%w: file flags %#x", ErrNotSupported, uint32(flags&^perm.AllFlags))
	}
	// What was written before must not be held back.
	if err := fs.flushInode(ctx, ino); err != nil {
		return err
	}
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		n, err := record.GetInode(t, ino)
		if err != nil {
			return err
		}
		if err := checkSetFlags(cred, n, flags); err != nil {
			return err
		}
		n.SetFileFlags(uint32(flags))
		if flags != 0 {
			n.MakeExplicit()
		}
		if err := record.RefreshEntry(t, n); err != nil {
			return err
		}
		return o.putChanged(t, n)
	})
}

func checkSetFlags(cred *Cred, n *record.Inode, flags FileFlags) error {
	old := perm.FlagsOf(n)
	switch {
	case !n.IsRegular() && !n.IsDir():
		return fmt.Errorf("%w: file flags of a special file", ErrNotSupported)
	case !cred.Owns(n), (old^flags)&perm.HeldFlags != 0 && !cred.Rooted():
		return ErrPerm
	case old&flags&FlagImmutable != 0 && old != flags: // as ext4
		return perm.ErrHeld
	}
	return nil
}

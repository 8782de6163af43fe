package vfs

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// found is what a POSIX name stands for in a directory.
type found struct {
	name naming.Posix
	dir  *record.Dentry // the directory of that stored name
	file *record.Dentry // the other entry of that stored name
	e    *record.Dentry // the one of them that is meant; nil: no such entry
}

// findIn reads directory dir and what p stands for in it, in one round trip.
// ErrStale, ErrNotDir, ErrNotExist for a directory that was removed.
func findIn(r cluster.Reader, dir Ino, p naming.Posix) (*record.Inode, found, error) {
	return findFor(r, dir, p, nil)
}

// findFor is findIn for a name that is to be given to what has the entry as, if that is not
// nil: a hash stands for the entry's name also where dir knows none.
func findFor(r cluster.Reader, dir Ino, p naming.Posix, as *record.Dentry) (*record.Inode, found, error) {
	f := found{name: p}
	var hashedDir bool
	if p.Hash != nil {
		b, err := r.Get(record.LongNameKey(dir, p.Hash))
		if err != nil {
			return nil, f, err
		}
		var e record.Dentry
		switch {
		case b != nil:
			if e, err = record.DecodeLongName(b); err != nil {
				return nil, f, err
			}
		case as != nil && p.IsHashOf(as.Name, as.Dir):
			e = *as
		default:
			d, err := keypath.GetDir(r, dir)
			return d, f, err
		}
		f.name.Stored, hashedDir = e.Name, e.Dir
		f.name.File = !e.Dir
	}
	stored := f.name.Stored
	vs, err := r.GetMany([][]byte{record.InodeKey(dir), record.FileEntryKey(dir, stored), record.DirEntryKey(dir, stored)})
	if err != nil {
		return nil, f, err
	}
	if vs[0] == nil {
		return nil, f, ErrStale
	}
	d, err := record.DecodeInode(dir, vs[0])
	if err == nil {
		err = keypath.CheckDir(d)
	}
	if err != nil {
		return nil, f, err
	}
	if err := f.decode(vs[1], vs[2]); err != nil {
		return nil, f, err
	}
	f.choose(hashedDir)
	return d, f, nil
}

// choose sets the entry that the name stands for.
func (f *found) choose(hashedDir bool) {
	if standsForDir(f.name, f.dir != nil || hashedDir) {
		f.e = f.dir
	} else {
		f.e = f.file
	}
}

// standsForDir reports whether a name stands for the directory of its stored name, if
// there is one. The form of a shadowed file stands for the file also when the
// directory is gone: `rm -r` may have removed it a moment ago.
func standsForDir(p naming.Posix, dir bool) bool { return dir && !p.File }

// findUnchecked is findIn for lookups by those whose rights on the directory
// do not matter: an entry that exists proves that its directory does, which
// saves reading it. done reports whether it is the whole story.
func findUnchecked(r cluster.Reader, dir Ino, p naming.Posix) (e record.Dentry, done bool, err error) {
	if p.Hash != nil {
		return e, false, nil
	}
	vs, err := r.GetMany([][]byte{record.FileEntryKey(dir, p.Stored), record.DirEntryKey(dir, p.Stored)})
	if err != nil {
		return e, false, err
	}
	value, isDir := vs[0], standsForDir(p, vs[1] != nil)
	if isDir {
		value = vs[1]
	}
	if value != nil {
		e, err = record.DentryOf(p.Stored, isDir, value)
		return e, err == nil, err
	}
	if _, err := keypath.GetDir(r, dir); err != nil {
		return e, false, err
	}
	return e, true, ErrNotExist
}

func (f *found) decode(file, dir []byte) error {
	if file != nil {
		e, err := record.DentryOf(f.name.Stored, false, file)
		if err != nil {
			return err
		}
		f.file = &e
	}
	if dir != nil {
		e, err := record.DentryOf(f.name.Stored, true, dir)
		if err != nil {
			return err
		}
		f.dir = &e
	}
	return nil
}

// getTarget reads the inode of an entry, which must exist.
func getTarget(r cluster.Reader, e *record.Dentry) (*record.Inode, error) {
	n, err := record.GetInode(r, e.Ino)
	if errors.Is(err, ErrStale) {
		return nil, fmt.Errorf("%w: entry %q has no inode %d", ErrCorrupt, e.Name, e.Ino)
	}
	return n, err
}

// Lookup returns the attributes of the entry that the POSIX doors show as
// name; "." and ".." work. ErrNotExist, ErrNotDir, ErrAccess, ErrNameTooLong.
func (fs *FS) Lookup(ctx context.Context, cred *Cred, dir Ino, name string) (a Attr, err error) {
	if name == "." || name == ".." {
		return fs.lookupDots(ctx, cred, dir, name == "..")
	}
	p, err := naming.ParsePosix(name)
	if err != nil {
		return Attr{}, lookupErr(err)
	}
	for mark := fs.session.Open.Mark(); ; mark = fs.session.Open.Mark() {
		a, err = fs.lookup(ctx, cred, dir, p)
		if err != nil || !fs.session.Open.LeftSince(mark, a.Ino) {
			return a, err
		}
	}
}

// lookup is Lookup by one snapshot; what was flushed and closed meanwhile may
// be missing.
func (fs *FS) lookup(ctx context.Context, cred *Cred, dir Ino, p naming.Posix) (a Attr, err error) {
	err = fs.peek(ctx, func(r cluster.Reader) error {
		e, err := findEntry(r, cred, dir, p)
		if err != nil {
			return err
		}
		a, err = fs.attrOfEntry(r, &e)
		return err
	})
	return a, err
}

// attrOfEntry returns the attributes of an entry's inode, which must exist. It keeps
// nothing of the inode, which need not be one more on the heap.
func (fs *FS) attrOfEntry(r cluster.Reader, e *record.Dentry) (Attr, error) {
	b, dirTime, err := getEncodedAndTime(r, e.Ino, e.Dir)
	if err != nil {
		return Attr{}, err
	}
	if b == nil {
		return Attr{}, fmt.Errorf("%w: entry %q has no inode %d", ErrCorrupt, e.Name, e.Ino)
	}
	n := record.Inode{Ino: e.Ino}
	if err := n.Decode(b); err != nil {
		return Attr{}, err
	}
	return fs.attrWith(&n, dirTime)
}

// findEntry returns the entry that cred finds under p in dir.
func findEntry(r cluster.Reader, cred *Cred, dir Ino, p naming.Posix) (e record.Dentry, err error) {
	if cred.Rooted() {
		if e, done, err := findUnchecked(r, dir, p); done || err != nil {
			return e, err
		}
	}
	d, f, err := findIn(r, dir, p)
	if err != nil {
		return e, err
	}
	if err := perm.Check(r, cred, d, AccessExec); err != nil {
		return e, err
	}
	if f.e == nil {
		return e, ErrNotExist
	}
	return *f.e, nil
}

func (fs *FS) lookupDots(ctx context.Context, cred *Cred, dir Ino, up bool) (a Attr, err error) {
	err = fs.peek(ctx, func(r cluster.Reader) error {
		n, err := keypath.GetDir(r, dir)
		if err != nil {
			return err
		}
		if err := perm.Check(r, cred, n, AccessExec); err != nil {
			return err
		}
		if up {
			if n, err = keypath.GetDir(r, n.Parent); err != nil {
				return err
			}
		}
		a, err = fs.attrOf(r, n)
		return err
	})
	return a, err
}

// lookupErr turns the error of a name that cannot be into that of one that
// is not there.
func lookupErr(err error) error {
	if errors.Is(err, ErrInvalid) {
		return ErrNotExist
	}
	return err
}

// getInodeAndTime reads an inode, and with dir the value of its key 't', in
// one round trip; a nil inode if there is none.
func getInodeAndTime(r cluster.Reader, ino Ino, dir bool) (*record.Inode, []byte, error) {
	b, dirTime, err := getEncodedAndTime(r, ino, dir)
	if err != nil || b == nil {
		return nil, nil, err
	}
	n, err := record.DecodeInode(ino, b)
	return n, dirTime, err
}

// getEncodedAndTime is getInodeAndTime with the inode as it is stored.
func getEncodedAndTime(r cluster.Reader, ino Ino, dir bool) (inode, dirTime []byte, err error) {
	if !dir {
		inode, err = r.Get(record.InodeKey(ino))
		return inode, nil, err
	}
	vs, err := r.GetMany([][]byte{record.InodeKey(ino), record.DirTimeKey(ino)})
	if err != nil {
		return nil, nil, err
	}
	return vs[0], vs[1], nil
}

// Readlink returns the target of a symbolic link. ErrInvalid for anything else.
func (fs *FS) Readlink(ctx context.Context, ino Ino) (target string, err error) {
	err = fs.peek(ctx, func(r cluster.Reader) error {
		n, err := record.GetInode(r, ino)
		if err != nil {
			return err
		}
		if !n.IsSymlink() {
			return ErrInvalid
		}
		target = n.Target
		return nil
	})
	return target, err
}

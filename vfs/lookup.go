package vfs

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
)

// found is what a POSIX name stands for in a directory.
type found struct {
	name posixName
	dir  *dentry // the directory of that stored name
	file *dentry // the other entry of that stored name
	e    *dentry // the one of them that is meant; nil: no such entry
}

// findIn reads directory dir and what p stands for in it, in one round trip.
// ErrStale, ErrNotDir, ErrNotExist for a directory that was removed.
func findIn(r cluster.Reader, dir Ino, p posixName) (*inode, found, error) {
	f := found{name: p}
	var hashedDir bool
	if p.hash != nil {
		b, err := r.Get(longNameKey(dir, p.hash))
		if err != nil {
			return nil, f, err
		}
		if b == nil {
			d, err := getDir(r, dir)
			return d, f, err
		}
		e, err := decodeLongName(b)
		if err != nil {
			return nil, f, err
		}
		f.name.stored, hashedDir = e.name, e.dir
		f.name.file = !e.dir
	}
	stored := f.name.stored
	vs, err := r.GetMany([][]byte{inodeKey(dir), fileEntryKey(dir, stored), dirEntryKey(dir, stored)})
	if err != nil {
		return nil, f, err
	}
	if vs[0] == nil {
		return nil, f, ErrStale
	}
	d, err := decodeInode(dir, vs[0])
	if err == nil {
		err = checkDir(d)
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
	switch {
	case f.name.file:
		// The form of a shadowed file stands for the file also when the
		// directory is gone: `rm -r` may have removed it a moment ago.
		f.e = f.file
	case f.dir != nil || hashedDir:
		f.e = f.dir
	default:
		f.e = f.file
	}
}

// findUnchecked is findIn for lookups by those whose rights on the directory
// do not matter: an entry that exists proves that its directory does, which
// saves reading it. done tells that it is the whole story.
func findUnchecked(r cluster.Reader, dir Ino, p posixName) (e *dentry, done bool, err error) {
	if p.hash != nil {
		return nil, false, nil
	}
	f := found{name: p}
	vs, err := r.GetMany([][]byte{fileEntryKey(dir, p.stored), dirEntryKey(dir, p.stored)})
	if err != nil {
		return nil, false, err
	}
	if err := f.decode(vs[0], vs[1]); err != nil {
		return nil, false, err
	}
	if f.choose(false); f.e != nil {
		return f.e, true, nil
	}
	if _, err := getDir(r, dir); err != nil {
		return nil, false, err
	}
	return nil, true, ErrNotExist
}

func (f *found) decode(file, dir []byte) error {
	if file != nil {
		e, err := decodeDentry([]byte(f.name.stored), file)
		if err != nil {
			return err
		}
		f.file = &e
	}
	if dir != nil {
		e, err := decodeDentry([]byte(f.name.stored+"/"), dir)
		if err != nil {
			return err
		}
		f.dir = &e
	}
	return nil
}

// decodeLongName decodes the value of key 'h': a stored name, with a slash
// behind a directory's.
func decodeLongName(b []byte) (dentry, error) {
	n := len(b)
	switch {
	case n == 0:
		return dentry{}, fmt.Errorf("%w: empty long name", ErrCorrupt)
	case b[n-1] == '/':
		return dentry{name: string(b[:n-1]), dir: true}, nil
	}
	return dentry{name: string(b)}, nil
}

// getDir reads the inode of a directory. ErrStale, ErrNotDir, ErrNotExist for
// one that was removed.
func getDir(r cluster.Reader, dir Ino) (*inode, error) {
	d, err := getInode(r, dir)
	if err == nil {
		err = checkDir(d)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// checkDir tells whether entries can be in d.
func checkDir(d *inode) error {
	switch {
	case !d.isDir():
		return ErrNotDir
	case d.nlink == 0:
		return fmt.Errorf("directory %d was removed: %w", d.ino, ErrNotExist)
	}
	return nil
}

// getTarget reads the inode of an entry, which must exist.
func getTarget(r cluster.Reader, e *dentry) (*inode, error) {
	n, err := getInode(r, e.ino)
	if errors.Is(err, ErrStale) {
		return nil, fmt.Errorf("%w: entry %q has no inode %d", ErrCorrupt, e.name, e.ino)
	}
	return n, err
}

// Lookup returns the attributes of the entry that the POSIX doors show as
// name; "." and ".." work. ErrNotExist, ErrNotDir, ErrAccess, ErrNameTooLong.
func (fs *FS) Lookup(ctx context.Context, cred *Cred, dir Ino, name string) (a Attr, err error) {
	if name == "." || name == ".." {
		return fs.lookupDots(ctx, cred, dir, name == "..")
	}
	p, err := parsePosixName(name)
	if err != nil {
		return Attr{}, lookupErr(err)
	}
	for mark := fs.opens.mark(); ; mark = fs.opens.mark() {
		a, err = fs.lookup(ctx, cred, dir, p)
		if err != nil || !fs.opens.leftSince(mark, a.Ino) {
			return a, err
		}
	}
}

// lookup is Lookup by one snapshot; what was flushed and closed meanwhile may
// be missing.
func (fs *FS) lookup(ctx context.Context, cred *Cred, dir Ino, p posixName) (a Attr, err error) {
	err = fs.peek(ctx, func(r cluster.Reader) error {
		e, err := findEntry(r, cred, dir, p)
		if err != nil {
			return err
		}
		n, dirTime, err := getInodeAndTime(r, e.ino, e.dir)
		if err != nil {
			return err
		}
		if n == nil {
			return fmt.Errorf("%w: entry %q has no inode %d", ErrCorrupt, e.name, e.ino)
		}
		a, err = fs.attrWith(n, dirTime)
		return err
	})
	return a, err
}

// findEntry returns the entry that cred finds under p in dir.
func findEntry(r cluster.Reader, cred *Cred, dir Ino, p posixName) (*dentry, error) {
	if cred.rooted() {
		if e, done, err := findUnchecked(r, dir, p); done || err != nil {
			return e, err
		}
	}
	d, f, err := findIn(r, dir, p)
	if err != nil {
		return nil, err
	}
	if err := checkAccess(r, cred, d, AccessExec); err != nil {
		return nil, err
	}
	if f.e == nil {
		return nil, ErrNotExist
	}
	return f.e, nil
}

func (fs *FS) lookupDots(ctx context.Context, cred *Cred, dir Ino, up bool) (a Attr, err error) {
	err = fs.peek(ctx, func(r cluster.Reader) error {
		n, err := getDir(r, dir)
		if err != nil {
			return err
		}
		if err := checkAccess(r, cred, n, AccessExec); err != nil {
			return err
		}
		if up {
			if n, err = getDir(r, n.parent); err != nil {
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
func getInodeAndTime(r cluster.Reader, ino Ino, dir bool) (*inode, []byte, error) {
	if !dir {
		b, err := r.Get(inodeKey(ino))
		if err != nil || b == nil {
			return nil, nil, err
		}
		n, err := decodeInode(ino, b)
		return n, nil, err
	}
	vs, err := r.GetMany([][]byte{inodeKey(ino), dirTimeKey(ino)})
	if err != nil || vs[0] == nil {
		return nil, nil, err
	}
	n, err := decodeInode(ino, vs[0])
	return n, vs[1], err
}

// Readlink returns the target of a symbolic link. ErrInvalid for anything else.
func (fs *FS) Readlink(ctx context.Context, ino Ino) (target string, err error) {
	err = fs.peek(ctx, func(r cluster.Reader) error {
		n, err := getInode(r, ino)
		if err != nil {
			return err
		}
		if !n.isSymlink() {
			return ErrInvalid
		}
		target = n.target
		return nil
	})
	return target, err
}

package vfs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/posixacl"
	"ogw/vfs/internal/record"
)

// createAttempts bounds how often Create begins anew because the file that
// it found was removed before it was opened.
const createAttempts = 16

// CreateOptions of Create.
type CreateOptions struct {
	Mode  uint32    // permissions, before the umask
	Flags OpenFlags // of the file returned; OpenTrunc cuts an existing file
	// Exclusive fails with ErrExist if the name exists.
	Exclusive bool
	// Verifier, with Exclusive: an existing file that was made with the same
	// verifier and not changed since is success (RFC 1813 section 3.3.8).
	Verifier *uint64
	// NoOpen makes the file without opening it; the returned File is nil.
	NoOpen bool
	// SetAttr is applied to a file that is made (not to an existing one,
	// except Size), within the same transaction.
	SetAttr SetAttr
}

// Create makes a regular file, or opens an existing one unless Exclusive.
// created reports which. ErrExist, ErrIsDir, ErrAccess, ErrInvalid for a name
// that no entry can have, ErrNameTooLong.
func (fs *FS) Create(ctx context.Context, cred *Cred, dir Ino, name string, o CreateOptions) (a Attr, f *File, created bool, err error) {
	p, err := parseNewName(name)
	if err != nil {
		return Attr{}, nil, false, err
	}
	for range createAttempts {
		a, created, err = fs.createOnce(ctx, cred, dir, p, &o)
		if err != nil {
			return Attr{}, nil, false, err
		}
		a, f, err = fs.openCreated(ctx, cred, a, created, &o)
		if !errors.Is(err, ErrStale) {
			break
		}
	}
	if err != nil {
		return Attr{}, nil, false, err
	}
	return a, f, created, nil
}

// createOnce is the transaction of Create.
func (fs *FS) createOnce(ctx context.Context, cred *Cred, dir Ino, p naming.Posix, o *CreateOptions) (a Attr, created bool, err error) {
	mark := fs.session.Open.Mark()
	err = fs.update(ctx, func(t cluster.Txn, op *op) error {
		created = false
		d, f, err := findIn(t, dir, p)
		if err != nil {
			return err
		}
		if err := perm.Check(t, cred, d, AccessExec); err != nil {
			return err
		}
		var n *record.Inode
		if f.e != nil {
			if n, err = existing(t, &f, o); err != nil {
				return err
			}
			a, err = fs.attrOf(t, n)
			return err
		}
		created = true
		n, err = op.makeNode(t, cred, d, &f, newNode{ModeRegular | o.Mode&ModePermMask, func(n *record.Inode) error {
			if o.Verifier != nil && o.Exclusive {
				n.Verf = *o.Verifier
				n.Set(record.FlagVerf, true)
			}
			return applyNew(n, cred, &o.SetAttr, op.nowNS)
		}})
		if err != nil {
			return err
		}
		a, err = fs.attrWith(n, nil)
		return err
	})
	if err == nil && !created && fs.session.Open.LeftSince(mark, a.Ino) {
		a, err = fs.attrFor(ctx, a.Ino)
	}
	return a, created, err
}

// existing decides what Create does with an entry that is there already.
func existing(r cluster.Reader, f *found, o *CreateOptions) (*record.Inode, error) {
	if o.Exclusive && o.Verifier == nil {
		return nil, ErrExist
	}
	if f.e.Dir {
		if o.Exclusive {
			return nil, ErrExist
		}
		return nil, ErrIsDir
	}
	n, err := getTarget(r, f.e)
	if err != nil {
		return nil, err
	}
	if o.Exclusive && (!n.Has(record.FlagVerf) || n.Verf != *o.Verifier) || !n.IsRegular() {
		return nil, ErrExist
	}
	return n, nil
}

// openCreated opens what createOnce made or found. A file that it made is
// open to its maker whatever its mode.
func (fs *FS) openCreated(ctx context.Context, cred *Cred, a Attr, created bool, o *CreateOptions) (Attr, *File, error) {
	if !created && o.SetAttr.Size != nil && !o.Exclusive {
		var err error
		if a, err = fs.SetAttr(ctx, cred, a.Ino, SetAttr{Size: o.SetAttr.Size}); err != nil {
			return a, nil, err
		}
	}
	if o.NoOpen {
		return a, nil, nil
	}
	if created {
		f, err := fs.openInode(ctx, cred, a.Ino, o.Flags&^OpenTrunc) // nothing to cut
		return a, f, err
	}
	f, err := fs.Open(ctx, cred, a.Ino, o.Flags)
	if err == nil && o.Flags&OpenTrunc != 0 {
		a, err = f.Attr(ctx)
		if err != nil {
			_ = f.Close(ctx)
			return a, nil, err
		}
	}
	return a, f, err
}

// parseNewName decodes a name that shall be made.
func parseNewName(name string) (naming.Posix, error) {
	if name == "." || name == ".." {
		return naming.Posix{}, ErrExist
	}
	return naming.ParsePosix(name)
}

// newNode is an inode to be made.
type newNode struct {
	mode uint32
	init func(*record.Inode) error // may change it before it is stored; may be nil
}

// makeNode makes an inode and its entry in d, where f found none: owner,
// mode and ACL by the rules of d.
func (o *op) makeNode(t cluster.Txn, cred *Cred, d *record.Inode, f *found, as newNode) (*record.Inode, error) {
	if f.e != nil {
		return nil, ErrExist
	}
	dir := as.mode&ModeTypeMask == ModeDirectory
	switch {
	case f.name.Hash != nil && f.name.Stored == "":
		return nil, fmt.Errorf("%w: the name is a hash that stands for nothing", ErrInvalid)
	case f.name.File && dir, f.name.Stored == "" && !dir:
		return nil, fmt.Errorf("%w: no such kind of file can have this name", ErrInvalid)
	}
	if err := perm.Check(t, cred, d, AccessWrite|AccessExec); err != nil {
		return nil, err
	}
	id, err := o.newID()
	if err != nil {
		return nil, err
	}
	n := o.newInode(id, as.mode, cred)
	n.Choose()
	n.Parent, n.Name = d.Ino, f.name.Stored
	inheritGroup(cred, d, n)
	if !n.IsSymlink() {
		n.SetFileFlags(uint32(perm.FlagsOf(d) & perm.InheritedFlags))
	}
	inherited, err := posixacl.Inherit(t, d, n)
	if err != nil {
		return nil, err
	}
	if !inherited && !n.IsSymlink() {
		n.Mode &^= cred.EffectiveUmask()
	}
	mode := n.Mode
	if as.init != nil {
		if err := as.init(n); err != nil {
			return nil, err
		}
	}
	if n.Mode != mode {
		if err := posixacl.Chmod(t, n); err != nil {
			return nil, err
		}
	}
	if err := record.PutInode(t, n); err != nil {
		return nil, err
	}
	return n, o.addEntryBeside(t, d.Ino, record.EntryOf(n), f.dir != nil || f.file != nil)
}

// inheritGroup applies the setgid bit of d to what is made in it.
func inheritGroup(cred *Cred, d, n *record.Inode) {
	if d.Mode&ModeSetGID == 0 {
		return
	}
	n.GID = d.GID
	const setgidExec = ModeSetGID | 0o010
	switch {
	case n.IsDir():
		n.Mode |= ModeSetGID
	case n.Mode&setgidExec == setgidExec && !cred.Rooted() && !cred.InGroup(n.GID):
		n.Mode &^= ModeSetGID
	}
}

// make is the whole of Mkdir, Mknod and Symlink.
func (fs *FS) make(ctx context.Context, cred *Cred, dir Ino, name string, as newNode) (a Attr, err error) {
	p, err := parseNewName(name)
	if err != nil {
		return Attr{}, err
	}
	err = fs.update(ctx, func(t cluster.Txn, o *op) error {
		d, f, err := findIn(t, dir, p)
		if err != nil {
			return err
		}
		if err := perm.Check(t, cred, d, AccessExec); err != nil {
			return err
		}
		n, err := o.makeNode(t, cred, d, &f, as)
		if err != nil {
			return err
		}
		a, err = fs.attrWith(n, nil)
		return err
	})
	return a, err
}

// Mkdir makes a directory. At the top, with a legal bucket name, that makes a
// bucket, owned by cred. mode may hold the sticky and setgid bits.
func (fs *FS) Mkdir(ctx context.Context, cred *Cred, dir Ino, name string, mode uint32) (Attr, error) {
	return fs.make(ctx, cred, dir, name, newNode{ModeDirectory | mode&ModePermMask, func(n *record.Inode) error {
		n.Set(record.FlagExplicit, true)
		return nil
	}})
}

// NodeOptions of Mknod.
type NodeOptions struct {
	Mode uint32 // type and permissions
	Rdev uint32 // of a device
}

// Mknod makes a special file, or a regular one. Devices are for the superuser
// (ErrPerm).
func (fs *FS) Mknod(ctx context.Context, cred *Cred, dir Ino, name string, o NodeOptions) (Attr, error) {
	switch o.Mode & ModeTypeMask {
	case 0:
		o.Mode |= ModeRegular
	case ModeRegular, ModeFIFO, ModeSocket:
	case ModeChar, ModeBlock:
		if !cred.Rooted() {
			return Attr{}, ErrPerm
		}
	case ModeDirectory:
		return Attr{}, ErrPerm
	default:
		return Attr{}, ErrInvalid
	}
	return fs.make(ctx, cred, dir, name, newNode{o.Mode & (ModeTypeMask | ModePermMask), func(n *record.Inode) error {
		if t := n.Mode & ModeTypeMask; t == ModeChar || t == ModeBlock {
			n.Rdev = o.Rdev
		}
		return nil
	}})
}

// Symlink makes a symbolic link. ErrNotExist for an empty target,
// ErrNameTooLong for one over MaxSymlinkBytes.
func (fs *FS) Symlink(ctx context.Context, cred *Cred, dir Ino, name, target string) (Attr, error) {
	switch {
	case target == "":
		return Attr{}, ErrNotExist
	case len(target) > MaxSymlinkBytes:
		return Attr{}, ErrNameTooLong
	case strings.IndexByte(target, 0) >= 0:
		return Attr{}, ErrInvalid
	}
	return fs.make(ctx, cred, dir, name, newNode{ModeSymlink | 0o777, func(n *record.Inode) error {
		n.Target = target
		return nil
	}})
}

// OpenTemp makes a file without a name in dir's bucket (O_TMPFILE); Link
// gives it one.
func (fs *FS) OpenTemp(ctx context.Context, cred *Cred, dir Ino, mode uint32, flags OpenFlags) (a Attr, f *File, err error) {
	if !cred.Unchecked() {
		if err := fs.Access(ctx, cred, dir, AccessWrite|AccessExec); err != nil {
			return a, nil, err
		}
	}
	id, err := fs.ids.Take(ctx)
	if err != nil {
		return a, nil, err
	}
	// Opened before it exists, so that the collector sees it open.
	of, err := fs.acquire(ctx, Ino(id))
	if err != nil {
		return a, nil, err
	}
	fs.session.Open.MarkOrphan(Ino(id))
	f = &File{fs: fs, of: of, flags: flags, killPriv: !cred.Superuser()}
	err = fs.update(ctx, func(t cluster.Txn, o *op) error {
		d, err := keypath.GetDir(t, dir)
		if err != nil {
			return err
		}
		if err := perm.FlagsOf(d).CheckWritable(); err != nil {
			return err
		}
		n := o.newInode(id, ModeRegular|mode&ModePermMask&^cred.EffectiveUmask(), cred)
		n.SetFileFlags(uint32(perm.FlagsOf(d) & perm.InheritedFlags))
		n.Nlink, n.Parent = 0, dir
		n.Choose()
		if d.Mode&ModeSetGID != 0 {
			n.GID = d.GID
		}
		if err := o.makeOrphan(t, n); err != nil {
			return err
		}
		if err := record.PutInode(t, n); err != nil {
			return err
		}
		a, err = fs.attrOf(t, n)
		return err
	})
	if err != nil {
		f.release(ctx)
		return Attr{}, nil, err
	}
	return a, f, nil
}

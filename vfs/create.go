package vfs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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
	c := creation{fs: fs, cred: cred, dir: dir, name: p, o: &o}
	for range createAttempts {
		a, created, err = c.once(ctx)
		if err != nil {
			return Attr{}, nil, false, err
		}
		a, f, err = c.open(ctx, a, created)
		if !errors.Is(err, ErrStale) {
			break
		}
	}
	if err != nil {
		return Attr{}, nil, false, err
	}
	return a, f, created, nil
}

// creation is one Create.
type creation struct {
	fs   *FS
	cred *Cred
	dir  Ino
	name naming.Posix
	o    *CreateOptions

	// file is what the last run made. It is open before that is there, so that nobody
	// removes it unseen and none needs to look for it again; nil: the run made nothing,
	// or nobody opens it. snap is the inode as it was made.
	file *File
	snap *fileSnap
}

// once is the transaction of Create.
func (c *creation) once(ctx context.Context) (a Attr, created bool, err error) {
	mark := c.fs.session.Open.Mark()
	err = c.fs.update(ctx, func(t cluster.Txn, op *op) error {
		created = false
		c.undo(ctx)
		d, f, err := findIn(t, c.dir, c.name)
		if err != nil {
			return err
		}
		if err := perm.Check(t, c.cred, d, AccessExec); err != nil {
			return err
		}
		var n *record.Inode
		if f.e != nil {
			if n, err = existing(t, &f, c.o); err != nil {
				return err
			}
			a, err = c.fs.attrOf(t, n)
			return err
		}
		created = true
		if n, err = c.make(t, op, d, &f); err != nil {
			return err
		}
		a, err = c.fs.attrWith(n, nil)
		return err
	})
	if err != nil {
		c.undo(ctx)
	}
	if err == nil && !created && c.fs.session.Open.LeftSince(mark, a.Ino) {
		a, err = c.fs.attrFor(ctx, a.Ino)
	}
	return a, created, err
}

// make makes the file in d, where f found none, and opens it.
func (c *creation) make(t cluster.Txn, op *op, d *record.Inode, f *found) (*record.Inode, error) {
	n, err := op.makeNode(t, c.cred, d, f, newNode{mode: ModeRegular | c.o.Mode&ModePermMask, init: func(n *record.Inode) error {
		if c.o.Verifier != nil && c.o.Exclusive {
			n.Verf = *c.o.Verifier
			n.Set(record.FlagVerf, true)
		}
		return applyNew(n, c.cred, &c.o.SetAttr, op.nowNS)
	}})
	if err != nil || c.o.NoOpen {
		return n, err
	}
	of, err := c.fs.acquire(op.ctx, n.Ino)
	if err != nil {
		return nil, err
	}
	flags := c.o.Flags &^ OpenTrunc // nothing to cut
	of.admitted.Store(true)
	c.file = &File{fs: c.fs, of: of, flags: flags, killPriv: !c.cred.Superuser()}
	c.snap = &fileSnap{gen: of.gen.Load(), at: time.Now(), inode: n}
	return n, nil
}

// undo closes what a run opened that came to nothing.
func (c *creation) undo(ctx context.Context) {
	if c.file != nil {
		c.file.release(ctx)
		c.file = nil
	}
}

// born returns the open file that was made. Its maker may write whatever its mode.
func (c *creation) born(ctx context.Context) (*File, error) {
	f := c.file
	if err := checkOpen(c.snap.inode, f.flags); err != nil {
		c.undo(ctx)
		return nil, err
	}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.seen = f.of.lostSeq
	f.of.follow(c.snap)
	return f, nil
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

// open opens what once made or found.
func (c *creation) open(ctx context.Context, a Attr, created bool) (Attr, *File, error) {
	o := c.o
	if !created && o.SetAttr.Size != nil && !o.Exclusive {
		var err error
		if a, err = c.fs.SetAttr(ctx, c.cred, a.Ino, SetAttr{Size: o.SetAttr.Size}); err != nil {
			return a, nil, err
		}
	}
	if o.NoOpen {
		return a, nil, nil
	}
	if created {
		f, err := c.born(ctx)
		return a, f, err
	}
	f, err := c.fs.Open(ctx, c.cred, a.Ino, o.Flags)
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
	id   uint64                    // its number; 0: the next
}

// makeNode makes an inode (newIn) and its entry in d, where f found none.
func (o *op) makeNode(t cluster.Txn, cred *Cred, d *record.Inode, f *found, as newNode) (*record.Inode, error) {
	if f.e != nil {
		return nil, ErrExist
	}
	dir := as.mode&ModeTypeMask == ModeDirectory
	switch {
	case f.name.IsUnknown():
		return nil, fmt.Errorf("%w: the name is a hash that stands for nothing", ErrInvalid)
	case f.name.File && dir, f.name.Stored == "" && !dir:
		return nil, fmt.Errorf("%w: no such kind of file can have this name", ErrInvalid)
	}
	n, err := o.newIn(t, cred, d, as)
	if err != nil {
		return nil, err
	}
	n.Name = f.name.Stored
	if err := record.PutInode(t, n); err != nil {
		return nil, err
	}
	return n, o.addEntryBeside(t, d.Ino, record.EntryOf(n), f.dir != nil || f.file != nil)
}

// newIn returns an inode that cred makes in d, if he may: owner, mode, flags and ACL by
// the rules of d. The caller stores it, and gives it a name if it has one.
func (o *op) newIn(t cluster.Txn, cred *Cred, d *record.Inode, as newNode) (*record.Inode, error) {
	if err := perm.Check(t, cred, d, AccessWrite|AccessExec); err != nil {
		return nil, err
	}
	id := as.id
	if id == 0 {
		var err error
		if id, err = o.newID(); err != nil {
			return nil, err
		}
	}
	n := o.newInode(id, as.mode, cred)
	n.Choose()
	n.Parent = d.Ino
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
	return n, nil
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
	return fs.make(ctx, cred, dir, name, newNode{mode: ModeDirectory | mode&ModePermMask, init: func(n *record.Inode) error {
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
	return fs.make(ctx, cred, dir, name, newNode{mode: o.Mode & (ModeTypeMask | ModePermMask), init: func(n *record.Inode) error {
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
	return fs.make(ctx, cred, dir, name, newNode{mode: ModeSymlink | 0o777, init: func(n *record.Inode) error {
		n.Target = target
		return nil
	}})
}

// OpenTemp makes a file without a name in dir's bucket (O_TMPFILE); Link
// gives it one.
func (fs *FS) OpenTemp(ctx context.Context, cred *Cred, dir Ino, mode uint32, flags OpenFlags) (a Attr, f *File, err error) {
	id, err := fs.ids.Take(ctx)
	if err != nil {
		return a, nil, err
	}
	// Opened before it exists, so that the collector sees it open.
	of, err := fs.acquire(ctx, Ino(id))
	if err != nil {
		return a, nil, err
	}
	of.admitted.Store(true)
	fs.session.Open.MarkOrphan(Ino(id))
	f = &File{fs: fs, of: of, flags: flags, killPriv: !cred.Superuser()}
	err = fs.update(ctx, func(t cluster.Txn, o *op) error {
		d, err := keypath.GetDir(t, dir)
		if err != nil {
			return err
		}
		n, err := o.newIn(t, cred, d, newNode{mode: ModeRegular | mode&ModePermMask, id: id})
		if err != nil {
			return err
		}
		n.Nlink = 0
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

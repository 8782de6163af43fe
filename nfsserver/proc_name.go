package nfsserver

import (
	"context"
	"errors"

	"ogw/nfsserver/backend"
	"ogw/nfsserver/xdr"
	"ogw/vfs"
)

// lookup is LOOKUP (RFC 1813 section 3.3.3).
func lookup(ctx context.Context, q *request) error {
	d := q.dirop()
	if err := q.decoded(); err != nil {
		return err
	}
	dir, err := q.open(ctx, d.fh, false)
	if err != nil {
		return err
	}
	q.name = d.name
	if err := checkName(d.name); err != nil {
		return err
	}
	a, err := q.find(ctx, dir, d.name)
	if err != nil {
		if errors.Is(err, vfs.ErrNotExist) {
			return q.absent(ctx, dir)
		}
		return err
	}
	q.ok()
	q.handle(&a)
	q.postOp(&a)
	q.postOpOf(ctx, dir)
	return nil
}

// find is the lookup of a name. The export's root is its own parent.
func (q *request) find(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	if name != ".." {
		return q.s.fs.Lookup(ctx, &q.cred, dir, name)
	}
	root, err := q.s.border.root(ctx, q.export)
	if err != nil {
		return vfs.Attr{}, err
	}
	if dir == root {
		return q.s.fs.Lookup(ctx, &q.cred, dir, ".")
	}
	a, err := q.s.fs.Lookup(ctx, &q.cred, dir, name)
	if err == nil {
		err = q.s.border.check(ctx, q.export, a.Ino) // dir may have been moved out just now
	}
	return a, err
}

// absent answers a LOOKUP that found nothing, with the directory's
// attributes: clients keep the absence as long as these do not change.
// ErrStale if nothing is found since the directory was removed.
func (q *request) absent(ctx context.Context, dir vfs.Ino) error {
	a, err := q.s.fs.GetAttr(ctx, dir)
	if removed(&a, err) {
		return ErrStale
	}
	q.out.Status = uint32(ErrNoEnt)
	q.out.Uint32(uint32(ErrNoEnt))
	if err == nil {
		q.postOp(&a)
	} else {
		q.postOp(nil)
	}
	return nil
}

// How CREATE treats an existing file (createmode3, RFC 1813 section 3.3.8).
const (
	createUnchecked = 0
	createGuarded   = 1
	createExclusive = 2
)

const (
	// defaultFileMode and defaultDirMode are for clients that send no mode.
	// An exclusive create never has one: the client sets it afterwards.
	defaultFileMode = 0o600
	defaultDirMode  = 0o755
)

// create is CREATE (RFC 1813 section 3.3.8).
func create(ctx context.Context, q *request) error {
	d := q.dirop()
	var s sattr
	var verifier uint64
	how := q.args.Uint32()
	switch how {
	case createUnchecked, createGuarded:
		s.decode(q.args)
	case createExclusive:
		verifier = q.args.Uint64()
	default:
		q.args.Fail(xdr.ErrBadValue)
	}
	if err := q.decoded(); err != nil {
		return err
	}
	dir, err := q.openDir(ctx, d)
	if err != nil {
		return err
	}
	if isDots(d.name) {
		return ErrExist
	}
	if s.tooBig {
		return ErrFBig
	}
	o := vfs.CreateOptions{Mode: s.modeOr(defaultFileMode), NoOpen: true, SetAttr: s.set, Exclusive: how != createUnchecked}
	o.SetAttr.Mode = nil
	if how == createExclusive {
		o.Verifier = &verifier
	}
	c := q.change(ctx, dir)
	once := ctx
	if how == createGuarded {
		once = q.once(ctx)
	}
	a, _, created, err := q.s.fs.Create(once, &q.cred, dir, d.name, o)
	if errors.Is(err, vfs.ErrDone) {
		a, err = q.s.fs.Lookup(ctx, vfs.Root, dir, d.name)
	}
	if err != nil {
		return err
	}
	return q.made(ctx, c, &a, created)
}

// made answers what created an entry, or found the one it would have created.
func (q *request) made(ctx context.Context, c dirChange, a *vfs.Attr, created bool) error {
	q.ok()
	q.out.Bool(true)
	q.handle(a)
	q.postOp(a)
	c.done(ctx, created)
	return nil
}

// finishNew applies what the operation that made a could not take.
func (q *request) finishNew(ctx context.Context, a *vfs.Attr, s *sattr) error {
	set, any := s.rest()
	if !any {
		return nil
	}
	b, err := q.s.fs.SetAttr(ctx, &q.cred, a.Ino, set)
	if err != nil {
		return err
	}
	*a = b
	return nil
}

// mkdir is MKDIR (RFC 1813 section 3.3.9).
func mkdir(ctx context.Context, q *request) error {
	d := q.dirop()
	var s sattr
	s.decode(q.args)
	if err := q.decoded(); err != nil {
		return err
	}
	dir, err := q.openDir(ctx, d)
	if err != nil {
		return err
	}
	if isDots(d.name) {
		return ErrExist
	}
	c := q.change(ctx, dir)
	a, err := q.s.fs.Mkdir(q.once(ctx), &q.cred, dir, d.name, s.modeOr(defaultDirMode))
	if errors.Is(err, vfs.ErrDone) {
		a, err = q.s.fs.Lookup(ctx, vfs.Root, dir, d.name)
	}
	if err != nil {
		return err
	}
	if err := q.finishNew(ctx, &a, &s); err != nil {
		return err
	}
	return q.made(ctx, c, &a, true)
}

// symlink is SYMLINK (RFC 1813 section 3.3.10).
func symlink(ctx context.Context, q *request) error {
	d := q.dirop()
	var s sattr
	s.decode(q.args)
	target := q.args.String(maxPathArg)
	if err := q.decoded(); err != nil {
		return err
	}
	dir, err := q.openDir(ctx, d)
	if err != nil {
		return err
	}
	switch {
	case isDots(d.name):
		return ErrExist
	case len(target) > vfs.MaxSymlinkBytes:
		return ErrNameTooLong
	}
	c := q.change(ctx, dir)
	a, err := q.s.fs.Symlink(q.once(ctx), &q.cred, dir, d.name, target)
	if errors.Is(err, vfs.ErrDone) {
		a, err = q.s.fs.Lookup(ctx, vfs.Root, dir, d.name)
	}
	if err != nil {
		return err
	}
	if err := q.finishNew(ctx, &a, &s); err != nil {
		return err
	}
	return q.made(ctx, c, &a, true)
}

// mknod is MKNOD (RFC 1813 section 3.3.11).
func mknod(ctx context.Context, q *request) error {
	d := q.dirop()
	kind := q.args.Uint32()
	var s sattr
	mode, rdev, fits := uint32(0), uint32(0), true
	switch kind {
	case typeChar, typeBlock:
		s.decode(q.args)
		major, minor := q.args.Uint32(), q.args.Uint32()
		rdev, fits = makeDev(major, minor)
		mode = vfs.ModeChar
		if kind == typeBlock {
			mode = vfs.ModeBlock
		}
	case typeSocket:
		s.decode(q.args)
		mode = vfs.ModeSocket
	case typeFIFO:
		s.decode(q.args)
		mode = vfs.ModeFIFO
	}
	if err := q.decoded(); err != nil {
		return err
	}
	dir, err := q.openDir(ctx, d)
	switch {
	case err != nil:
		return err
	case mode == 0:
		return ErrBadType
	case isDots(d.name):
		return ErrExist
	case !fits:
		return ErrInval
	}
	c := q.change(ctx, dir)
	a, err := q.s.fs.Mknod(q.once(ctx), &q.cred, dir, d.name, vfs.NodeOptions{Mode: mode | s.modeOr(defaultFileMode), Rdev: rdev})
	if errors.Is(err, vfs.ErrDone) {
		a, err = q.s.fs.Lookup(ctx, vfs.Root, dir, d.name)
	}
	if err != nil {
		return err
	}
	if err := q.finishNew(ctx, &a, &s); err != nil {
		return err
	}
	return q.made(ctx, c, &a, true)
}

// remove is REMOVE (RFC 1813 section 3.3.12).
func remove(ctx context.Context, q *request) error { return q.unlink(ctx, q.s.fs.Unlink, ErrInval) }

// rmdir is RMDIR (RFC 1813 section 3.3.13).
func rmdir(ctx context.Context, q *request) error { return q.unlink(ctx, q.s.fs.Rmdir, ErrExist) }

// unlink removes an entry; parentStatus answers an attempt on "..".
func (q *request) unlink(ctx context.Context, op func(context.Context, *vfs.Cred, vfs.Ino, string) error, parentStatus Status) error {
	d := q.dirop()
	if err := q.decoded(); err != nil {
		return err
	}
	dir, err := q.openDir(ctx, d)
	if err != nil {
		return err
	}
	switch d.name {
	case ".":
		return ErrInval
	case "..":
		return parentStatus
	}
	c := q.change(ctx, dir)
	if err := op(q.once(ctx), &q.cred, dir, d.name); err != nil && !errors.Is(err, vfs.ErrDone) {
		return err
	}
	q.ok()
	c.done(ctx, true)
	return nil
}

// rename is RENAME (RFC 1813 section 3.3.14).
func rename(ctx context.Context, q *request) error {
	from, to := q.dirop(), q.dirop()
	if err := q.decoded(); err != nil {
		return err
	}
	fromDir, err := q.openDir(ctx, from)
	if err != nil {
		return err
	}
	toDir, err := q.openDir(ctx, to)
	q.name, q.toDir, q.toName = from.name, toDir, to.name
	if err != nil {
		return err
	}
	if isDots(from.name) || isDots(to.name) {
		return ErrInval
	}
	err = q.s.fs.Rename(q.once(ctx), &q.cred, vfs.EntryName{Dir: fromDir, Name: from.name}, vfs.EntryName{Dir: toDir, Name: to.name}, 0)
	if err != nil && !errors.Is(err, vfs.ErrDone) {
		return err
	}
	q.ok()
	q.wccOf(ctx, fromDir)
	q.wccOf(ctx, toDir)
	return nil
}

// link is LINK (RFC 1813 section 3.3.15).
func link(ctx context.Context, q *request) error {
	fh := q.args.Opaque(maxHandle)
	d := q.dirop()
	if err := q.decoded(); err != nil {
		return err
	}
	ino, err := q.open(ctx, fh, true)
	if err != nil {
		return err
	}
	dir, err := q.openDir(ctx, d)
	if err != nil {
		return err
	}
	if isDots(d.name) {
		return ErrExist
	}
	c := q.change(ctx, dir)
	a, err := q.s.fs.Link(q.once(ctx), &q.cred, ino, dir, d.name)
	if errors.Is(err, vfs.ErrDone) {
		a, err = q.stat(ctx, ino)
	}
	if err != nil {
		return err
	}
	q.ok()
	q.postOp(&a)
	c.done(ctx, true)
	return nil
}

// readlink is READLINK (RFC 1813 section 3.3.5), which the library encodes.
func readlink(ctx context.Context, q *request) error {
	ino, err := q.only(ctx)
	if err != nil {
		return err
	}
	target, err := q.s.fs.Readlink(ctx, ino)
	if err != nil {
		return err
	}
	if !q.export.ReadOnly {
		q.s.fs.Accessed(ctx, ino)
	}
	var w xdr.Writer
	w.Opaque(make([]byte, handleBytes)) // any handle: the answer is known
	results, err := q.s.library.Call(ctx, ProgramNFS, procReadlink, w.B, backend.Answer{Link: target})
	if err != nil {
		return err
	}
	q.out.B = append(q.out.B, results...)
	return nil
}

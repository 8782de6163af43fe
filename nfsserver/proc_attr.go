package nfsserver

import (
	"context"
	"errors"

	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
	"ogw/vfs"
)

// getattr is GETATTR (RFC 1813 section 3.3.1).
func getattr(ctx context.Context, q *request) error {
	fh := q.args.Opaque(maxHandle)
	if err := q.decoded(); err != nil {
		return err
	}
	ino, err := q.open(ctx, fh, false)
	if err != nil {
		return err
	}
	a, err := q.stat(ctx, ino)
	if err != nil {
		return err
	}
	q.ok()
	putAttr(&q.out.Writer, &a, q.s.sealer.fsid)
	return nil
}

// quickGetattr answers a GETATTR whose answer is in memory.
func (s *Server) quickGetattr(c *rpc.Call, args xdr.Reader, r *rpc.Reply) bool {
	h, err := s.sealer.parse(args.Opaque(maxHandle))
	if err != nil || args.Err() != nil {
		return false
	}
	x := s.exports.Load().byID[h.export]
	if x == nil || !x.allows(c.Remote, c.Start()) {
		return false
	}
	a, ok := s.fs.TryAttr(h.ino)
	if !ok || a.Gen != h.gen || !s.border.knows(x, &a) {
		return false
	}
	r.Uint32(uint32(OK))
	putAttr(&r.Writer, &a, s.sealer.fsid)
	return true
}

// setattr is SETATTR (RFC 1813 section 3.3.2).
func setattr(ctx context.Context, q *request) error {
	fh := q.args.Opaque(maxHandle)
	var s sattr
	s.decode(q.args)
	var guard int64
	if q.args.Bool() {
		guard = getTime(q.args).UnixNS()
		s.set.GuardCtimeNS = &guard
	}
	if err := q.decoded(); err != nil {
		return err
	}
	ino, err := q.open(ctx, fh, true)
	if err != nil {
		return err
	}
	if s.tooBig {
		return ErrFBig
	}
	// open(O_TRUNC) asks for the time of the change, of an empty file for
	// nothing else; that needs no more rights than the change.
	s.set.MtimeByWriter = true
	// As WRITE: the client checked when its program opened the file.
	s.set.SizeByOwner = true
	a, err := q.s.fs.SetAttr(ctx, &q.cred, ino, s.set)
	if err != nil {
		if s.set.GuardCtimeNS != nil && errors.Is(err, vfs.ErrConflict) {
			return ErrNotSync
		}
		return err
	}
	q.ok()
	q.noteRights(&a, &s.set)
	q.wcc(&a)
	return nil
}

// Bits of ACCESS (RFC 1813 section 3.3.4).
const (
	accessRead    = 0x01
	accessLookup  = 0x02
	accessModify  = 0x04
	accessExtend  = 0x08
	accessDelete  = 0x10
	accessExecute = 0x20
)

// access is ACCESS (RFC 1813 section 3.3.4).
func access(ctx context.Context, q *request) error {
	fh := q.args.Opaque(maxHandle)
	want := q.args.Uint32()
	if err := q.decoded(); err != nil {
		return err
	}
	ino, err := q.open(ctx, fh, false)
	if err != nil {
		return err
	}
	a, err := q.stat(ctx, ino)
	if err != nil {
		return err
	}
	granted, err := q.granted(ctx, &a, want)
	if err != nil {
		return err
	}
	q.ok()
	q.postOp(&a)
	q.out.Uint32(granted)
	return nil
}

// granted returns which of the wanted rights the caller has.
func (q *request) granted(ctx context.Context, a *vfs.Attr, want uint32) (uint32, error) {
	modify, exec := uint32(accessModify|accessExtend), uint32(accessExecute)
	if a.IsDir() {
		modify, exec = accessModify|accessExtend|accessDelete, accessLookup
	}
	got := uint32(0)
	for _, right := range []struct{ bits, mask uint32 }{
		{accessRead, vfs.AccessRead},
		{modify, vfs.AccessWrite},
		{exec, vfs.AccessExec},
	} {
		bits := want & right.bits
		if bits == 0 || right.mask == vfs.AccessWrite && q.export.ReadOnly {
			continue
		}
		err := q.s.fs.Access(ctx, &q.cred, a.Ino, right.mask)
		switch {
		case err == nil:
			got |= bits
		case errors.Is(err, vfs.ErrAccess), errors.Is(err, vfs.ErrPerm), errors.Is(err, vfs.ErrReadOnly):
		default:
			return 0, err
		}
	}
	return got, nil
}

// fsstat is FSSTAT (RFC 1813 section 3.3.18).
func fsstat(ctx context.Context, q *request) error {
	ino, err := q.only(ctx)
	if err != nil {
		return err
	}
	a, err := q.stat(ctx, ino)
	if err != nil {
		return err
	}
	st, err := q.s.fs.StatFS(ctx)
	if err != nil {
		return err
	}
	q.ok()
	q.postOp(&a)
	q.out.Uint64(uint64(st.TotalBytes))
	q.out.Uint64(uint64(st.TotalBytes - st.UsedBytes)) // df shows the rest as used
	q.out.Uint64(uint64(st.FreeBytes))
	q.out.Uint64(st.Files + st.FreeFiles)
	q.out.Uint64(st.FreeFiles)
	q.out.Uint64(st.FreeFiles)
	q.out.Uint32(0) // invarsec: may change at any time
	return nil
}

// only decodes the argument of a procedure that takes one handle.
func (q *request) only(ctx context.Context) (vfs.Ino, error) {
	fh := q.args.Opaque(maxHandle)
	if err := q.decoded(); err != nil {
		return 0, err
	}
	return q.open(ctx, fh, false)
}

// Properties of FSINFO (RFC 1813 section 3.3.19): hard links, symbolic
// links, PATHCONF is the same everywhere, times can be set.
const fsProperties = 0x01 | 0x02 | 0x08 | 0x10

// transferMultiple is the suggested multiple of transfers: a page.
const transferMultiple = 4096

// fsinfo is FSINFO (RFC 1813 section 3.3.19).
func fsinfo(ctx context.Context, q *request) error {
	ino, err := q.only(ctx)
	if err != nil {
		return err
	}
	a, err := q.stat(ctx, ino)
	if err != nil {
		return err
	}
	q.ok()
	q.postOp(&a)
	for range 2 { // reading, then writing
		q.out.Uint32(maxTransfer)
		q.out.Uint32(maxTransfer)
		q.out.Uint32(transferMultiple)
	}
	q.out.Uint32(maxDirReply)
	q.out.Uint64(vfs.MaxFileBytes)
	q.out.Uint32(0) // times are kept to the nanosecond
	q.out.Uint32(1)
	q.out.Uint32(fsProperties)
	return nil
}

// pathconf is PATHCONF (RFC 1813 section 3.3.20).
func pathconf(ctx context.Context, q *request) error {
	ino, err := q.only(ctx)
	if err != nil {
		return err
	}
	a, err := q.stat(ctx, ino)
	if err != nil {
		return err
	}
	q.ok()
	q.postOp(&a)
	q.out.Uint32(vfs.MaxLinks)
	q.out.Uint32(vfs.MaxPosixNameBytes)
	q.out.Bool(true)  // no_trunc
	q.out.Bool(true)  // chown_restricted
	q.out.Bool(false) // case_insensitive
	q.out.Bool(true)  // case_preserving
	return nil
}

package nfsserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
	"ogw/vfs"
)

const (
	// maxNameArg is the longest name that is decoded at all; longer ones than
	// a file can have are answered with NAMETOOLONG.
	maxNameArg = 4096
	// maxPathArg bounds a symbolic link's target.
	maxPathArg = 8192
)

// request is one NFS call on its way through a procedure.
type request struct {
	s      *Server
	call   *rpc.Call
	args   *xdr.Reader
	out    *rpc.Reply
	cred   vfs.Cred
	export *export
	// detail for the log: what the call was about.
	ino  vfs.Ino
	gen  uint32
	name string
	// second is what the second handle of RENAME and LINK names, 0 of others.
	second vfs.Ino
	// of RENAME: where to
	toDir  vfs.Ino
	toName string
	bucket bool // the mode or the owner of a bucket was set
}

// decoded ends the decoding of arguments.
func (q *request) decoded() error {
	if err := q.args.Err(); err != nil {
		return fmt.Errorf("%w: %w", rpc.ErrGarbageArgs, err)
	}
	return nil
}

// open resolves the file handle of a call: whose rights apply, and to which
// inode, which must lie in the export. With write, the export must allow
// changes.
func (q *request) open(ctx context.Context, fh []byte, write bool) (vfs.Ino, error) {
	h, err := q.s.sealer.parse(fh)
	if err != nil {
		return 0, err
	}
	x := q.s.exports.Load().byID[h.export]
	if x == nil {
		return 0, ErrStale // revoked
	}
	if !x.allows(q.call.Remote, time.Now()) {
		return 0, ErrAcces
	}
	if write && x.ReadOnly {
		return 0, ErrROFS
	}
	if err := q.s.border.check(ctx, x, h.ino); err != nil {
		return 0, err
	}
	switch q.export {
	case nil:
		q.export = x
		q.ino, q.gen = h.ino, h.gen
		x.cred(&q.cred, &q.call.Cred)
	case x:
		q.second = h.ino
	default:
		return 0, ErrXDev
	}
	return h.ino, nil
}

// orStale is the error of a call that failed with err: ErrStale if it found nothing since what
// one of its handles names was removed. An inode without links may stay for a while, and in its
// directory nothing exists then, for programs of a mount. A client that is told so takes the
// name for absent; when its handle is stale it looks up the path again, where there may be
// another directory by now.
func (q *request) orStale(ctx context.Context, err error) error {
	if !errors.Is(err, vfs.ErrNotExist) {
		return err
	}
	for _, ino := range [...]vfs.Ino{q.ino, q.second} {
		if ino == 0 {
			continue
		}
		if a, failed := q.s.fs.GetAttr(ctx, ino); removed(&a, failed) {
			return fmt.Errorf("%w: %w", ErrStale, err)
		}
	}
	return err
}

// handle encodes the handle of a file found through this call.
func (q *request) handle(a *vfs.Attr) {
	q.out.Uint32(handleBytes)
	q.out.B = q.s.sealer.append(q.out.B, handle{q.export.id, a.Ino, a.Gen})
}

func (q *request) ok() { q.out.Uint32(uint32(OK)) }

func (q *request) postOp(a *vfs.Attr) { putPostOp(&q.out.Writer, a, q.s.sealer.fsid) }

// wcc writes wcc_data without attributes from before.
func (q *request) wcc(a *vfs.Attr) { putWcc(&q.out.Writer, nil, a, q.s.sealer.fsid) }

// stat returns the attributes of the file that the call's first handle names.
func (q *request) stat(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	a, err := q.s.fs.GetAttr(ctx, ino)
	if err == nil && a.Gen != q.gen {
		err = ErrStale
	}
	return a, err
}

// postOpOf writes the attributes of ino as a post_op_attr, or that they are unavailable.
func (q *request) postOpOf(ctx context.Context, ino vfs.Ino) {
	if a, err := q.s.fs.GetAttr(ctx, ino); err == nil {
		q.postOp(&a)
	} else {
		q.postOp(nil)
	}
}

// wccOf writes those of ino as wcc_data.
func (q *request) wccOf(ctx context.Context, ino vfs.Ino) {
	q.out.Bool(false) // none from before
	q.postOpOf(ctx, ino)
}

// dirop is a diropargs3: a directory and a name in it.
type dirop struct {
	fh   []byte
	name string
}

func (q *request) dirop() dirop {
	return dirop{fh: q.args.Opaque(maxHandle), name: q.args.String(maxNameArg)}
}

// openDir resolves the directory of a dirop that makes or removes an entry.
func (q *request) openDir(ctx context.Context, d dirop) (vfs.Ino, error) {
	q.name = d.name
	dir, err := q.open(ctx, d.fh, true)
	if err != nil {
		return 0, err
	}
	return dir, checkName(d.name)
}

// checkName refuses what no entry can be called. RFC 1813 section 3.2 asks
// for ACCES where a name is empty.
func checkName(name string) error {
	switch {
	case name == "":
		return ErrAcces
	case len(name) > vfs.MaxPosixNameBytes:
		return ErrNameTooLong
	case strings.ContainsAny(name, "/\x00"):
		return ErrInval
	}
	return nil
}

// once returns a context for the change that the call asks for. The duplicate
// cache of the rpc package is gone when the process dies; what a call changed
// is not, and its repetition by the client must not fail for it.
func (q *request) once(ctx context.Context) context.Context {
	return vfs.WithToken(ctx, &vfs.Token{ID: q.call.Identity()})
}

func isDots(name string) bool { return name == "." || name == ".." }

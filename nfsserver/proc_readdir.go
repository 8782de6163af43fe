package nfsserver

import (
	"context"
	"errors"

	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
	"ogw/vfs"
)

// listing is a READDIR or READDIRPLUS call.
type listing struct {
	q      *request
	dir    vfs.Ino
	cookie uint64
	plus   bool
	// limit is how long the reply may get; names how long the names, inode
	// numbers and cookies in it (RFC 1813 section 3.3.17: dircount).
	limit, names int
	attr         vfs.Attr // of the directory

	w       xdr.Writer // entries, in a buffer that never grows
	buf     *rpc.Buffer
	block   *cookieBlock
	entries int
	full    bool
}

// readdir is READDIR (RFC 1813 section 3.3.16).
func readdir(ctx context.Context, q *request) error {
	fh := q.args.Opaque(maxHandle)
	l := &listing{q: q, cookie: q.args.Uint64()}
	q.args.Uint64() // the verifier: cookies stay valid whatever changes
	l.limit = clampDir(q.args.Uint32())
	l.names = l.limit
	return l.run(ctx, fh)
}

// readdirplus is READDIRPLUS (RFC 1813 section 3.3.17).
func readdirplus(ctx context.Context, q *request) error {
	fh := q.args.Opaque(maxHandle)
	l := &listing{q: q, plus: true, cookie: q.args.Uint64()}
	q.args.Uint64()
	l.names = clampDir(q.args.Uint32())
	l.limit = clampDir(q.args.Uint32())
	return l.run(ctx, fh)
}

func clampDir(n uint32) int { return int(max(minDirReply, min(n, maxDirReply))) }

func (l *listing) run(ctx context.Context, fh []byte) error {
	q := l.q
	if err := q.decoded(); err != nil {
		return err
	}
	var err error
	if l.dir, err = q.open(ctx, fh, false); err != nil {
		return err
	}
	if l.attr, err = q.stat(ctx, l.dir); err != nil {
		return err
	}
	if !l.attr.IsDir() {
		return ErrNotDir
	}
	q.ok()
	q.postOp(&l.attr)
	q.out.Uint64(0) // cookieverf
	l.block = &cookieBlock{dir: l.dir, start: l.cookie}
	// Behind the entries stand the end of the list and the end-of-directory flag.
	l.limit -= q.out.Len() + 8
	l.buf = rpc.GetBuffer(l.limit + 8)
	l.w.B = l.buf.B[:0]
	done, err := l.fill(ctx)
	if err == nil && l.entries == 0 && !done {
		err = ErrTooSmall
	}
	if err != nil {
		l.buf.Free()
		return err
	}
	if l.cookie == 0 && !q.export.ReadOnly {
		q.s.fs.Accessed(ctx, l.dir)
	}
	l.w.Uint32(0)
	l.w.Bool(done)
	l.buf.B = l.w.B
	q.out.Payload(l.buf)
	q.s.cookies.put(l.block)
	return nil
}

// fill encodes entries until the reply is full or the directory ends.
func (l *listing) fill(ctx context.Context) (done bool, err error) {
	if err := l.dots(ctx); err != nil || l.full {
		return false, err
	}
	after, err := l.position(ctx)
	if err != nil {
		return false, err
	}
	err = l.q.s.fs.ReadDir(ctx, &l.q.cred, l.dir, vfs.ReadDirOptions{After: after, Few: l.most(), Attrs: l.plus}, func(e vfs.DirEntry) error {
		cookie := l.q.s.sealer.cookie(e.Pos)
		if !l.add(e.Name, e.Ino, cookie, e.Attr) {
			return errFull
		}
		l.block.add(cookie, e.Pos)
		return nil
	})
	if errors.Is(err, errFull) {
		return false, nil
	}
	return err == nil, err
}

// most is how many entries fit in what is left of the reply, if their names
// are short.
func (l *listing) most() int {
	dirBytes, size := l.entryBytes(1, true)
	return min(l.names/dirBytes, (l.limit-l.w.Len())/size) + 1 // one shows that it is full
}

// errFull ends a scan when the reply is full.
var errFull = errors.New("nfs: reply is full")

// dots adds "." and ".." where the listing begins with them. They have attributes for those,
// too, who may not search the directory: its own stand in the reply in any case, and its
// handle was looked up in its parent.
func (l *listing) dots(ctx context.Context) error {
	if l.cookie >= cookieDotDot {
		return nil
	}
	if l.cookie < cookieDot && !l.add(".", l.dir, cookieDot, &l.attr) {
		return nil
	}
	parent := l.parent(ctx)
	l.add("..", parent.Ino, cookieDotDot, &parent)
	return nil
}

// parent returns what ".." shows: for the export's root, and for a directory
// that is being moved out of the export, the directory itself.
func (l *listing) parent(ctx context.Context) vfs.Attr {
	root, err := l.q.s.border.root(ctx, l.q.export)
	if err != nil || l.dir == root || l.q.s.border.check(ctx, l.q.export, l.attr.Parent) != nil {
		return l.attr
	}
	a, err := l.q.s.fs.GetAttr(ctx, l.attr.Parent)
	if err != nil {
		return l.attr
	}
	return a
}

// position returns where the scan goes on. A cookie that is not remembered
// is looked for; if its entry is gone, too, the listing starts over: it may
// show entries again, but never misses one.
func (l *listing) position(ctx context.Context) (string, error) {
	if l.cookie <= cookieDotDot {
		return "", nil
	}
	if pos, ok := l.q.s.cookies.get(l.dir, l.cookie); ok {
		return pos, nil
	}
	found := ""
	err := l.q.s.fs.ReadDir(ctx, &l.q.cred, l.dir, vfs.ReadDirOptions{}, func(e vfs.DirEntry) error {
		if l.q.s.sealer.cookie(e.Pos) == l.cookie {
			found = e.Pos
			return errFull
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFull) {
		return "", err
	}
	return found, nil
}

// add encodes one entry, if it fits.
func (l *listing) add(name string, ino vfs.Ino, cookie uint64, a *vfs.Attr) bool {
	dirBytes, size := l.entryBytes(len(name), a != nil)
	if l.w.Len()+size > l.limit || dirBytes > l.names && l.entries > 0 {
		l.full = true
		return false
	}
	l.names -= dirBytes
	l.w.Uint32(1)
	l.w.Uint64(uint64(ino))
	l.w.String(name)
	l.w.Uint64(cookie)
	if l.plus {
		l.addPlus(a)
	}
	l.entries++
	return true
}

// entryBytes is the size of an entry, and of that what counts as names.
func (l *listing) entryBytes(name int, attributes bool) (dirBytes, size int) {
	dirBytes = 4 + 8 + 4 + name + xdr.Pad(name) + 8
	size = dirBytes
	if l.plus {
		size += 4 + 4
		if attributes {
			size += attrBytes + 4 + handleBytes
		}
	}
	return dirBytes, size
}

// addPlus encodes attributes and handle, or that there are none: because the entry vanished
// concurrently, or the caller may not search the directory, in which LOOKUP gives nothing.
func (l *listing) addPlus(a *vfs.Attr) {
	putPostOp(&l.w, a, l.q.s.sealer.fsid)
	if a == nil {
		l.w.Uint32(0)
		return
	}
	l.w.Uint32(1)
	l.w.Uint32(handleBytes)
	l.w.B = l.q.s.sealer.append(l.w.B, handle{l.q.export.id, a.Ino, a.Gen})
}

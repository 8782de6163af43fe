package nfsserver

import (
	"context"
	"errors"
	"io"
	"os"

	"ogw/nfsserver/rpc"
	"ogw/vfs"
)

// read is READ (RFC 1813 section 3.3.6).
func read(ctx context.Context, q *request) error {
	fh := q.args.Opaque(maxHandle)
	off := q.args.Uint64()
	count := q.args.Uint32()
	if err := q.decoded(); err != nil {
		return err
	}
	ino, err := q.open(ctx, fh, false)
	if err != nil {
		return err
	}
	f, before, err := q.openFile(ctx, ino, false)
	if err != nil {
		return err
	}
	defer q.s.files.release(f)
	n, ended, err := q.readData(ctx, f, off, int(min(count, maxTransfer)))
	if err != nil {
		return err
	}
	if n > 0 && !q.export.ReadOnly {
		f.file.Accessed(ctx)
	}
	a, err := afterRead(ctx, f, before)
	if err != nil {
		q.out.Reset()
		return err
	}
	end := off + uint64(n)
	eof := end >= uint64(a.Size)
	if before != nil { // what was read may be newer, and longer
		eof = ended || end == uint64(a.Size)
	}
	q.ok()
	q.postOp(&a)
	q.out.Uint32(uint32(n))
	q.out.Bool(eof)
	q.out.Uint32(uint32(n))
	return nil
}

// pagesFrom is the READ from which on a pipe is cheaper than copies.
const pagesFrom = 64 << 10

// readData has the reply end with up to count bytes of f from off on, and returns how many;
// ended reports whether f has no more behind them.
func (q *request) readData(ctx context.Context, f *openFile, off uint64, count int) (n int, ended bool, err error) {
	if off > vfs.MaxFileBytes {
		return 0, true, nil
	}
	// A pipe holds so much of whole pages.
	if count >= pagesFrom && off%uint64(os.Getpagesize()) == 0 {
		n = q.call.Pages(func(w int) (int64, error) { return f.file.Splice(ctx, w, int64(off), int64(count)) })
	}
	if n > 0 {
		return n, n < count, nil
	}
	buf := rpc.GetBuffer(count)
	n, err = f.file.ReadAt(ctx, buf.B, int64(off))
	ended = errors.Is(err, io.EOF)
	if err != nil && !ended {
		buf.Free()
		return 0, false, q.ioError(f, err)
	}
	buf.B = buf.B[:n]
	q.out.Payload(buf)
	return n, ended, nil
}

// afterRead returns the attributes to send with what was read. Where other processes
// change the file, they are from before: bytes that are newer than the attributes are read
// again when the client sees newer ones, and older bytes it would keep.
func afterRead(ctx context.Context, f *openFile, before *vfs.Attr) (vfs.Attr, error) {
	if before != nil {
		return *before, nil
	}
	return f.file.Attr(ctx)
}

// openFile returns the open file that a READ or WRITE is about, after a check of the
// caller's rights. The caller releases it. Where other processes change the file, what is
// read then is at least as new as the attributes that it returns.
func (q *request) openFile(ctx context.Context, ino vfs.Ino, write bool) (f *openFile, before *vfs.Attr, err error) {
	if f, err = q.s.files.acquire(ctx, ino); err != nil {
		return nil, nil, err
	}
	var storedNS int64
	if !q.s.fs.Exclusive() {
		a, ns, err := f.file.Refresh(ctx)
		if err != nil {
			_ = q.ioError(f, err)
			q.s.files.release(f)
			return nil, nil, err
		}
		before, storedNS = &a, ns
	}
	if err := q.s.files.check(ctx, f, &q.cred, write, storedNS); err != nil {
		q.s.files.release(f)
		return nil, nil, err
	}
	return f, before, nil
}

// ioError has the file opened anew by the next call, whatever went wrong.
func (q *request) ioError(f *openFile, err error) error {
	q.s.files.discard(f)
	return err
}

// Stabilities of WRITE (stable_how, RFC 1813 section 3.3.7).
const (
	unstable = 0
	dataSync = 1
	fileSync = 2
)

// write is WRITE (RFC 1813 section 3.3.7). Unstable data is buffered by the
// vfs and streams to the store in the background.
func write(ctx context.Context, q *request) error {
	fh := q.args.Opaque(maxHandle)
	off := q.args.Uint64()
	count := q.args.Uint32()
	stable := q.args.Uint32()
	data := q.args.Opaque(maxTransfer)
	if stable > fileSync {
		q.args.Fail(ErrInval)
	}
	if err := q.decoded(); err != nil {
		return err
	}
	ino, err := q.open(ctx, fh, true)
	if err != nil {
		return err
	}
	data = data[:min(len(data), int(count))]
	if off > vfs.MaxFileBytes-uint64(len(data)) {
		return ErrFBig
	}
	f, before, verifier, err := q.writeOpen(ctx, ino, data, int64(off))
	if err != nil {
		return err
	}
	defer q.s.files.release(f)
	committed := uint32(unstable)
	if stable != unstable {
		if err := q.s.files.sync(ctx, f); err != nil {
			return err
		}
		committed = fileSync
	}
	a, err := f.file.Attr(ctx)
	if err != nil {
		return err
	}
	q.ok()
	q.wccBeside(before, &a)
	q.out.Uint32(uint32(len(data)))
	q.out.Uint32(committed)
	q.out.Uint64(verifier)
	return nil
}

// writeOpen writes data to the file that is kept open for ino and returns it,
// with the verifier as it was before: if data is lost at any time afterwards,
// the client sees another one at COMMIT; and the attributes as of openFile. The caller
// releases the file.
//
// A file that was written before an object PUT replaced its content stays
// stale for its writer. Here that says nothing of this client, unless data
// was not committed yet: the file is opened anew.
func (q *request) writeOpen(ctx context.Context, ino vfs.Ino, data []byte, off int64) (*openFile, *vfs.Attr, uint64, error) {
	for first := true; ; first = false {
		f, before, err := q.openFile(ctx, ino, true)
		if err != nil {
			return nil, nil, 0, err
		}
		verifier := q.s.writeVerifier()
		committed := !f.unstable.Load()
		n, err := f.file.WriteAtFor(ctx, &q.cred, data, off)
		if err == nil {
			f.unstable.Store(true)
			return f, before, verifier, nil
		}
		if n > 0 {
			q.s.log.Debug("nfs: short write", "inode", uint64(ino), "bytes", n, "err", err)
		}
		_ = q.ioError(f, err)
		q.s.files.release(f)
		if !first || !committed || !errors.Is(err, vfs.ErrStale) {
			return nil, nil, 0, err
		}
	}
}

// commit is COMMIT (RFC 1813 section 3.3.21). It commits the whole file,
// which the range asked for is a part of.
func commit(ctx context.Context, q *request) error {
	fh := q.args.Opaque(maxHandle)
	q.args.Uint64()
	q.args.Uint32()
	if err := q.decoded(); err != nil {
		return err
	}
	ino, err := q.open(ctx, fh, true)
	if err != nil {
		return err
	}
	if f := q.s.files.peek(ino); f != nil {
		err = q.s.files.sync(ctx, f)
		q.s.files.release(f)
	} else {
		// Closed meanwhile, which flushed it; another File may be dirty.
		err = q.s.fs.SyncInode(ctx, ino)
	}
	if err != nil {
		return err
	}
	a, err := q.stat(ctx, ino)
	if err != nil {
		return err // it is gone, and what was written with it
	}
	// The verifier is read last: a loss that anyone noticed up to now shows.
	q.s.files.awaitCloses(ino)
	q.ok()
	q.wcc(&a)
	q.out.Uint64(q.s.writeVerifier())
	return nil
}

package fusemount

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// Read fills pages, or the caller's buffer under O_DIRECT.
func (f *rawFS) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	h := f.files.get(in.Fh)
	if h == nil {
		return nil, fuse.EBADF
	}
	if in.Offset > math.MaxInt64 {
		return nil, fuse.EINVAL
	}
	n, err := h.read(ctx, buf[:min(len(buf), int(in.Size))], int64(in.Offset))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, f.status("read", &in.InHeader, err)
	}
	if n < int(in.Size) {
		f.pages.endsAt(h.ino, int64(in.Offset)+int64(n))
	}
	if n > 0 && in.Flags&unix.O_NOATIME == 0 && !f.quiet.Load() {
		h.file.Accessed(ctx)
	}
	return inPlace(buf[:n]), fuse.OK
}

// inPlace is what was read into the buffer for it. The ring's buffer is where the
// answer has to be; go-fuse's own result would be copied onto itself.
type inPlace []byte

func (p inPlace) Size() int                          { return len(p) }
func (p inPlace) Bytes([]byte) ([]byte, fuse.Status) { return p, fuse.OK }
func (p inPlace) Done()                              {}

// Readv is how go-fuse fills the ring's buffer.
func (p inPlace) Readv(dst [][]byte) (int, fuse.Status) {
	if len(p) > 0 && len(dst) == 1 && len(dst[0]) >= len(p) && &dst[0][0] == &p[0] {
		return len(p), fuse.OK
	}
	n := 0
	for _, d := range dst {
		n += copy(d, p[n:])
	}
	return n, fuse.OK
}

// Writev is not used: data comes in one piece from the kernel.
func (f *rawFS) Writev(cancel <-chan struct{}, in *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	if len(data) == 1 {
		return f.Write(cancel, in, data[0])
	}
	return 0, fuse.ENOSYS
}

// Write stores bytes. With O_APPEND they go to the true end of the file,
// which the kernel may not know yet.
func (f *rawFS) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	h := f.files.get(in.Fh)
	if h == nil {
		return 0, fuse.EBADF
	}
	if in.Offset > math.MaxInt64-uint64(len(data)) {
		return 0, fuse.Status(syscall.EFBIG)
	}
	if h.direct { // others are told, and perhaps the disk is waited for
		defer f.surv.answering(&in.InHeader)()
	}
	n, done := f.surv.wrote(&in.InHeader)
	if !done && h.lost.Load() {
		return 0, fuse.EIO
	}
	var err error
	if !done {
		n, err = f.write(ctx, h, in, data)
	}
	if n > 0 && h.syncs(in) { // also if it was done by a server before
		f.mayWait(&in.InHeader)
		if err = f.save(ctx, in.Fh, h); err != nil {
			n = 0
		}
	}
	if err != nil && n == 0 {
		return 0, f.status("write", &in.InHeader, err)
	}
	return uint32(n), fuse.OK
}

// syncs reports whether a write is to be durable when it is answered, with O_DSYNC (which is part of
// O_SYNC), RWF_DSYNC or a mount with sync. What goes through pages, the kernel follows with an fsync.
func (h *fileHandle) syncs(in *fuse.WriteIn) bool {
	return h.direct && in.WriteFlags&fuse.WRITE_CACHE == 0 && in.Flags&unix.O_DSYNC != 0
}

// write is Write of what was not done yet, and not made durable.
func (f *rawFS) write(request *request, h *fileHandle, in *fuse.WriteIn, data []byte) (n int, err error) {
	// Behind the write: a flush meanwhile (of a descriptor that another process
	// inherited) may not have all of it.
	cached := in.WriteFlags&fuse.WRITE_CACHE != 0
	defer h.wrote(cached)
	if !cached && in.WriteFlags&fuse.WRITE_KILL_SUIDGID != 0 {
		if err := f.killSetID(h, &in.InHeader); err != nil {
			return 0, err
		}
	}
	var ctx context.Context = request
	if cached {
		// It may be somebody else's data. Its pages are locked, and if superblocks
		// waited for one another, others' with them: they learn of it before fsync
		// or close is answered.
		ctx = f.late
		defer f.lateChanges.Add(1)
	}
	if f.surv != nil {
		ctx = vfs.WithWriteTag(ctx, in.Unique&^resentBit)
	}
	if in.Flags&unix.O_APPEND != 0 && !cached {
		n, err = f.appendTo(ctx, h, in, data)
	} else {
		n, err = h.file.WriteAt(ctx, data, int64(in.Offset))
	}
	if n > 0 {
		f.surv.bind(ctx, in.Fh, h)
		f.pages.wrote(h.ino, int64(in.Offset)+int64(n))
	}
	if n > 0 && h.direct && !cached {
		// The kernel dropped the pages before the write, and a reader of another
		// handle may have brought them back.
		f.dropWritten(h.ino, func() { f.inv.part(h.ino, int64(in.Offset), int64(n)) })
	}
	return n, err
}

// dropWritten drops the pages of what was written. One may be locked for a READ that nobody
// has taken from the kernel since all who take requests are here: it is dropped when that is
// answered then. Beside others, where all writes come here, the next open or answer with
// attributes drops it, too.
func (f *rawFS) dropWritten(ino vfs.Ino, drop func()) {
	told := f.inv.atOnce
	if f.beside {
		told = f.inv.inTime
	}
	if !told(drop) {
		f.doubt(ino)
		f.opt.Logger.Warn("what was written is told late to readers through pages", "inode", ino, "wait", tellWait)
	}
}

// appendTo is Write with O_APPEND.
func (f *rawFS) appendTo(ctx context.Context, h *fileHandle, in *fuse.WriteIn, data []byte) (n int, err error) {
	if f.beside { // it is stored at once, and not kept by the ledger until it is
		ctx = f.once(ctx, &in.InHeader)
	}
	off, err := h.file.Append(ctx, data)
	switch {
	case errors.Is(err, vfs.ErrDone): // at a place that is not known
	case err != nil:
		return 0, err
	case off == int64(in.Offset):
		return len(data), nil
	}
	// The kernel put the bytes at its own idea of the end.
	f.inv.changes.Add(1)
	f.inv.later(func() { f.inv.changed(h.ino, true) })
	return len(data), nil
}

// Flush is close(2) of one descriptor: errors of earlier writes must be reported
// now, and the process's POSIX locks on the file go.
func (f *rawFS) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	h := f.files.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	var err error
	if h.unsaved() {
		err = f.saveAtClose(h, &in.InHeader)
		f.forgetWritten(h)
	}
	f.awaitLate()
	stored := f.closeLocks(h, in.Fh, in.LockOwner)
	return f.status("flush", &in.InHeader, f.tellLost(in.Fh, h, cmp.Or(err, stored)))
}

// saveAtClose is what close(2) waits for.
func (f *rawFS) saveAtClose(h *fileHandle, in *fuse.InHeader) error {
	if f.closesBehind(h) {
		return h.file.SaveBehind(f.ctx, func() { f.mayWait(in) })
	}
	f.mayWait(in)
	return h.save(f.ctx)
}

// closesBehind reports whether h may be closed before what was written is stored. Beside
// others, who locks the file next, there, has to see it, through whichever handle it was
// locked here.
func (f *rawFS) closesBehind(h *fileHandle) bool {
	return f.opt.FlushBehind && (!f.beside || !f.lockers.locked(h.ino))
}

// awaitLate returns when other superblocks know of what was written late.
func (f *rawFS) awaitLate() {
	made := f.lateChanges.Load()
	if f.lateTold.Load() >= made {
		return
	}
	for _, o := range f.conn.others() {
		o.inv.drain()
	}
	f.lateTold.Store(made) // an older one of another call costs a needless wait
}

// Fsync is fsync and fdatasync.
func (f *rawFS) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	h := f.files.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	return f.status("fsync", &in.InHeader, f.save(ctx, in.Fh, h))
}

// save makes durable what was written before, and known to other superblocks.
func (f *rawFS) save(ctx context.Context, fh uint64, h *fileHandle) error {
	err := h.save(ctx)
	f.forgetWritten(h)
	f.awaitLate()
	return f.tellLost(fh, h, err)
}

// Release is the end of the last descriptor of one open.
func (f *rawFS) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	h := f.files.remove(in.Fh)
	if h == nil {
		return
	}
	f.sizes.closed(h.ino)
	end := h.file.Close
	if f.closesBehind(h) {
		end = h.file.CloseBehind
	}
	err := f.dropLocks(h, in.Fh)
	f.status("release", &in.InHeader, errors.Join(err, end(f.ctx))) // nobody waits for the answer: log it
	f.files.forget(in.Fh)
}

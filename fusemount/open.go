package fusemount

import (
	"context"
	"errors"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// openFlags translates open(2). Reading is always possible: the kernel fills
// pages through whatever handle it has. O_APPEND and O_SYNC are seen at each
// write.
func openFlags(flags uint32) vfs.OpenFlags {
	o := vfs.OpenRead
	if flags&unix.O_ACCMODE != unix.O_RDONLY {
		o |= vfs.OpenWrite
	}
	if flags&unix.O_TRUNC != 0 {
		o |= vfs.OpenTrunc
	}
	return o
}

// reopened returns what a request that is sent again opened already, nil if it
// did not.
func (f *rawFS) reopened(in *fuse.InHeader, out *fuse.OpenOut) *fileHandle {
	fh, done := f.surv.opened(in)
	if !done {
		return nil
	}
	h := f.files.get(fh)
	if h == nil {
		return nil
	}
	out.Fh = fh
	out.OpenFlags |= h.flags()
	return h
}

// recreated is reopened for a request that also makes the file.
func (f *rawFS) recreated(ctx context.Context, in *fuse.InHeader, out *fuse.CreateOut, at moment) (done bool, err error) {
	h := f.reopened(in, &out.OpenOut)
	if h == nil {
		return false, nil
	}
	at.open = true
	a, err := f.fs.GetAttr(ctx, h.ino)
	if err == nil {
		err = f.fillEntry(&a, &out.EntryOut, at)
	}
	return true, err
}

// untold reports whether the kernel need not tell of each close of a file that is opened with
// flags, for which the program waits. Nothing was written through it that must be stored then; but
// POSIX locks end. So closes of files that somebody has locked here are told, and those beside
// others, where each look at a lock costs a request to the store. Who locks the file first through
// such a handle may have given that up at any time (lock.Ends.Untold).
func (f *rawFS) untold(ino vfs.Ino, flags uint32) bool {
	return flags&unix.O_ACCMODE == unix.O_RDONLY && !f.beside && !f.opt.Writeback && !f.lockers.known(ino)
}

// addFile gives a file that c opened its number, or closes it.
func (f *rawFS) addFile(in *fuse.InHeader, c *vfs.Cred, flags uint32, file *vfs.File, out *fuse.OpenOut) (err error) {
	ino := file.Ino()
	if f.surv != nil {
		file.KeepWith(f.surv)
	}
	f.sizes.opened(ino)
	h := &fileHandle{ino: ino, file: file}
	h.direct = f.direct && flags&unix.O_ACCMODE != unix.O_RDONLY && (f.beside || !f.primary.Load() || f.conn.several())
	if flags&unix.O_ACCMODE != unix.O_RDONLY {
		f.cached.counts(h)
	}
	h.untold = f.untold(ino, flags)
	out.OpenFlags |= h.flags()
	h.record = openRecord(openFlags(flags), c.UID() != 0, h.direct)
	if flags&unix.O_NOATIME != 0 {
		h.record |= recordNoAtime
	}
	if flags&unix.O_DSYNC != 0 || f.opt.sync() {
		h.record |= recordSync
	}
	if out.Fh, err = f.files.add(h, uint64(ino), h.record, in.Unique&^resentBit); err != nil {
		f.sizes.closed(ino)
		return errors.Join(err, file.Close(f.ctx))
	}
	return nil
}

// Create makes a file and opens it. The kernel asks only when it believes
// that the name is free; if it is not, ESTALE makes it look again and open
// what is there, with its own checks.
func (f *rawFS) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	at := f.moment()
	c, flags := credUmask(&in.InHeader, in.Umask), openFlags(in.Flags)
	if done, err := f.recreated(ctx, &in.InHeader, out, at); done {
		return f.status("create", &in.InHeader, err)
	}
	a, file, _, err := f.fs.Create(f.once(ctx, &in.InHeader), c, f.ino(in.NodeId), name,
		vfs.CreateOptions{Mode: in.Mode & vfs.ModePermMask, Flags: flags, Exclusive: true})
	if errors.Is(err, vfs.ErrDone) {
		if a, err = f.fs.Lookup(ctx, c, f.ino(in.NodeId), name); err == nil {
			file, err = f.fs.Open(ctx, c, a.Ino, flags)
		}
		if err != nil { // gone again: the kernel begins anew
			err = errors.Join(vfs.ErrStale, err)
		}
	}
	if err != nil {
		if errors.Is(err, vfs.ErrExist) && in.Flags&unix.O_EXCL == 0 {
			return fuse.Status(syscall.ESTALE)
		}
		return f.status("create", &in.InHeader, err)
	}
	at.open = true
	if err := f.fillEntry(&a, &out.EntryOut, at); err != nil {
		return f.status("create", &in.InHeader, errors.Join(err, file.Close(f.ctx)))
	}
	f.pages.opened(&a, &out.OpenOut)
	return f.status("create", &in.InHeader, f.addFile(&in.InHeader, c, in.Flags, file, &out.OpenOut))
}

// Tmpfile is open(2) with O_TMPFILE.
func (f *rawFS) Tmpfile(cancel <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	at := f.moment()
	c, flags := credUmask(&in.InHeader, in.Umask), openFlags(in.Flags)
	if done, err := f.recreated(ctx, &in.InHeader, out, at); done {
		return f.status("tmpfile", &in.InHeader, err)
	}
	a, file, err := f.fs.OpenTemp(ctx, c, f.ino(in.NodeId), in.Mode&vfs.ModePermMask, flags)
	if err != nil {
		return f.status("tmpfile", &in.InHeader, err)
	}
	at.open = true
	if err := f.fillEntry(&a, &out.EntryOut, at); err != nil {
		return f.status("tmpfile", &in.InHeader, errors.Join(err, file.Close(f.ctx)))
	}
	return f.status("tmpfile", &in.InHeader, f.addFile(&in.InHeader, c, in.Flags, file, &out.OpenOut))
}

// Open opens a regular file.
func (f *rawFS) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	ino := f.ino(in.NodeId)
	c, flags := cred(&in.InHeader), openFlags(in.Flags)
	if flags&vfs.OpenWrite != 0 && in.Flags&unix.O_APPEND == 0 {
		flags |= vfs.OpenAnywhere
	}
	if f.reopened(&in.InHeader, out) != nil {
		return fuse.OK
	}
	f.sizes.opened(ino) // before its size is read: who changes it later informs the kernel
	defer f.sizes.closed(ino)
	file, err := f.fs.Open(f.once(ctx, &in.InHeader), c, ino, flags)
	if errors.Is(err, vfs.ErrDone) { // it was cut
		file, err = f.fs.Open(ctx, c, ino, flags&^vfs.OpenTrunc)
	}
	if err != nil {
		return f.status("open", &in.InHeader, err)
	}
	if in.Flags&unix.O_TRUNC != 0 && in.Mode&fuse.OPEN_KILL_SUIDGID != 0 {
		if _, err := f.dropSetID(ino, &in.InHeader); err != nil {
			return f.status("open", &in.InHeader, errors.Join(err, file.Close(f.ctx)))
		}
		f.inv.attrChanged(ino) // also by the VFS
	}
	if err := f.keepPages(file, in.Flags, out); err != nil {
		return f.status("open", &in.InHeader, errors.Join(err, file.Close(f.ctx)))
	}
	return f.status("open", &in.InHeader, f.addFile(&in.InHeader, c, in.Flags, file, out))
}

// keepPages decides whether the kernel keeps its pages of a file over this open.
func (f *rawFS) keepPages(file *vfs.File, flags uint32, out *fuse.OpenOut) error {
	switch {
	case !f.pages.on:
		out.OpenFlags |= fuse.FOPEN_KEEP_CACHE
		return nil
	case flags&unix.O_TRUNC != 0: // what is known is from before
		f.doubt(file.Ino())
		return nil
	}
	a, err := file.Opened(f.ctx)
	if err == nil {
		f.pages.opened(&a, out)
	}
	return err
}

package fusemount

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/vfs"
	"ogw/vfs/lock"
)

func (f *rawFS) owner(id uint64) lock.Owner {
	return lock.Owner{Client: f.client, ID: string(binary.BigEndian.AppendUint64(nil, id))}
}

func (f *rawFS) lockOf(in *fuse.LkIn) (lock.Space, lock.Lock) {
	space := lock.Range
	if in.LkFlags&fuse.LK_FLOCK != 0 {
		space = lock.Flock
	}
	l := lock.Lock{Owner: f.owner(in.Owner), Start: in.Lk.Start, End: min(in.Lk.End, lock.EOF), PID: in.Lk.Pid}
	if in.Lk.Typ == unix.F_WRLCK {
		l.Type = lock.Exclusive
	}
	return space, l
}

// GetLk is F_GETLK.
func (f *rawFS) GetLk(cancel <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	space, l := f.lockOf(in)
	held, found, err := f.fs.Locks().TestSoon(ctx, uint64(f.ino(in.NodeId)), space, l)
	if err != nil {
		return f.status("getlk", &in.InHeader, err)
	}
	if !found {
		out.Lk = fuse.FileLock{Typ: unix.F_UNLCK}
		return fuse.OK
	}
	out.Lk = fuse.FileLock{Start: held.Start, End: held.End, Typ: unix.F_RDLCK}
	if f.ofThisMachine(held.Owner.Client) {
		out.Lk.Pid = held.PID
	}
	if held.Type == lock.Exclusive {
		out.Lk.Typ = unix.F_WRLCK
	}
	return fuse.OK
}

// ofThisMachine reports whether a client of locks is a mount of this process. The kernel takes
// the number of another one's process for that of one here.
func (f *rawFS) ofThisMachine(client string) bool {
	return client == f.client || slices.ContainsFunc(f.conn.others(), func(o *rawFS) bool { return o.client == client })
}

// SetLk is F_SETLK and flock with LOCK_NB.
func (f *rawFS) SetLk(_ <-chan struct{}, in *fuse.LkIn) fuse.Status { return f.setLk(nil, in) }

// SetLkw is F_SETLKW and flock.
func (f *rawFS) SetLkw(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status { return f.setLk(cancel, in) }

// setLk locks or unlocks; with cancel, it waits until that is closed or the
// caller has a signal to take.
func (f *rawFS) setLk(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	h := f.files.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	space, l := f.lockOf(in)
	ino, locks := uint64(h.ino), f.fs.Locks()
	var err error
	switch {
	case in.Lk.Typ == unix.F_UNLCK:
		err = f.storeLocked(h.ino, lockOwner{space, in.Owner})
		err = errors.Join(err, locks.Unlock(ctx, ino, space, lock.Lock{Owner: l.Owner, Start: l.Start, End: l.End}))
	case in.Lk.Typ != unix.F_RDLCK && in.Lk.Typ != unix.F_WRLCK:
		return fuse.Status(syscall.EINVAL)
	default:
		if l.Type != lock.Exclusive { // others get what was exclusive
			if err := f.storeLocked(h.ino, lockOwner{space, in.Owner}); err != nil {
				return f.status("setlk", &in.InHeader, err)
			}
		}
		if err := f.ownLocks(ctx, h, in.Fh, lockOwner{space, in.Owner}); err != nil {
			return f.status("setlk", &in.InHeader, err)
		}
		locks.Closed(ino, l.Owner)
		if cancel == nil {
			err = locks.TryLockSoon(ctx, ino, space, l)
		} else {
			err = f.waitForLock(ctx, cancel, in, ino)
		}
		if h.untold { // also if it failed: the owner may have other locks
			locks.Untold(ino, l.Owner)
		}
	}
	return f.status("setlk", &in.InHeader, err)
}

// ownLocks notes through which handle an owner locks, also for the next server.
func (f *rawFS) ownLocks(ctx context.Context, h *fileHandle, fh uint64, o lockOwner) error {
	before, err := f.lockers.use(ctx, h, fh, o)
	if err != nil || f.surv == nil {
		return err
	}
	err = f.surv.book.Owners.Add(fh, uint8(o.space), o.id)
	if before != fh {
		f.forgetOwner(before, o)
	}
	return err
}

// storeLocked stores what was written to a file, through whichever handle, before an owner gives up
// what it may have locked there: beside others, who locks it next, there, has to see it, and what
// is stored later would go over what that one writes. Locks are given up also when it fails,
// which is reported: a program that stops to unlock would lock others out for ever.
func (f *rawFS) storeLocked(ino vfs.Ino, o lockOwner) error {
	if !f.beside || !f.lockers.locks(locker{ino, o}) {
		return nil
	}
	return f.fs.Flush(f.ctx, ino)
}

// waitForLock locks for a thread, which is looked at only if it has to wait.
func (f *rawFS) waitForLock(ctx context.Context, cancel <-chan struct{}, in *fuse.LkIn, ino uint64) error {
	space, l := f.lockOf(in)
	result := make(chan error, 1)
	giveUp, waiting, err := f.fs.Locks().LockFunc(ctx, ino, space, l, func(err error) { result <- err })
	if err != nil || !waiting {
		return err
	}
	ctx, stop := f.callers.wait(ctx, cancel, in.Pid)
	defer stop()
	return lock.Await(ctx, result, giveUp)
}

// closeLocks ends the POSIX locks of the process that closes a descriptor:
// all that it holds on the file, through whichever handle. Those of the open
// file itself end with its last descriptor, and the kernel reports later whether
// this one was: until then, who meets one waits a moment (lock.Ends).
func (f *rawFS) closeLocks(h *fileHandle, fh, owner uint64) error {
	err := f.storeLocked(h.ino, lockOwner{lock.Range, owner})
	f.lockers.forget(h, lockOwner{lock.Range, owner})
	f.fs.Locks().ReleaseOwner(uint64(h.ino), lock.Range, f.owner(owner))
	f.fs.Locks().Closed(uint64(h.ino), f.owner(owner))
	f.forgetOwner(fh, lockOwner{lock.Range, owner})
	for _, o := range h.owners.all() {
		f.fs.Locks().Closing(uint64(h.ino), f.owner(o.id))
	}
	return err
}

// forgetOwner has the next server know that an owner holds nothing by a file.
func (f *rawFS) forgetOwner(fh uint64, o lockOwner) {
	if f.surv != nil {
		f.surv.book.Owners.Remove(fh, uint8(o.space), o.id)
	}
}

// dropLocks ends the locks of the open file itself. What was written is stored before, as by storeLocked:
// by other handles, or through pages since its descriptors were closed.
func (f *rawFS) dropLocks(h *fileHandle, fh uint64) (err error) {
	owners, done := f.lockers.end(h)
	defer done()
	if f.beside && len(owners) > 0 {
		err = f.fs.Flush(f.ctx, h.ino)
	}
	for _, o := range owners {
		f.fs.Locks().ReleaseOwner(uint64(h.ino), o.space, f.owner(o.id))
		f.fs.Locks().Closed(uint64(h.ino), f.owner(o.id))
		f.forgetOwner(fh, o)
	}
	return err
}

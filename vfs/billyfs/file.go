package billyfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"ogw/vfs"
	"ogw/vfs/iofs"
	"ogw/vfs/lock"
)

// file is an open file. Like os.File, it is safe for concurrent use.
type file struct {
	fs     *files
	f      *vfs.File
	name   string
	append bool
	write  bool

	mu     sync.Mutex
	off    int64
	closed bool
	owner  lock.Owner // of its lock, zero before the first

	waiting context.Context    // of its calls of Lock, nil before the first
	stop    context.CancelFunc // which Close calls
}

func (f *file) Name() string { return f.name }

// check returns the error of a closed file or a bad offset. mu is held.
func (f *file) check(op string, off int64) error {
	if f.closed {
		return &os.PathError{Op: op, Path: f.name, Err: os.ErrClosed}
	}
	if off < 0 {
		return &os.PathError{Op: op, Path: f.name, Err: os.ErrInvalid}
	}
	return nil
}

// checkNow is check for who does not hold mu.
func (f *file) checkNow(op string, off int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.check(op, off)
}

func (f *file) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check("read", f.off); err != nil {
		return 0, err
	}
	n, err := f.readAt(p, f.off)
	f.off += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if err := f.checkNow("read", off); err != nil {
		return 0, err
	}
	n, err := f.readAt(p, off)
	if errors.Is(err, syscall.EBADF) { // not open for reading, or closed meanwhile
		err = cmp.Or(f.checkNow("read", off), err)
	}
	return n, err
}

func (f *file) readAt(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := f.f.ReadAt(f.fs.ctx, p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = iofs.PathError("read", f.name, err)
	}
	return n, err
}

func (f *file) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check("write", f.off); err != nil {
		return 0, err
	}
	if f.append {
		off, err := f.f.Append(f.fs.ctx, p)
		if err != nil {
			return 0, iofs.PathError("write", f.name, err)
		}
		f.off = off + int64(len(p))
		return len(p), nil
	}
	n, err := f.f.WriteAt(f.fs.ctx, p, f.off)
	f.off += int64(n)
	return n, iofs.PathError("write", f.name, err)
}

func (f *file) Seek(off int64, whence int) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check("seek", 0); err != nil {
		return 0, err
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		off += f.off
	case io.SeekEnd:
		a, err := f.f.Attr(f.fs.ctx)
		if err != nil {
			return 0, iofs.PathError("seek", f.name, err)
		}
		off += a.Size
	default:
		off = -1
	}
	if err := f.check("seek", off); err != nil {
		return 0, err
	}
	f.off = off
	return off, nil
}

// Truncate implements billy.File. The right to write was checked at opening.
func (f *file) Truncate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check("truncate", size); err != nil {
		return err
	}
	if !f.write {
		return iofs.PathError("truncate", f.name, vfs.ErrInvalid)
	}
	_, err := f.fs.vfs.SetAttr(f.fs.ctx, f.fs.cred.Checked(), f.f.Ino(), vfs.SetAttr{Size: &size})
	return iofs.PathError("truncate", f.name, err)
}

// Lock waits for the exclusive lock of the whole file, or until the file is closed.
func (f *file) Lock() error {
	f.mu.Lock()
	if err := f.check("lock", 0); err != nil {
		f.mu.Unlock()
		return err
	}
	if f.owner == (lock.Owner{}) {
		f.owner = lock.Owner{Client: f.fs.client, ID: fmt.Sprintf("%p", f)}
		f.waiting, f.stop = context.WithCancel(f.fs.ctx)
	}
	owner, ctx := f.owner, f.waiting
	f.mu.Unlock()
	err := f.fs.vfs.Locks().Lock(ctx, uint64(f.f.Ino()), lock.Flock, lock.Lock{Owner: owner, Type: lock.Exclusive})
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed { // a lock that was granted since would stay
		_ = f.unlock() // Close has reported what could not be stored
		return f.check("lock", 0)
	}
	return iofs.PathError("lock", f.name, err)
}

// Unlock implements billy.File.
func (f *file) Unlock() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check("unlock", 0); err != nil {
		return err
	}
	return iofs.PathError("unlock", f.name, f.unlock())
}

// unlock gives the lock up, if there may be one. Before, it stores what was written to the file, by
// whomever, where it is locked at other gateways, too; if that fails, it unlocks all the same.
func (f *file) unlock() (err error) {
	if f.owner == (lock.Owner{}) {
		return nil
	}
	if !f.fs.vfs.Exclusive() {
		err = f.fs.vfs.Flush(f.fs.ctx, f.f.Ino())
	}
	f.fs.vfs.Locks().ReleaseOwner(uint64(f.f.Ino()), lock.Flock, f.owner)
	return err
}

func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check("close", 0); err != nil {
		return err
	}
	f.closed = true
	if f.stop != nil {
		f.stop()
	}
	err := f.f.Close(f.fs.ctx) // which stores: who has the lock next sees it
	return iofs.PathError("close", f.name, cmp.Or(err, f.unlock()))
}

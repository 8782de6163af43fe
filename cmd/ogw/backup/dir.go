package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	dirMode  = 0o700
	fileMode = 0o600
	// newDir holds objects while they are written.
	newDir   = "new"
	lockName = "lock"
)

// Dir is a folder. What is in it is the user's alone.
type Dir struct {
	path string
	seq  atomic.Uint64
	// renameNew and link are functions of this file, except in tests.
	renameNew, link func(from, to string) error
}

// NewDir returns the storage in a folder, which is made if it does not exist.
func NewDir(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", path)
	}
	return &Dir{path: path, renameNew: renameNew, link: unix.Link}, err
}

// String implements Storage.
func (d *Dir) String() string { return d.path }

func (d *Dir) file(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

// Put implements Storage.
func (d *Dir) Put(_ context.Context, name string, data []byte, replace bool) error {
	path := d.file(name)
	if err := d.makeFolders(filepath.Dir(path)); err != nil {
		return err
	}
	if err := d.makeFolders(d.file(newDir)); err != nil {
		return err
	}
	temp := d.file(fmt.Sprintf("%s/%d-%d", newDir, os.Getpid(), d.seq.Add(1)))
	err := writeSynced(temp, data)
	if err == nil {
		if replace {
			err = os.Rename(temp, path)
		} else {
			err = d.placeNew(temp, path)
		}
	}
	if err != nil {
		_ = os.Remove(temp)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s: %w", path, ErrExist)
		}
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncFolder(filepath.Dir(path))
}

// placeNew gives a written file its name, if nothing has it.
func (d *Dir) placeNew(temp, path string) error {
	err := d.renameNew(temp, path)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	// NFS, among others, has no flags of rename. A link replaces nothing, either.
	err = d.link(temp, path)
	if errors.Is(err, fs.ErrExist) && sameFile(temp, path) {
		err = nil // the client sent it again, because the first answer was lost
	}
	if err == nil {
		_ = os.Remove(temp) // or clean does
	}
	return err
}

func sameFile(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
}

// renameNew is a rename that replaces nothing.
func renameNew(from, to string) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// makeFolders makes a folder of the repository, durably.
func (d *Dir) makeFolders(path string) error {
	if path == d.path {
		return nil
	}
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	above := filepath.Dir(path)
	if err := d.makeFolders(above); err != nil {
		return err
	}
	if err := os.Mkdir(path, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(above)
}

// Get implements Storage.
func (d *Dir) Get(_ context.Context, name string, off, n int64) ([]byte, error) {
	f, err := os.Open(d.file(name))
	if err != nil {
		return nil, dirError(err)
	}
	defer f.Close()
	if n < 0 {
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		n = max(info.Size()-off, 0)
	}
	b := make([]byte, n)
	k, err := f.ReadAt(b, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:k], err
}

func dirError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNotExist, err)
	}
	return err
}

// List implements Storage.
func (d *Dir) List(ctx context.Context, prefix string, fn func(Object) error) error {
	root := d.file(prefix)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			if path == root && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		name, err := filepath.Rel(d.path, path)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); e.IsDir() {
			if name == newDir {
				return fs.SkipDir
			}
			return ctx.Err()
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return fn(Object{Name: name, Size: info.Size()})
	})
	return err
}

// Delete implements Storage. Folders that it empties go, too.
func (d *Dir) Delete(_ context.Context, name string) error {
	path := d.file(name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if strings.Count(name, "/") > 1 {
		_ = os.Remove(filepath.Dir(path)) // holds others
	}
	return nil
}

// Lock implements Storage. The kernel ends it with the process.
func (d *Dir) Lock(ctx context.Context, who Holder) (context.Context, Lock, error) {
	f, err := os.OpenFile(d.file(lockName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, fileMode)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		var other Holder
		if b, err := io.ReadAll(f); err != nil || json.Unmarshal(b, &other) != nil {
			return nil, nil, ErrLocked // it has not said who it is yet
		}
		return nil, nil, other.err()
	}
	l := &dirLock{f, who}
	err = f.Truncate(0)
	if err == nil {
		err = l.write()
	}
	if err == nil {
		err = d.clean()
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return ctx, l, nil
}

// dirLock is an open file that is locked.
type dirLock struct {
	f   *os.File
	who Holder
}

func (l *dirLock) write() error {
	b, err := json.Marshal(l.who)
	if err == nil {
		_, err = l.f.WriteAt(b, 0)
	}
	return err
}

// Renew implements Lock. A kernel keeps the lock of a process that stands still, but a
// server of NFS that of a client for some time only: then the client refuses the write.
func (l *dirLock) Renew(context.Context) error {
	err := l.write()
	if err == nil {
		err = l.f.Sync()
	}
	if err != nil {
		return fmt.Errorf("the lock of the repository cannot be renewed: %w", err)
	}
	return nil
}

// Release implements Lock.
func (l *dirLock) Release() { _ = l.f.Close() }

// clean removes what a process that was killed did not finish writing.
func (d *Dir) clean() error {
	list, err := os.ReadDir(d.file(newDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		err = errors.Join(err, os.Remove(d.file(newDir+"/"+e.Name())))
	}
	return err
}

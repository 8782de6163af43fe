package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// maxSocketPath is what fits into sockaddr_un, less the final NUL.
	maxSocketPath = 107
	// staleTimeout bounds the question whether somebody listens at a socket.
	staleTimeout = time.Second
	// othersWrite are the permission bits that let others replace a socket.
	othersWrite = 0o022
)

// SocketOptions are those of a Unix socket's file.
type SocketOptions struct {
	Mode os.FileMode
	GID  int // -1: that of the process
}

// ListenUnix listens at a Unix socket. It is made in a folder that only its
// owner can enter, and moved to its path once its mode is set: from bind(2) on
// a socket takes connections, with the mode that the umask leaves. What stands
// at the path is replaced.
func ListenUnix(path string, o SocketOptions) (_ net.Listener, err error) {
	nursery, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0700 at the most
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(nursery)
	if err := os.Chmod(nursery, 0o700); err != nil { // whatever the umask took
		return nil, err
	}
	born := filepath.Join(nursery, "s")
	short, release, err := ShortPath(born)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it is moved
	if o.GID >= 0 {
		err = os.Lchown(born, -1, o.GID)
	}
	if err == nil {
		err = os.Chmod(born, o.Mode)
	}
	var made os.FileInfo
	if err == nil {
		made, err = os.Lstat(born)
	}
	if err == nil {
		err = os.Rename(born, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &socketListener{l, path, made}, nil
}

// CheckSocket returns why nothing can listen at path: others could put a socket
// of theirs there, it is in use, or something else stands there. What a process
// left that is gone is no reason.
func CheckSocket(path string) error {
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if info.Mode().Perm()&othersWrite != 0 || owner != 0 && int(owner) != os.Geteuid() {
		return fmt.Errorf("others may write to %s, and could put a socket of theirs in place: choose a folder like /run/ogw", dir)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and is not a socket", path)
	}
	short, release, err := ShortPath(path)
	if err != nil {
		return err
	}
	defer release()
	c, err := net.DialTimeout("unix", short, staleTimeout)
	if err == nil {
		c.Close()
		return fmt.Errorf("%s: %w", path, syscall.EADDRINUSE)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// socketListener removes its socket when it is closed.
type socketListener struct {
	net.Listener
	path string
	made os.FileInfo
}

// Addr implements net.Listener: where it is, not where it was made.
func (l *socketListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close implements net.Listener.
func (l *socketListener) Close() error {
	err := l.Listener.Close()
	if now, e := os.Lstat(l.path); e != nil || !os.SameFile(now, l.made) {
		return err // somebody else's by now
	}
	return errors.Join(err, os.Remove(l.path))
}

// ShortPath returns a path for a socket that is short enough for the kernel: a
// long one is reached through the open folder, until release.
func ShortPath(path string) (short string, release func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}

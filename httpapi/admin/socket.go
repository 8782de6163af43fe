package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

const (
	// SocketName is the socket's name in the data folder.
	SocketName = "admin.sock"
	// maxSocketPath is what fits into sockaddr_un, less the final NUL.
	maxSocketPath = 107
)

// ListenSocket listens at a Unix socket that only its owner can use. What
// stood there is replaced: the caller holds the lock of the folder, so it
// is a leftover.
func ListenSocket(path string) (net.Listener, error) {
	// The mode is set before the name that clients know exists.
	temp := path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	short, release, err := socketPath(temp)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	l.SetUnlinkOnClose(false) // it is renamed
	if err = os.Chmod(temp, 0o600); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	return &socketListener{l, path}, nil
}

// socketListener removes its socket when it is closed.
type socketListener struct {
	net.Listener
	path string
}

// Close implements net.Listener.
func (l *socketListener) Close() error {
	err := l.Listener.Close()
	if e := os.Remove(l.path); e != nil && !errors.Is(e, fs.ErrNotExist) && err == nil {
		err = e
	}
	return err
}

// socketPath returns a path for a socket that is short enough for the
// kernel: a long one is reached through the open folder.
func socketPath(path string) (short string, release func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}

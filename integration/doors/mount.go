package doors

import (
	"os"
	"path/filepath"
	"syscall"
)

// Mount is a FUSE mount of the whole namespace, or any directory.
type Mount struct {
	dir string
}

var _ Posix = (*Mount)(nil)

// NewMount returns the mount at dir.
func NewMount(dir string) *Mount { return &Mount{dir} }

// Name implements Door.
func (d *Mount) Name() string { return "fuse" }

func (d *Mount) at(p string) string { return filepath.Join(d.dir, p) }

// Write implements Door.
func (d *Mount) Write(path, body string) error {
	return os.WriteFile(d.at(path), []byte(body), 0o644)
}

// Read implements Door.
func (d *Mount) Read(path string) (string, error) {
	b, err := os.ReadFile(d.at(path))
	return string(b), err
}

// Mkdir implements Posix.
func (d *Mount) Mkdir(path string) error { return os.Mkdir(d.at(path), 0o755) }

// The calls below do what the system call does: os.Remove and os.Rename try
// more than one thing.

// Remove implements Posix.
func (d *Mount) Remove(path string) error {
	return pathError("unlink", path, syscall.Unlink(d.at(path)))
}

// Rmdir implements Posix.
func (d *Mount) Rmdir(path string) error { return pathError("rmdir", path, syscall.Rmdir(d.at(path))) }

// Rename implements Posix.
func (d *Mount) Rename(from, to string) error {
	return pathError("rename", from, syscall.Rename(d.at(from), d.at(to)))
}

// List implements Posix.
func (d *Mount) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(d.at(dir))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: path, Err: err}
}

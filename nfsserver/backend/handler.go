package backend

import (
	"context"
	"net"
	"os"

	billy "github.com/go-git/go-billy/v5"
	gonfs "github.com/willscott/go-nfs"
)

// handler is the library's view of one call at a time.
type handler struct {
	answer Answer
	stop   func() error
}

// Mount answers MNT.
func (h *handler) Mount(context.Context, net.Conn, gonfs.MountRequest) (gonfs.MountStatus, billy.Filesystem, []gonfs.AuthFlavor) {
	// AUTH_SYS is what clients should use; with AUTH_NONE they are nobody.
	return gonfs.MountStatus(h.answer.Status), links{h: h}, []gonfs.AuthFlavor{gonfs.AuthFlavorUnix, gonfs.AuthFlavorNull}
}

// ToHandle returns the handle of what is mounted.
func (h *handler) ToHandle(billy.Filesystem, []string) []byte { return h.answer.Handle }

// FromHandle returns the one file that the call is about: the front has
// resolved the handle already.
func (h *handler) FromHandle([]byte) (billy.Filesystem, []string, error) {
	return links{h: h}, nil, nil
}

// Change, FSStat, InvalidateHandle and HandleLimit are for procedures that
// the front does not hand over.
func (h *handler) Change(billy.Filesystem) billy.Change { return nil }

func (h *handler) FSStat(context.Context, billy.Filesystem, *gonfs.FSStat) error {
	return os.ErrInvalid
}

func (h *handler) InvalidateHandle(billy.Filesystem, []byte) error { return nil }

func (h *handler) HandleLimit() int { return 1 << 30 }

// links is a file system of one symbolic link.
type links struct{ h *handler }

// Readlink returns the target of the link.
func (l links) Readlink(string) (string, error) { return l.h.answer.Link, nil }

// Join is called with the components of a path, none here.
func (l links) Join(...string) string { return "" }

// Lstat and Stat have the library leave attributes out.
func (l links) Lstat(string) (os.FileInfo, error) { return nil, os.ErrInvalid }

func (l links) Stat(string) (os.FileInfo, error) { return nil, os.ErrInvalid }

// The rest of billy.Filesystem is for procedures that the front serves.

func (l links) Create(string) (billy.File, error) { return nil, os.ErrInvalid }

func (l links) Open(string) (billy.File, error) { return nil, os.ErrInvalid }

func (l links) OpenFile(string, int, os.FileMode) (billy.File, error) { return nil, os.ErrInvalid }

func (l links) Rename(string, string) error { return os.ErrInvalid }

func (l links) Remove(string) error { return os.ErrInvalid }

func (l links) TempFile(string, string) (billy.File, error) { return nil, os.ErrInvalid }

func (l links) ReadDir(string) ([]os.FileInfo, error) { return nil, os.ErrInvalid }

func (l links) MkdirAll(string, os.FileMode) error { return os.ErrInvalid }

func (l links) Symlink(string, string) error { return os.ErrInvalid }

func (l links) Chroot(string) (billy.Filesystem, error) { return nil, os.ErrInvalid }

func (l links) Root() string { return "/" }

package vfs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// maxSymlinks is how many symbolic links one path may follow, as in Linux.
const maxSymlinks = 40

// Resolve walks a slash-separated POSIX path from the root, following
// symbolic links (of the last component only with follow). A link to an
// absolute path begins at the root of the namespace. ErrNotExist, ErrNotDir,
// ErrAccess, ErrNameTooLong, ErrInvalid for too many links.
func (fs *FS) Resolve(ctx context.Context, cred *Cred, path string, follow bool) (Attr, error) {
	return fs.ResolveBelow(ctx, cred, RootIno, path, follow)
}

// ResolveExact is Resolve without following any symbolic link: one on the way
// is ErrNotDir.
func (fs *FS) ResolveExact(ctx context.Context, cred *Cred, path string) (Attr, error) {
	return fs.resolve(ctx, walker{cred: cred, root: RootIno, exact: true}, path)
}

// ResolveBelow is Resolve with directory root for the root: neither ".." nor
// a symbolic link leads out of it. ErrStale if root is gone.
func (fs *FS) ResolveBelow(ctx context.Context, cred *Cred, root Ino, path string, follow bool) (Attr, error) {
	return fs.resolve(ctx, walker{cred: cred, root: root, follow: follow}, path)
}

func (fs *FS) resolve(ctx context.Context, how walker, path string) (a Attr, err error) {
	for mark := fs.session.Open.Mark(); ; mark = fs.session.Open.Mark() {
		err = fs.peek(ctx, func(r cluster.Reader) error {
			w := how
			w.r = r
			n, err := w.walk(path)
			if err != nil {
				return err
			}
			a, err = fs.attrOf(r, n)
			return err
		})
		if err != nil || !fs.session.Open.LeftSince(mark, a.Ino) {
			return a, err
		}
	}
}

// walker walks one path in one snapshot.
type walker struct {
	r      cluster.Reader
	cred   *Cred
	root   Ino
	follow bool
	exact  bool // follow none, wherever it stands
	links  int
}

func (w *walker) walk(path string) (*record.Inode, error) {
	at, err := keypath.GetDir(w.r, w.root)
	if err != nil {
		return nil, err
	}
	mustDir := strings.HasSuffix(path, "/")
	rest := splitPath(path)
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		n, err := w.step(at, name)
		if err != nil {
			return nil, err
		}
		if w.exact && n.IsSymlink() {
			return nil, fmt.Errorf("%w: %q is a symbolic link", ErrNotDir, name)
		}
		if n.IsSymlink() && (len(rest) > 0 || w.follow || mustDir) {
			if w.links++; w.links > maxSymlinks {
				return nil, fmt.Errorf("%w: more than %d symbolic links", ErrInvalid, maxSymlinks)
			}
			if strings.HasPrefix(n.Target, "/") {
				if at, err = keypath.GetDir(w.r, w.root); err != nil {
					return nil, err
				}
			}
			rest = append(splitPath(n.Target), rest...)
			continue
		}
		at = n
	}
	if mustDir && !at.IsDir() {
		return nil, ErrNotDir
	}
	return at, nil
}

// step returns the inode of name in at.
func (w *walker) step(at *record.Inode, name string) (*record.Inode, error) {
	if !at.IsDir() {
		return nil, ErrNotDir
	}
	if err := perm.Check(w.r, w.cred, at, AccessExec); err != nil {
		return nil, err
	}
	switch {
	case name == ".." && at.Ino == w.root:
		return at, nil
	case name == "..":
		return keypath.GetDir(w.r, at.Parent)
	}
	p, err := naming.ParsePosix(name)
	if err != nil {
		return nil, lookupErr(err)
	}
	_, f, err := findIn(w.r, at.Ino, p)
	if err != nil {
		return nil, err
	}
	if f.e == nil {
		return nil, ErrNotExist
	}
	return getTarget(w.r, f.e)
}

// splitPath returns the components of a POSIX path without empty ones and ".".
func splitPath(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" || s == "." })
}

// KeyOf returns the stored path of ino: "bucket/key". A directory's ends in
// "/", the root's is "". Of several links it takes the last one made, if that
// still exists. ErrNotExist for an inode without links, ErrStale.
func (fs *FS) KeyOf(ctx context.Context, ino Ino) (key string, err error) {
	err = fs.peek(ctx, func(r cluster.Reader) error {
		key, err = keypath.KeyOf(r, ino)
		return err
	})
	return key, err
}

// IsBelow reports whether ino lies in directory top, at any depth and by any
// of its links; a directory lies in itself. A file without links counts as
// lying where its last one was. Of many links, the last made and the first
// 256 in the order of their directories are looked at. ErrStale if ino is
// gone.
func (fs *FS) IsBelow(ctx context.Context, top, ino Ino) (below bool, err error) {
	err = fs.peek(ctx, func(r cluster.Reader) error {
		below, err = keypath.IsBelow(r, top, ino)
		return err
	})
	return below, err
}

package keypath

import (
	"fmt"
	"slices"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// GetDir reads the inode of a directory. ErrStale, fserr.ErrNotDir, fserr.ErrNotExist for
// one that was removed.
func GetDir(r cluster.Reader, dir record.Ino) (*record.Inode, error) {
	d, err := record.GetInode(r, dir)
	if err == nil {
		err = CheckDir(d)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// CheckDir reports whether entries can be in d.
func CheckDir(d *record.Inode) error {
	switch {
	case !d.IsDir():
		return fserr.ErrNotDir
	case d.Nlink == 0:
		return fmt.Errorf("directory %d was removed: %w", d.Ino, fserr.ErrNotExist)
	}
	return nil
}

// KeyOf returns the stored path of ino: "bucket/key". A directory's ends in
// "/", the root's is "". Of several links it takes the last one made, if that
// still exists. ErrNotExist for an inode without links, ErrStale.
func KeyOf(r cluster.Reader, ino record.Ino) (string, error) {
	n, err := record.GetInode(r, ino)
	if err != nil {
		return "", err
	}
	if n.Nlink == 0 {
		return "", fserr.ErrNotExist
	}
	var comps []string
	if !n.IsDir() {
		dir, name, err := aLink(r, n)
		if err != nil {
			return "", err
		}
		comps = append(comps, name)
		if n, err = GetDir(r, dir); err != nil {
			return "", err
		}
	} else {
		comps = append(comps, "")
	}
	var way record.LoopDetector
	for n.Ino != record.RootIno {
		if err := way.Visit(n.Ino); err != nil {
			return "", err
		}
		comps = append(comps, n.Name)
		if n, err = GetDir(r, n.Parent); err != nil {
			return "", err
		}
	}
	slices.Reverse(comps)
	return strings.Join(comps, "/"), nil
}

// aLink returns a link of n that exists.
func aLink(r cluster.Reader, n *record.Inode) (dir record.Ino, name string, err error) {
	e, err := record.GetDentry(r, n.Parent, n.Name, false)
	if err != nil {
		return 0, "", err
	}
	if e != nil && e.Ino == n.Ino {
		return n.Parent, n.Name, nil
	}
	links, err := record.Links(r, n.Ino)
	if err != nil {
		return 0, "", err
	}
	for _, l := range links {
		e, err := record.GetDentry(r, l.Parent, l.Name, false)
		if err != nil {
			return 0, "", err
		}
		if e != nil && e.Ino == n.Ino {
			return l.Parent, l.Name, nil
		}
	}
	return 0, "", fserr.ErrNotExist
}

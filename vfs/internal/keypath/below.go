package keypath

import (
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// maxLinksTried bounds the links that IsBelow looks at: each may be a walk to
// the root, and a user can make tens of thousands of one file.
const maxLinksTried = 256

// IsBelow reports whether ino lies in directory top, at any depth and by any
// of its links; a directory lies in itself. A file without links counts as
// lying where its last one was. Of many links, the last made and the first
// 256 in the order of their directories are looked at. ErrStale if ino is
// gone.
func IsBelow(r cluster.Reader, top, ino record.Ino) (bool, error) {
	n, err := record.GetInode(r, ino)
	if err != nil {
		return false, err
	}
	if n.IsDir() {
		return dirBelow(r, n, top)
	}
	return fileBelow(r, n, top)
}

// dirBelow walks from d up to the root.
func dirBelow(r cluster.Reader, d *record.Inode, top record.Ino) (_ bool, err error) {
	var way record.LoopDetector
	for d.Ino != top {
		if d.Ino == record.RootIno {
			return false, nil
		}
		if err := way.Visit(d.Ino); err != nil {
			return false, err
		}
		if d, err = GetDir(r, d.Parent); err != nil {
			return false, err
		}
	}
	return true, nil
}

func fileBelow(r cluster.Reader, n *record.Inode, top record.Ino) (bool, error) {
	below, err := parentBelow(r, n.Parent, top)
	if below || err != nil || !n.Has(record.FlagLinks) {
		return below, err
	}
	prefix, tried := record.LinkPrefix(n.Ino), n.Parent
	o := cluster.ScanOptions{Limit: maxLinksTried, KeysOnly: true}
	err = r.Scan(prefix, cluster.PrefixEnd(prefix), o, func(k, _ []byte) error {
		parent, _, err := record.ParseLinkKey(k)
		if below || err != nil || parent == tried {
			return err
		}
		tried = parent
		below, err = parentBelow(r, parent, top)
		return err
	})
	return below, err
}

// parentBelow is dirBelow for a directory that may be gone, as that of a file
// which somebody has open.
func parentBelow(r cluster.Reader, dir, top record.Ino) (bool, error) {
	d, err := GetDir(r, dir)
	if errors.Is(err, fserr.ErrStale) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return dirBelow(r, d, top)
}

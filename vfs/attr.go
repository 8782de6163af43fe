package vfs

import (
	"ogw/cluster"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// attrOf returns the attributes of n; dirtime from key 't' for directories,
// overlaid with unflushed writes of this process.
func (fs *FS) attrOf(r cluster.Reader, n *record.Inode) (Attr, error) {
	if !n.IsDir() {
		return fs.attrWith(n, nil)
	}
	b, err := r.Get(record.DirTimeKey(n.Ino))
	if err != nil {
		return Attr{}, err
	}
	return fs.attrWith(n, b)
}

// attrWith is attrOf for callers that read the value of key 't' already (nil
// if there is none: no entry was ever made or removed).
func (fs *FS) attrWith(n *record.Inode, dirTime []byte) (Attr, error) {
	a := Attr{
		Ino: n.Ino, Gen: n.Gen, Mode: n.Mode, Nlink: n.Nlink, UID: n.UID, GID: n.GID, Rdev: n.Rdev,
		Size: n.Size, Used: n.Used, Version: n.Version, Parent: n.Parent,
		Atime: n.Atime, Mtime: n.Mtime, CtimeNS: n.CtimeNS, BtimeNS: n.BtimeNS,
		Flags: perm.FlagsOf(n),
	}
	if ns, ok := fs.reads.Get(uint64(n.Ino), n.Atime.UnixNS()); ok {
		a.Atime = TimeNS(ns)
	}
	switch {
	case n.IsDir():
		a.Nlink, a.Mtime = min(n.Nlink, 1), TimeNS(n.BtimeNS)
		if dirTime != nil {
			m, c, err := record.ParseDirTime(dirTime)
			if err != nil {
				return Attr{}, err
			}
			a.Mtime, a.CtimeNS = m, max(a.CtimeNS, c)
		}
	case n.IsSymlink():
		a.Size = int64(len(n.Target))
	case n.IsRegular():
		fs.overlayAttr(&a, n.Epoch)
	}
	return a, nil
}

package vfs

import (
	"ogw/cluster"
)

// attrOf returns the attributes of n; dirtime from key 't' for directories,
// overlaid with unflushed writes of this process.
func (fs *FS) attrOf(r cluster.Reader, n *inode) (Attr, error) {
	if !n.isDir() {
		return fs.attrWith(n, nil)
	}
	b, err := r.Get(dirTimeKey(n.ino))
	if err != nil {
		return Attr{}, err
	}
	return fs.attrWith(n, b)
}

// attrWith is attrOf for callers that read the value of key 't' already (nil
// if there is none: no entry was ever made or removed).
func (fs *FS) attrWith(n *inode, dirTime []byte) (Attr, error) {
	a := Attr{
		Ino: n.ino, Gen: n.gen, Mode: n.mode, Nlink: n.nlink, UID: n.uid, GID: n.gid, Rdev: n.rdev,
		Size: n.size, Used: n.used, Version: n.version, Parent: n.parent,
		Atime: n.atime, Mtime: n.mtime, CtimeNS: n.ctimeNS, BtimeNS: n.btimeNS,
		Flags: n.fileFlags(),
	}
	switch {
	case n.isDir():
		a.Nlink, a.Mtime = min(n.nlink, 1), TimeNS(n.btimeNS)
		if dirTime != nil {
			m, c, err := parseDirTime(dirTime)
			if err != nil {
				return Attr{}, err
			}
			a.Mtime, a.CtimeNS = m, max(a.CtimeNS, c)
		}
	case n.isSymlink():
		a.Size = int64(len(n.target))
	case n.isRegular():
		fs.overlayAttr(&a)
	}
	return a, nil
}

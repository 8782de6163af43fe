package vfs

import (
	"maps"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/xattr"
)

// objectInfo describes the object of n, checksums excepted.
func (fs *FS) objectInfo(r cluster.Reader, key string, n *record.Inode) (ObjectInfo, error) {
	info := plainInfo(key, n)
	info.Parts = n.Object.Parts
	info.Meta = ObjectMeta{ContentType: n.Object.ContentType, Headers: n.Object.Headers, Grants: n.Grants}
	if info.Meta.ContentType == "" {
		info.Meta.ContentType = naming.ContentType(key)
	}
	var err error
	if n.Has(record.FlagXattrs) {
		info.Meta.User, info.MissingUser, err = xattr.UserMeta(r, n.Ino, xattr.MaxShownBytes)
	}
	return info, err
}

// ShowUser calls show with the user metadata in the order of their names, as far as names
// and values have limit bytes together: what is longer than the rest of that is passed
// over. show reports whether it could show one, otherwise that takes no room. ShowUser
// returns how many were not shown, MissingUser among them.
func (info *ObjectInfo) ShowUser(limit int, show func(name, value string) bool) (missing int) {
	missing = info.MissingUser
	if len(info.Meta.User) == 0 {
		return missing // most objects: sorting costs allocations
	}
	for _, name := range slices.Sorted(maps.Keys(info.Meta.User)) {
		value := info.Meta.User[name]
		if size := len(name) + len(value); size <= limit && show(name, value) {
			limit -= size
		} else {
			missing++
		}
	}
	return missing
}

// plainInfo is what the inode alone shows.
func plainInfo(key string, n *record.Inode) ObjectInfo {
	return ObjectInfo{
		Key: key, Ino: n.Ino, Size: n.Size, ETag: objects.ETagOf(n), Modified: n.Mtime.Date(),
		UID: n.UID, Mode: n.Mode, Dir: n.IsDir(),
	}
}

// listInfo describes an object of a listing: of its metadata the headers, and with what this
// process wrote but did not flush yet.
func (fs *FS) listInfo(key string, n *record.Inode) ObjectInfo {
	info := plainInfo(key, n)
	info.Meta.Headers = n.Object.Headers
	if n.IsRegular() && fs.opened(n.Ino) != nil {
		a := Attr{Ino: n.Ino, Mode: n.Mode, Size: n.Size, Mtime: n.Mtime, CtimeNS: n.CtimeNS, Version: n.Version}
		fs.overlayAttr(&a, n.Epoch)
		info.Size, info.Modified = a.Size, a.Mtime.Date()
		if a.Version != n.Version {
			info.ETag = objects.OpaqueETag(n.Ino, a.Version)
		}
	}
	return info
}

// validateMeta checks the grants, and what user metadata extended attributes can
// hold.
func (fs *FS) validateMeta(m *ObjectMeta) error {
	if err := record.ValidateGrants(m.Grants); err != nil {
		return err
	}
	return xattr.CheckUser(fs.kv, m.User)
}

// setMeta replaces the metadata of n: type, headers, grants, and the extended
// attributes user.*; others stay. The caller stores n.
func (o *op) setMeta(t cluster.Txn, n *record.Inode, m *ObjectMeta) error {
	n.Object.ContentType = m.ContentType
	n.Object.Headers = maps.Clone(m.Headers)
	n.SetGrants(m.Grants)
	return xattr.ReplaceUser(t, o.fs.kv, n, m.User)
}

package vfs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ogw/cluster"
)

// userXattr is the namespace of extended attributes that user metadata are.
const userXattr = "user."

// objectInfo describes the object of n, checksums excepted.
func (fs *FS) objectInfo(r cluster.Reader, key string, n *inode) (ObjectInfo, error) {
	info := plainInfo(key, n)
	info.Parts = n.object.parts
	info.Meta = ObjectMeta{ContentType: n.object.contentType, Headers: n.object.headers, Grants: n.grants}
	if info.Meta.ContentType == "" {
		info.Meta.ContentType = contentTypeOf(key)
	}
	var err error
	if n.has(flagXattrs) {
		info.Meta.User, err = userMeta(r, n.ino)
	}
	return info, err
}

// plainInfo is what the inode alone tells.
func plainInfo(key string, n *inode) ObjectInfo {
	return ObjectInfo{
		Key: key, Ino: n.ino, Size: n.size, ETag: n.etag(), Modified: n.mtime.Date(),
		UID: n.uid, Mode: n.mode, Dir: n.isDir(),
	}
}

// listInfo describes an object of a listing: of its metadata the headers, and with what this
// process wrote but did not flush yet.
func (fs *FS) listInfo(key string, n *inode) ObjectInfo {
	info := plainInfo(key, n)
	info.Meta.Headers = n.object.headers
	if n.isRegular() && fs.opens.get(n.ino) != nil {
		a := Attr{Ino: n.ino, Mode: n.mode, Size: n.size, Mtime: n.mtime, Version: n.version}
		fs.overlayAttr(&a)
		info.Size, info.Modified = a.Size, a.Mtime.Date()
		if a.Version != n.version {
			info.ETag = opaqueETag(n.ino, a.Version)
		}
	}
	return info
}

// userMeta reads the user metadata of an inode.
func userMeta(r cluster.Reader, ino Ino) (map[string]string, error) {
	var m map[string]string
	prefix := xattrKey(ino, userXattr)
	err := r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
		if m == nil {
			m = make(map[string]string)
		}
		m[string(k[len(prefix):])] = string(v)
		return nil
	})
	return m, err
}

// validate checks the grants, and what user metadata extended attributes can
// hold.
func (m *ObjectMeta) validate() error {
	if err := m.Grants.validate(); err != nil {
		return err
	}
	total := 0
	for name, value := range m.User {
		full := userXattr + name
		switch {
		case name == "" || strings.IndexByte(name, 0) >= 0:
			return fmt.Errorf("user metadata name %q: %w", name, ErrInvalid)
		case len(full) > MaxXattrNameBytes:
			return fmt.Errorf("user metadata name of %d bytes: %w", len(name), ErrAttrTooLarge)
		case len(value) > MaxXattrValueBytes:
			return fmt.Errorf("user metadata %q of %d bytes: %w", name, len(value), ErrAttrTooLarge)
		}
		total += len(full) + 1
	}
	if total > MaxXattrListBytes {
		return fmt.Errorf("user metadata names of %d bytes in all: %w", total, ErrAttrTooLarge)
	}
	return nil
}

// setMeta replaces the metadata of n: type, headers, grants, and the extended
// attributes user.*; others stay. The caller stores n.
func setMeta(t cluster.Txn, n *inode, m *ObjectMeta) error {
	n.object.contentType = m.ContentType
	n.object.headers = maps.Clone(m.Headers)
	n.setGrants(m.Grants)
	if n.has(flagXattrs) {
		if err := dropUserMeta(t, n.ino); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(m.User) {
		if err := t.Set(xattrKey(n.ino, userXattr+name), []byte(m.User[name])); err != nil {
			return err
		}
		n.set(flagXattrs, true)
	}
	return nil
}

func dropUserMeta(t cluster.Txn, ino Ino) error {
	var keys [][]byte
	prefix := xattrKey(ino, userXattr)
	err := t.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
		keys = append(keys, slices.Clone(k))
		return nil
	})
	for _, k := range keys {
		if err == nil {
			err = t.Delete(k)
		}
	}
	return err
}

package vfs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"
)

// userXattr is the namespace of extended attributes that user metadata are.
const userXattr = "user."

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
		info.Meta.User, err = userMeta(r, n.Ino)
	}
	return info, err
}

// plainInfo is what the inode alone tells.
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
		a := Attr{Ino: n.Ino, Mode: n.Mode, Size: n.Size, Mtime: n.Mtime, Version: n.Version}
		fs.overlayAttr(&a)
		info.Size, info.Modified = a.Size, a.Mtime.Date()
		if a.Version != n.Version {
			info.ETag = objects.OpaqueETag(n.Ino, a.Version)
		}
	}
	return info
}

// userMeta reads the user metadata of an inode.
func userMeta(r cluster.Reader, ino Ino) (map[string]string, error) {
	var m map[string]string
	prefix := record.XattrKey(ino, userXattr)
	err := r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
		if m == nil {
			m = make(map[string]string)
		}
		m[string(k[len(prefix):])] = string(v)
		return nil
	})
	return m, err
}

// validateMeta checks the grants, and what user metadata extended attributes can
// hold.
func validateMeta(m *ObjectMeta) error {
	if err := record.ValidateGrants(m.Grants); err != nil {
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
func setMeta(t cluster.Txn, n *record.Inode, m *ObjectMeta) error {
	n.Object.ContentType = m.ContentType
	n.Object.Headers = maps.Clone(m.Headers)
	n.SetGrants(m.Grants)
	if n.Has(record.FlagXattrs) {
		if err := dropUserMeta(t, n.Ino); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.User)) {
		if err := t.Set(record.XattrKey(n.Ino, userXattr+name), []byte(m.User[name])); err != nil {
			return err
		}
		n.Set(record.FlagXattrs, true)
	}
	return nil
}

func dropUserMeta(t cluster.Txn, ino Ino) error {
	var keys [][]byte
	prefix := record.XattrKey(ino, userXattr)
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

package xattr

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// UserMeta reads the user metadata of an inode.
func UserMeta(r cluster.Reader, ino record.Ino) (map[string]string, error) {
	var m map[string]string
	prefix := record.XattrKey(ino, User)
	err := r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
		if m == nil {
			m = make(map[string]string)
		}
		m[string(k[len(prefix):])] = string(v)
		return nil
	})
	return m, err
}

// CheckUser checks that user metadata can be extended attributes.
func CheckUser(user map[string]string) error {
	total := 0
	for name, value := range user {
		full := User + name
		switch {
		case name == "" || strings.IndexByte(name, 0) >= 0:
			return fmt.Errorf("user metadata name %q: %w", name, fserr.ErrInvalid)
		case len(full) > MaxNameBytes:
			return fmt.Errorf("user metadata name of %d bytes: %w", len(name), fserr.ErrAttrTooLarge)
		case len(value) > MaxValueBytes:
			return fmt.Errorf("user metadata %q of %d bytes: %w", name, len(value), fserr.ErrAttrTooLarge)
		}
		total += len(full) + 1
	}
	if total > MaxListBytes {
		return fmt.Errorf("user metadata names of %d bytes in all: %w", total, fserr.ErrAttrTooLarge)
	}
	return nil
}

// ReplaceUser replaces the user metadata of n, which the caller stores.
func ReplaceUser(t cluster.Txn, n *record.Inode, user map[string]string) error {
	if n.Has(record.FlagXattrs) {
		if err := dropUser(t, n.Ino); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(user)) {
		if err := t.Set(record.XattrKey(n.Ino, User+name), []byte(user[name])); err != nil {
			return err
		}
		n.Set(record.FlagXattrs, true)
	}
	return nil
}

func dropUser(t cluster.Txn, ino record.Ino) error {
	var keys [][]byte
	prefix := record.XattrKey(ino, User)
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

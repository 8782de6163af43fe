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

// CheckUser checks that user metadata can be extended attributes of an inode that has no
// others.
func CheckUser(kv cluster.KV, user map[string]string) error {
	if len(user) > countIn(kv) {
		return tooMany(kv, len(user))
	}
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

func tooMany(kv cluster.KV, n int) error {
	return fmt.Errorf("%w: %d extended attributes, at most %d are allowed", fserr.ErrAttrTooLarge, n, countIn(kv))
}

// ReplaceUser replaces the user metadata of n, which the caller stores. With n's other
// attributes they may be no more than can be replaced and removed again.
func ReplaceUser(t cluster.Txn, kv cluster.KV, n *record.Inode, user map[string]string) error {
	if n.Has(record.FlagXattrs) {
		others, err := dropUser(t, n.Ino, user)
		if err != nil {
			return err
		}
		if len(user) > 0 && others+len(user) > countIn(kv) {
			return tooMany(kv, others+len(user))
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

// dropUser removes the user metadata of an inode, but for names that are set anew, and
// returns how many other attributes it has.
func dropUser(t cluster.Txn, ino record.Ino, set map[string]string) (others int, err error) {
	names, err := Names(t, ino)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		user, ok := strings.CutPrefix(name, User)
		if !ok {
			others++
			continue
		}
		if _, again := set[user]; again {
			continue
		}
		if err := t.Delete(record.XattrKey(ino, name)); err != nil {
			return 0, err
		}
	}
	return others, nil
}

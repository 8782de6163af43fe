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

// UserMeta reads the user metadata of an inode, in the order of their names up to limit
// bytes of names and values. It returns how many more there are.
func UserMeta(r cluster.Reader, ino record.Ino, limit int) (m map[string]string, more int, err error) {
	prefix := record.XattrKey(ino, User)
	end := cluster.PrefixEnd(prefix)
	var rest []byte
	total := 0
	err = r.Scan(prefix, end, cluster.ScanOptions{}, func(k, v []byte) error {
		if total += len(k) - len(prefix) + len(v); total > limit {
			rest = slices.Clone(k)
			return cluster.ErrStop
		}
		if m == nil {
			m = make(map[string]string)
		}
		m[string(k[len(prefix):])] = string(v)
		return nil
	})
	if err != nil || rest == nil {
		return m, 0, err
	}
	err = r.Scan(rest, end, cluster.ScanOptions{KeysOnly: true}, func(_, _ []byte) error { more++; return nil })
	return m, more, err
}

// CheckUser checks that user metadata can be extended attributes of an inode that has no
// others.
func CheckUser(kv cluster.KV, user map[string]string) error {
	if len(user) > countIn(kv) {
		return tooMany(kv, len(user))
	}
	total, values := 0, 0
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
		values += len(value)
	}
	if total > MaxListBytes || values > MaxBytes {
		return fmt.Errorf("user metadata of %d bytes, names of %d bytes in all: %w", values, total, fserr.ErrAttrTooLarge)
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

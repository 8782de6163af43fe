package xattr

import (
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/posixacl"
	"ogw/vfs/internal/record"
)

// maxCount bounds the extended attributes of one inode, which one
// transaction of an engine without limits removes.
const maxCount = 4096

// countIn is maxCount within the limits of an engine: a change of an object meets all of
// them and writes as many, and a third is left to the rest.
func countIn(kv cluster.KV) int {
	if ops := kv.Limits().Ops; ops > 0 {
		return min(maxCount, ops/3)
	}
	return maxCount
}

// Names returns the names of the attributes of an inode, in byte order.
func Names(r cluster.Reader, ino record.Ino) (names []string, err error) {
	prefix := record.XattrPrefix(ino)
	err = r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
		names = append(names, string(k[len(prefix):]))
		return nil
	})
	return names, err
}

// CheckRoom bounds the attributes of one inode, of which one is about to get value: a new
// one in number and in the length of the list of their names, all in the bytes of their
// values.
func CheckRoom(r cluster.Reader, kv cluster.KV, n *record.Inode, name string, value []byte) error {
	if !n.Has(record.FlagXattrs) {
		return nil
	}
	isNew, count, names, values := true, 1, len(name)+1, len(value)
	prefix := record.XattrPrefix(n.Ino)
	err := r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
		if string(k[len(prefix):]) == name {
			isNew = false
			return nil
		}
		count++
		names += len(k) - len(prefix) + 1
		if values += len(v); values > MaxBytes {
			return cluster.ErrStop
		}
		return nil
	})
	if err != nil {
		return err
	}
	if values > MaxBytes || isNew && (count > countIn(kv) || names > MaxListBytes) {
		return fmt.Errorf("%w: %d extended attributes of %d bytes", fserr.ErrNoSpace, count, values)
	}
	return nil
}

// Remove removes up to limit attributes of an inode, and reports whether there are more,
// and how many it removed.
func Remove(t cluster.Txn, ino record.Ino, limit int) (removed int, more bool, err error) {
	prefix := record.XattrPrefix(ino)
	var keys [][]byte
	o := cluster.ScanOptions{Limit: limit + 1, KeysOnly: true}
	err = t.Scan(prefix, cluster.PrefixEnd(prefix), o, func(k, _ []byte) error {
		keys = append(keys, slices.Clone(k))
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	if more = len(keys) > limit; more {
		keys = keys[:limit]
	}
	for _, k := range keys {
		if err := t.Delete(k); err != nil {
			return 0, false, err
		}
	}
	return len(keys), more, nil
}

// SetACL stores or, with an empty value, removes an ACL. An access ACL also
// sets the mode; one that says no more than the mode is not stored. It reports whether
// n changed, which the caller stores.
func SetACL(t cluster.Txn, cred *perm.Cred, n *record.Inode, name string, value []byte) (changed bool, err error) {
	a, err := posixacl.Parse(value)
	if err != nil {
		return false, err
	}
	if name == posixacl.XattrDefault && !n.IsDir() {
		if a == nil {
			return false, nil
		}
		return false, fserr.ErrAccess
	}
	if name == posixacl.XattrAccess && a != nil {
		n.Mode = n.Mode&^0o777 | a.Mode()
		if !cred.Rooted() && !cred.InGroup(n.GID) {
			n.Mode &^= record.ModeSetGID
		}
		if !a.Extended() {
			a = nil
		}
	}
	if a == nil {
		err = t.Delete(record.XattrKey(n.Ino, name))
	} else {
		n.Set(record.FlagXattrs|record.FlagACL, true)
		err = t.Set(record.XattrKey(n.Ino, name), a.Encode())
	}
	if err != nil {
		return false, err
	}
	if name == posixacl.XattrAccess {
		n.Choose()
		n.MakeExplicit()
	}
	if err := record.RefreshEntry(t, n); err != nil {
		return false, err
	}
	return true, nil
}

// DropCapability takes the capabilities of a program away, as every change of
// its content does, whoever makes it (capabilities(7)).
func DropCapability(t cluster.Txn, n *record.Inode) error {
	if n.IsDir() || !n.Has(record.FlagXattrs) {
		return nil
	}
	return t.Delete(record.XattrKey(n.Ino, Capability))
}

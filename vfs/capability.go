package vfs

import (
	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// xattrCapability holds the capabilities of a program (capabilities(7)).
const xattrCapability = "security.capability"

// dropCapability takes the capabilities of a program away, as every change of
// its content does, whoever makes it (capabilities(7)).
func dropCapability(t cluster.Txn, n *record.Inode) error {
	if n.IsDir() || !n.Has(record.FlagXattrs) {
		return nil
	}
	return t.Delete(record.XattrKey(n.Ino, xattrCapability))
}

package bucketconf

import (
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// SetOwnership stores it with the bucket n, whose ACL is g. The inode and its entry
// report it where it changes who owns.
func SetOwnership(t cluster.Txn, n *record.Inode, own rights.Ownership, g record.Grants) error {
	if own == rights.OwnershipEnforced && slices.ContainsFunc(g, func(g record.Grant) bool { return g.Grantee != record.GranteeOwner }) {
		return fmt.Errorf("bucket %q: %w", n.Name, fserr.ErrACLGrants)
	}
	var value []byte
	if own != rights.OwnershipUnset {
		value = []byte{byte(own)}
	}
	if err := Set(t, n, record.OwnershipAttr, value); err != nil {
		return err
	}
	b, err := record.GetBucketAttrs(t, n.Ino)
	if err != nil {
		return err
	}
	n.Set(record.FlagOwnership, own >= rights.OwnershipPreferred || rights.RequesterPays(b.Get(rights.PayerAttr)))
	if own != rights.OwnershipUnset {
		n.MakeExplicit() // it would go with the last object
	}
	if err := record.RefreshEntry(t, n); err != nil {
		return err
	}
	return record.PutInode(t, n)
}

// SetRequesterPays sets whether the requester pays for requests to j's bucket n.
func SetRequesterPays(t cluster.Txn, j *rights.Judge, n *record.Inode, on bool) error {
	own, err := j.StoredOwnership()
	if err != nil {
		return err
	}
	var value []byte
	if on {
		value = []byte{1}
		n.MakeExplicit() // it would go with the last object
	}
	if err := Set(t, n, rights.PayerAttr, value); err != nil {
		return err
	}
	n.Set(record.FlagOwnership, on || own >= rights.OwnershipPreferred)
	if err := record.RefreshEntry(t, n); err != nil {
		return err
	}
	return record.PutInode(t, n)
}

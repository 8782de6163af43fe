package bucketconf

import (
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/iam"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
	"ogw/vfs/policy"
)

// Policy returns the policy of the bucket n as it is shown, and whether it is public;
// nil if there is none.
func Policy(r cluster.Reader, who *iam.Directory, n *record.Inode) (text []byte, public bool, err error) {
	if !n.Has(record.FlagPolicy) {
		return nil, false, nil
	}
	stored, err := record.GetBucketPolicy(r, n.Ino)
	if err != nil {
		return nil, false, err
	}
	p, err := rights.CompilePolicy(&stored)
	if err != nil {
		return nil, false, fmt.Errorf("%w: policy of bucket %q: %w", fserr.ErrCorrupt, n.Name, err)
	}
	text, err = policy.Rewrite(stored.Text, func(id string) (string, error) { return who.Shown(r, id) })
	return text, p.Public(), err
}

// SetPolicy replaces the policy of j's bucket n. Users are kept by their IDs.
// *policy.Error, and ErrAccess for a public one where the access block refuses those.
func SetPolicy(t cluster.Txn, j *rights.Judge, who *iam.Directory, n *record.Inode, text []byte) error {
	// What is wrong is reported about the text as it was sent.
	sent := record.BucketPolicy{Bucket: n.Name, Text: text}
	if _, err := rights.CompilePolicy(&sent); err != nil {
		return err
	}
	kept, err := policy.Rewrite(text, func(name string) (string, error) { return principalID(t, who, name) })
	if err != nil {
		return err
	}
	stored := record.BucketPolicy{Bucket: n.Name, Text: kept}
	p, err := rights.CompilePolicy(&stored)
	if err != nil {
		return err
	}
	if err := j.TakesPolicy(p); err != nil {
		return err
	}
	return StorePolicy(t, n, &stored)
}

// StorePolicy stores a policy that compiles, whose users are IDs.
func StorePolicy(t cluster.Txn, n *record.Inode, stored *record.BucketPolicy) error {
	if err := t.Set(record.PolicyKey(n.Ino), stored.Encode()); err != nil {
		return err
	}
	digest := stored.Digest()
	if err := Set(t, n, record.PolicyAttr, digest[:]); err != nil {
		return err
	}
	return markPolicy(t, n, true)
}

// DropPolicy removes the policy of the bucket n, if there is one.
func DropPolicy(t cluster.Txn, n *record.Inode) error {
	if !n.Has(record.FlagPolicy) {
		return nil
	}
	if err := t.Delete(record.PolicyKey(n.Ino)); err != nil {
		return err
	}
	if err := Set(t, n, record.PolicyAttr, nil); err != nil {
		return err
	}
	return markPolicy(t, n, false)
}

// markPolicy notes in the bucket's inode and entry whether there is a policy.
func markPolicy(t cluster.Txn, n *record.Inode, has bool) error {
	n.Set(record.FlagPolicy, has)
	if has {
		n.MakeExplicit() // it would go with the last object
	}
	if err := record.RefreshEntry(t, n); err != nil {
		return err
	}
	return record.PutInode(t, n)
}

// principalID returns the ID of a user or role whom a policy names.
func principalID(r cluster.Reader, who *iam.Directory, name string) (string, error) {
	id, err := who.Principal(r, name)
	if errors.Is(err, fserr.ErrNoSuchUser) {
		err = &policy.Error{Message: "Invalid principal in policy", Detail: name}
	}
	return id, err
}

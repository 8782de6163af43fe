package vfs

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/bucketconf"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// CreateBucket makes a bucket, or turns an implied top-level directory into
// one: its owner's, an administrator's or the program's act. A nil owner is who
// asks. ErrBadBucketName,
// ErrBucketExists, ErrBucketOwned, ErrAccess.
func (fs *FS) CreateBucket(ctx context.Context, name string, owner *Cred) (BucketInfo, error) {
	return fs.CreateBucketWith(ctx, name, owner, BucketOptions{})
}

// BucketOptions of CreateBucketWith.
type BucketOptions struct {
	Grants Grants
	// Ownership of what others write; ErrACLGrants if Grants do not fit it.
	Ownership Ownership
	// Config is the configuration under the names of BucketConfig.
	Config map[string][]byte
}

// CreateBucketWith is CreateBucket with grants and configuration.
func (fs *FS) CreateBucketWith(ctx context.Context, name string, owner *Cred, with BucketOptions) (BucketInfo, error) {
	if err := record.ValidateGrants(with.Grants); err != nil {
		return BucketInfo{}, err
	}
	if _, err := fs.Authorize(ctx, ActCreateBucket, ObjectName{name, ""}); err != nil {
		return BucketInfo{}, err
	}
	if !ValidBucketName(name) {
		return BucketInfo{}, fmt.Errorf("%q: %w", name, ErrBadBucketName)
	}
	if owner == nil {
		owner = rights.CredOf(rights.SubjectOf(ctx))
	}
	var info BucketInfo
	err := fs.update(ctx, func(t cluster.Txn, o *op) error {
		if err := fs.rights.OnName(ctx, t, name).Grants(ActCreateBucket, nil); err != nil {
			return err
		}
		e, err := record.GetDentry(t, RootIno, name, true)
		if err != nil {
			return err
		}
		var n *record.Inode
		if e == nil {
			root, err := record.GetInode(t, RootIno)
			if err == nil {
				err = perm.FlagsOf(root).CheckWritable()
			}
			if err != nil {
				return err
			}
			ino, err := o.makeImplied(t, RootIno, []string{name}, owner)
			if err != nil {
				return err
			}
			if n, err = record.GetInode(t, ino); err != nil {
				return err
			}
		} else {
			if n, err = record.GetInode(t, e.Ino); err != nil {
				return err
			}
			s := rights.SubjectOf(ctx)
			switch {
			case !n.Has(record.FlagExplicit) && (rights.MayAll(s) || rights.Owns(s, n)):
				o.feed.InodeChanged(n.Ino, false)
			case n.Has(record.FlagExplicit) && owner.Is(n.UID):
				info = bucketInfo(name, n)
				return fmt.Errorf("bucket %q: %w", name, ErrBucketOwned)
			default:
				return fmt.Errorf("bucket %q: %w", name, ErrBucketExists)
			}
		}
		n.Set(record.FlagExplicit, true)
		n.UID, n.GID, n.CtimeNS = owner.UID(), owner.GID(), o.nowNS
		n.Unchoose()
		if err := record.RefreshEntry(t, n); err != nil {
			return err
		}
		info = bucketInfo(name, n)
		if err := setBucketOptions(t, fs.rights.OnBucket(ctx, t, n), n, with); err != nil {
			return err
		}
		return record.PutInode(t, n)
	})
	return info, err
}

// setBucketOptions stores them with the bucket n, and its judge. A directory that was there
// can have a block for such grants.
func setBucketOptions(t cluster.Txn, j rights.Judge, n *record.Inode, with BucketOptions) error {
	if with.Ownership != OwnershipUnset {
		if err := bucketconf.SetOwnership(t, n, with.Ownership, with.Grants); err != nil {
			return err
		}
	}
	if with.Grants != nil && with.Ownership != OwnershipEnforced {
		if err := j.TakesACL(with.Grants); err != nil {
			return err
		}
		if err := bucketconf.Set(t, n, record.GrantsAttr, record.EncodeGrants(with.Grants)); err != nil {
			return err
		}
	}
	for name, value := range with.Config {
		if err := bucketconf.Set(t, n, record.ConfigPrefix+name, value); err != nil {
			return err
		}
	}
	return nil
}

// HeadBucket describes a bucket, to who may list it; ErrNoSuchBucket,
// ErrAccess.
func (fs *FS) HeadBucket(ctx context.Context, name string) (BucketInfo, error) {
	var info BucketInfo
	err := fs.view(ctx, func(r cluster.Reader) error {
		n, err := keypath.BucketInode(r, name)
		if err != nil {
			return err
		}
		info = bucketInfo(name, n)
		j := fs.rights.OnBucket(ctx, r, n)
		return j.Grants(ActListObjects, nil)
	})
	return info, err
}

// ListBuckets returns at most limit buckets behind after in order of their
// names: those of the caller, or all to an administrator (S3 ListBuckets).
func (fs *FS) ListBuckets(ctx context.Context, after string, limit int) ([]BucketInfo, error) {
	if _, err := fs.Authorize(ctx, ActListBuckets, ObjectName{"", ""}); err != nil {
		return nil, err
	}
	var list []BucketInfo
	err := fs.view(ctx, func(r cluster.Reader) error {
		found, err := bucketEntries(r, after)
		list = nil
		for len(found) > 0 && len(list) < limit && err == nil {
			n := min(len(found), limit)
			list, err = fs.ownBuckets(ctx, r, list, found[:n])
			found = found[n:]
		}
		return err
	})
	return list[:min(len(list), max(limit, 0))], err
}

// ownBuckets appends those of the buckets found that belong to the caller.
func (fs *FS) ownBuckets(ctx context.Context, r cluster.Reader, list []BucketInfo, found []record.Dentry) ([]BucketInfo, error) {
	keys := make([][]byte, len(found))
	for i := range found {
		keys[i] = record.InodeKey(found[i].Ino)
	}
	values, err := r.GetMany(keys)
	if err != nil {
		return nil, err
	}
	s := rights.SubjectOf(ctx)
	for i, v := range values {
		if v == nil {
			fs.log.Error("bucket without inode", "bucket", found[i].Name, "inode", uint64(found[i].Ino))
			continue
		}
		n, err := record.DecodeInode(found[i].Ino, v)
		if err != nil {
			return nil, err
		}
		if rights.MayAll(s) || rights.Owns(s, n) {
			list = append(list, bucketInfo(found[i].Name, n))
		}
	}
	return list, nil
}

// bucketEntries returns the entries of buckets behind after. They are stored
// in the order of "name/", in which "a-b" comes before "a", so all are read and
// sorted.
func bucketEntries(r cluster.Reader, after string) ([]record.Dentry, error) {
	var found []record.Dentry
	prefix := record.DentryPrefix(RootIno)
	err := r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
		e, err := record.DecodeDentry(k[len(prefix):], v)
		if err == nil && e.Dir && e.Name > after && ValidBucketName(e.Name) {
			found = append(found, e)
		}
		return err
	})
	slices.SortFunc(found, func(a, b record.Dentry) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return found, err
}

// DeleteBucket removes an empty bucket; ErrBucketNotEmpty. Unfinished
// uploads are aborted with it (see dropDir).
func (fs *FS) DeleteBucket(ctx context.Context, name string) error {
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		_, n, err := fs.rights.Bucket(ctx, t, name, ActDeleteBucket)
		if err != nil {
			return err
		}
		empty, err := isEmpty(t, n.Ino)
		if err != nil {
			return err
		}
		if !empty {
			return fmt.Errorf("bucket %q: %w", name, ErrBucketNotEmpty)
		}
		root, err := record.GetInode(t, RootIno)
		if err == nil {
			err = perm.FlagsOf(root).CheckTake(perm.FlagsOf(n))
		}
		if err != nil {
			return err
		}
		if err := o.dropDir(t, n); err != nil {
			return err
		}
		e := &record.Dentry{Name: name, Dir: true, Ino: n.Ino, Mode: ModeDirectory}
		if err := o.deleteEntry(t, RootIno, e); err != nil {
			return err
		}
		return o.touchDir(t, RootIno)
	})
}

// BucketAttr describes a bucket and returns one of its stored attributes (ACL,
// …), nil if unset.
func (fs *FS) BucketAttr(ctx context.Context, name, attr string) (BucketInfo, []byte, error) {
	var value []byte
	var info BucketInfo
	err := fs.view(ctx, func(r cluster.Reader) error {
		n, err := keypath.BucketInode(r, name)
		if err != nil {
			return err
		}
		info = bucketInfo(name, n)
		b, err := record.GetBucketAttrs(r, n.Ino)
		value = b.Get(attr)
		return err
	})
	return info, bytes.Clone(value), err // others may hold what the store returned
}

// SetBucketAttr stores an attribute of a bucket; nil removes it.
func (fs *FS) SetBucketAttr(ctx context.Context, name, attr string, value []byte) error {
	return fs.update(ctx, func(t cluster.Txn, _ *op) error {
		n, err := keypath.BucketInode(t, name)
		if err != nil {
			return err
		}
		return bucketconf.Set(t, n, attr, value)
	})
}

// ValidBucketName reports whether name is legal for a bucket: 3 to 255 of
// a-z 0-9 . - _, not beginning or ending with one of the last three, and not
// formatted as an IPv4 address.
func ValidBucketName(name string) bool { return naming.ValidBucket(name) }

// BucketUsage counts what a bucket holds: objects and their bytes. It reads
// page by page: what changes concurrently may be counted or not.
func (fs *FS) BucketUsage(ctx context.Context, name string) (objects, bytes int64, err error) {
	o := ListOptions{MaxKeys: MaxListKeys}
	for {
		page, err := fs.ListObjects(ctx, name, o)
		if err != nil {
			return 0, 0, err
		}
		for i := range page.Objects {
			objects++
			bytes += page.Objects[i].Size
		}
		if !page.Truncated {
			return objects, bytes, nil
		}
		o.StartAfter = page.Next
	}
}

func bucketInfo(name string, n *record.Inode) BucketInfo {
	return BucketInfo{Name: name, Ino: n.Ino, Created: time.Unix(0, n.BtimeNS), UID: n.UID, GID: n.GID}
}

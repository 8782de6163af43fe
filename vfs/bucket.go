package vfs

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"ogw/cluster"
)

// maxBucketAttrBytes bounds the attributes of a bucket together: several
// policies of S3's limit (20 KiB), within every engine's transaction.
const maxBucketAttrBytes = 256 << 10

func bucketInfo(name string, n *inode) BucketInfo {
	return BucketInfo{Name: name, Ino: n.ino, Created: time.Unix(0, n.btimeNS), UID: n.uid, GID: n.gid}
}

// bucketInode reads the directory of a bucket; ErrNoSuchBucket.
func bucketInode(r cluster.Reader, name string) (*inode, error) {
	if !ValidBucketName(name) {
		return nil, fmt.Errorf("bucket %q: %w", name, ErrNoSuchBucket)
	}
	e, err := bucketEntry(r, name)
	if err != nil {
		return nil, err
	}
	return getInode(r, e.ino)
}

// CreateBucket makes a bucket, or turns an implied top-level directory into
// one: its owner's, an administrator's or the program's act. ErrBadBucketName,
// ErrBucketExists, ErrBucketOwned, ErrAccess.
func (fs *FS) CreateBucket(ctx context.Context, name string, owner *Cred) (BucketInfo, error) {
	return fs.CreateBucketWith(ctx, name, owner, BucketOptions{})
}

// BucketOptions of CreateBucketWith.
type BucketOptions struct {
	Grants Grants
	// Config is the configuration under the names of BucketConfig.
	Config map[string][]byte
}

// configPrefix begins the names of the attributes that hold configuration.
const configPrefix = "config."

// CreateBucketWith is CreateBucket with grants and configuration.
func (fs *FS) CreateBucketWith(ctx context.Context, name string, owner *Cred, with BucketOptions) (BucketInfo, error) {
	if err := with.Grants.validate(); err != nil {
		return BucketInfo{}, err
	}
	if _, err := fs.Authorize(ctx, ActCreateBucket, name); err != nil {
		return BucketInfo{}, err
	}
	if !ValidBucketName(name) {
		return BucketInfo{}, fmt.Errorf("%q: %w", name, ErrBadBucketName)
	}
	if owner == nil {
		owner = Root
	}
	var info BucketInfo
	err := fs.update(ctx, func(t cluster.Txn, o *op) error {
		e, err := getDentry(t, RootIno, name, true)
		if err != nil {
			return err
		}
		var n *inode
		if e == nil {
			root, err := getInode(t, RootIno)
			if err == nil {
				err = root.fileFlags().checkWritable()
			}
			if err != nil {
				return err
			}
			ino, err := o.makeImplied(t, RootIno, []string{name}, owner)
			if err != nil {
				return err
			}
			if n, err = getInode(t, ino); err != nil {
				return err
			}
		} else {
			if n, err = getInode(t, e.ino); err != nil {
				return err
			}
			s := subjectOf(ctx)
			switch {
			case !n.has(flagExplicit) && (s.mayAll() || s.owns(n)):
				o.inodeChanged(n.ino, false)
			case n.has(flagExplicit) && n.uid == owner.UID:
				info = bucketInfo(name, n)
				return fmt.Errorf("bucket %q: %w", name, ErrBucketOwned)
			default:
				return fmt.Errorf("bucket %q: %w", name, ErrBucketExists)
			}
		}
		n.set(flagExplicit, true)
		n.uid, n.gid, n.ctimeNS = owner.UID, owner.GID, o.nowNS
		n.unchoose()
		if err := tellEntry(t, n); err != nil {
			return err
		}
		info = bucketInfo(name, n)
		if with.Grants != nil {
			if err := o.setBucketAttr(t, n, attrGrants, with.Grants.encode()); err != nil {
				return err
			}
		}
		for name, value := range with.Config {
			if err := o.setBucketAttr(t, n, configPrefix+name, value); err != nil {
				return err
			}
		}
		return putInode(t, n)
	})
	return info, err
}

// HeadBucket describes a bucket, to who may list it; ErrNoSuchBucket,
// ErrAccess.
func (fs *FS) HeadBucket(ctx context.Context, name string) (BucketInfo, error) {
	var info BucketInfo
	err := fs.view(ctx, func(r cluster.Reader) error {
		n, err := bucketInode(r, name)
		if err != nil {
			return err
		}
		info = bucketInfo(name, n)
		j := fs.bucketJudge(ctx, r, n)
		return j.grants(ActListObjects, nil)
	})
	return info, err
}

// ListBuckets returns at most limit buckets behind after in order of their
// names: those of who asks, or all to an administrator (S3 ListBuckets).
func (fs *FS) ListBuckets(ctx context.Context, after string, limit int) ([]BucketInfo, error) {
	if _, err := fs.Authorize(ctx, ActListBuckets, ""); err != nil {
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

// ownBuckets appends those of the buckets found that belong to who asks.
func (fs *FS) ownBuckets(ctx context.Context, r cluster.Reader, list []BucketInfo, found []dentry) ([]BucketInfo, error) {
	keys := make([][]byte, len(found))
	for i := range found {
		keys[i] = inodeKey(found[i].ino)
	}
	values, err := r.GetMany(keys)
	if err != nil {
		return nil, err
	}
	s := subjectOf(ctx)
	for i, v := range values {
		if v == nil {
			fs.log.Error("bucket without inode", "bucket", found[i].name, "inode", uint64(found[i].ino))
			continue
		}
		n, err := decodeInode(found[i].ino, v)
		if err != nil {
			return nil, err
		}
		if s.mayAll() || s.owns(n) {
			list = append(list, bucketInfo(found[i].name, n))
		}
	}
	return list, nil
}

// bucketEntries returns the entries of buckets behind after. They are stored
// in the order of "name/", in which "a-b" comes before "a", so all are read and
// sorted.
func bucketEntries(r cluster.Reader, after string) ([]dentry, error) {
	var found []dentry
	prefix := dentryPrefix(RootIno)
	err := r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
		e, err := decodeDentry(k[len(prefix):], v)
		if err == nil && e.dir && e.name > after && ValidBucketName(e.name) {
			found = append(found, e)
		}
		return err
	})
	slices.SortFunc(found, func(a, b dentry) int {
		if a.name < b.name {
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
		n, err := bucketInode(t, name)
		if err != nil {
			return err
		}
		j := fs.bucketJudge(ctx, t, n)
		if err := j.grants(ActDeleteBucket, nil); err != nil {
			return err
		}
		empty, err := isEmpty(t, n.ino)
		if err != nil {
			return err
		}
		if !empty {
			return fmt.Errorf("bucket %q: %w", name, ErrBucketNotEmpty)
		}
		root, err := getInode(t, RootIno)
		if err == nil {
			err = root.fileFlags().checkTake(n.fileFlags())
		}
		if err != nil {
			return err
		}
		if err := o.dropDir(t, n); err != nil {
			return err
		}
		e := &dentry{name: name, dir: true, ino: n.ino, mode: ModeDirectory}
		if err := o.deleteEntry(t, RootIno, e); err != nil {
			return err
		}
		return o.touchDir(t, RootIno)
	})
}

// bucketRecord is what key 'b' holds: attributes by name.
//
// Value: version byte, the number of attributes, and for each its name and
// its value.
type bucketRecord map[string][]byte

const bucketVersion = 1

func (b bucketRecord) encode() []byte {
	out := binary.AppendUvarint([]byte{bucketVersion}, uint64(len(b)))
	for _, name := range slices.Sorted(maps.Keys(b)) {
		out = appendBytes(appendStr(out, name), b[name])
	}
	return out
}

func decodeBucket(v []byte) (bucketRecord, error) {
	b := make(bucketRecord)
	if v == nil {
		return b, nil
	}
	d := decoder{b: v, what: "bucket"}
	if version := d.byte(); version != bucketVersion {
		return nil, fmt.Errorf("%w: bucket record has format %d", ErrCorrupt, version)
	}
	n := d.count()
	for i := 0; i < n && d.err == nil; i++ {
		name := d.str()
		b[name] = d.bytes()
	}
	return b, d.end()
}

func getBucketRecord(r cluster.Reader, ino Ino) (bucketRecord, error) {
	v, err := r.Get(bucketKey(ino))
	if err != nil {
		return nil, err
	}
	return decodeBucket(v)
}

// BucketAttr describes a bucket and returns one of its stored attributes (ACL,
// …), nil if unset.
func (fs *FS) BucketAttr(ctx context.Context, name, attr string) (BucketInfo, []byte, error) {
	var value []byte
	var info BucketInfo
	err := fs.view(ctx, func(r cluster.Reader) error {
		n, err := bucketInode(r, name)
		if err != nil {
			return err
		}
		info = bucketInfo(name, n)
		b, err := getBucketRecord(r, n.ino)
		value = b[attr]
		return err
	})
	return info, bytes.Clone(value), err // others may hold what the store returned
}

// SetBucketAttr stores an attribute of a bucket; nil removes it.
func (fs *FS) SetBucketAttr(ctx context.Context, name, attr string, value []byte) error {
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		n, err := bucketInode(t, name)
		if err != nil {
			return err
		}
		return o.setBucketAttr(t, n, attr, value)
	})
}

func (o *op) setBucketAttr(t cluster.Txn, n *inode, attr string, value []byte) error {
	if err := n.fileFlags().checkFree(); err != nil {
		return err
	}
	b, err := getBucketRecord(t, n.ino)
	if err != nil {
		return err
	}
	if value == nil {
		delete(b, attr)
	} else {
		b[attr] = value
	}
	if len(b) == 0 {
		return t.Delete(bucketKey(n.ino))
	}
	v := b.encode()
	if len(v) > maxBucketAttrBytes {
		return fmt.Errorf("attributes of bucket %q with %d bytes: %w", n.name, len(v), ErrAttrTooLarge)
	}
	return t.Set(bucketKey(n.ino), v)
}

// BucketUsage counts what a bucket holds: objects and their bytes. It reads
// page by page: what changes meanwhile may be counted or not.
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

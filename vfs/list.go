package vfs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/listing"
	"ogw/vfs/internal/record"
)

// ListObjects returns one page of the keys of a bucket in byte order: a seek
// and a scan, never a sort. Keys of explicit directories ("x/") are among
// them, implied directories are not (S3 ListObjectsV2).
//
// The keys are those that GetObject finds: a symbolic link is listed as the
// object that it leads to within the bucket, and one that leads to none is
// left out, as special files are. A directory is a common prefix without a
// look at what it holds; one that holds nothing but such entries is one too.
// Keys over MaxKeyBytes, which deep directories of the POSIX doors have, are
// left out as well: no call of an object door takes them. ListOptions.Text leaves out
// more; where too many keys in a row are none, the page is ErrInvalid.
// A page may hold less than MaxKeys and still be Truncated.
func (fs *FS) ListObjects(ctx context.Context, bucket string, o ListOptions) (ListResult, error) {
	ctx = fs.objectCtx(ctx, ObjectName{bucket, o.Prefix})
	if o.MaxKeys < 0 {
		return ListResult{}, fmt.Errorf("page of %d keys: %w", o.MaxKeys, ErrInvalid)
	}
	if bucket != "" && !ValidBucketName(bucket) {
		return ListResult{}, fmt.Errorf("bucket %q: %w", bucket, ErrNoSuchBucket)
	}
	o.MaxKeys = min(o.MaxKeys, MaxListKeys)
	var page *listing.Page
	mark := fs.session.Open.Mark()
	err := fs.view(ctx, func(r cluster.Reader) (err error) {
		page, err = listing.Objects(fs.rights.On(ctx, r, 0), bucket, o)
		return err
	})
	if err != nil {
		return ListResult{}, err
	}
	list := ListResult{Objects: fs.describe(page, o), CommonPrefixes: page.CommonPrefixes, Truncated: page.Truncated, Next: page.Next}
	for i := range list.Objects {
		if ob := &list.Objects[i]; !o.NamesOnly && fs.session.Open.LeftSince(mark, ob.Ino) {
			if err := fs.listAgain(ctx, ob); err != nil {
				return ListResult{}, err
			}
		}
		if page.Heir != nil {
			list.Objects[i].UID = page.Heir.UID
		}
	}
	return list, nil
}

// describe completes the objects of a page, with what this process did not flush yet.
func (fs *FS) describe(page *listing.Page, o ListOptions) []ObjectInfo {
	if len(page.Objects) == 0 {
		return nil
	}
	objects := make([]ObjectInfo, 0, len(page.Objects))
	for i := range page.Objects {
		switch x := &page.Objects[i]; {
		case o.NamesOnly:
			objects = append(objects, ObjectInfo{Key: x.Key, Ino: x.Ino, Dir: strings.HasSuffix(x.Key, "/")})
		case x.Inode == nil:
			fs.log.Error("entry without inode", "key", x.Key, "inode", x.Ino)
		default:
			objects = append(objects, fs.listInfo(x.Key, x.Inode))
		}
	}
	return objects
}

// listAgain describes an object whose file was flushed and closed after the
// snapshot of the page. One that is gone by now stays as it was.
func (fs *FS) listAgain(ctx context.Context, ob *ObjectInfo) error {
	for mark := fs.session.Open.Mark(); ; mark = fs.session.Open.Mark() {
		err := fs.view(ctx, func(r cluster.Reader) error {
			n, err := record.GetInode(r, ob.Ino)
			if err == nil {
				*ob = fs.listInfo(ob.Key, n)
			}
			return err
		})
		if errors.Is(err, ErrStale) {
			return nil
		}
		if err != nil || !fs.session.Open.LeftSince(mark, ob.Ino) {
			return err
		}
	}
}

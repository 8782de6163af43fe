package vfs

import (
	"context"
	"errors"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/locate"
	"ogw/vfs/internal/record"
)

// ExtentLocation is where one range of a file is.
type ExtentLocation = locate.Extent

// Whereis reports who holds the bytes of the object at a stored path
// "bucket/key" (or its POSIX form). ErrNotExist.
func (fs *FS) Whereis(ctx context.Context, path string) (ObjectInfo, []ExtentLocation, error) {
	info, err := fs.findPath(ctx, path)
	if err != nil {
		return ObjectInfo{}, nil, err
	}
	list, err := fs.whereisInode(ctx, info.Ino)
	if k := len(list); k > 0 {
		info.Size = max(info.Size, list[k-1].End())
	}
	return info, list, err
}

// whereisInode reports who holds the bytes of an inode, unflushed ones included.
func (fs *FS) whereisInode(ctx context.Context, ino Ino) ([]ExtentLocation, error) {
	rd, err := fs.contents.OpenStored(ctx, ino)
	if err != nil {
		return nil, err
	}
	defer rd.Close()
	list, err := locate.Stored(ctx, fs.blobs, rd)
	if err != nil {
		return nil, err
	}
	if of := fs.opened(ino); of != nil {
		list = locate.Cover(list, of.unflushed())
	}
	return list, nil
}

// findPath describes what is at a stored path or at its POSIX form.
func (fs *FS) findPath(ctx context.Context, path string) (ObjectInfo, error) {
	path = strings.TrimPrefix(path, "/")
	info, err := fs.HeadObject(ctx, ObjectName{"", path}, GetOptions{})
	if err == nil || !errors.Is(err, ErrNoSuchKey) && !errors.Is(err, ErrNoSuchBucket) && !errors.Is(err, ErrInvalid) {
		return info, err
	}
	a, e := fs.Resolve(ctx, Root, path, false)
	if e != nil {
		if errors.Is(e, ErrNotExist) || errors.Is(e, ErrNotDir) {
			e = ErrNotExist
		}
		return info, e
	}
	err = fs.view(ctx, func(r cluster.Reader) error {
		n, err := record.GetInode(r, a.Ino)
		if err == nil {
			info = plainInfo(path, n)
		}
		return err
	})
	return info, err
}

// unflushed returns the ranges that are not in the store, in order.
func (of *openFile) unflushed() []locate.Range {
	of.mu.RLock()
	defer of.mu.RUnlock()
	list := make([]locate.Range, 0, len(of.pieces))
	for _, p := range of.pieces {
		list = append(list, locate.Range{Off: p.off, Len: p.len})
	}
	return list
}

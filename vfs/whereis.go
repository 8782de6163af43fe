package vfs

import (
	"context"
	"errors"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// ExtentLocation tells where one range of a file is.
type ExtentLocation struct {
	Off, Len int64
	Kind     string             // "inline", "blob", "hole", "unflushed"
	Blob     string             // hexadecimal blob ID
	Nodes    []cluster.Location // empty for inline data: it is in the metadata
}

func (e *ExtentLocation) end() int64 { return e.Off + e.Len }

// Whereis tells who holds the bytes of the object at a stored path
// "bucket/key" (or its POSIX form). ErrNotExist.
func (fs *FS) Whereis(ctx context.Context, path string) (ObjectInfo, []ExtentLocation, error) {
	info, err := fs.findPath(ctx, path)
	if err != nil {
		return ObjectInfo{}, nil, err
	}
	list, err := fs.whereisInode(ctx, info.Ino)
	if k := len(list); k > 0 {
		info.Size = max(info.Size, list[k-1].end())
	}
	return info, list, err
}

// whereisInode tells who holds the bytes of an inode, unflushed ones included.
func (fs *FS) whereisInode(ctx context.Context, ino Ino) ([]ExtentLocation, error) {
	rd, err := fs.contents.OpenStored(ctx, ino)
	if err != nil {
		return nil, err
	}
	defer rd.Close()
	list, err := fs.locateStored(ctx, rd)
	if err != nil {
		return nil, err
	}
	if of := fs.opened(ino); of != nil {
		list = of.locateUnflushed(list)
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

// locateStored walks the segments of rd.
func (fs *FS) locateStored(ctx context.Context, rd *content.Reader) (list []ExtentLocation, err error) {
	var lastBlob cluster.BlobID
	var lastNodes []cluster.Location
	for off := int64(0); off < rd.Size(); {
		p, err := rd.Page(ctx, off)
		if err != nil {
			return nil, err
		}
		for i := p.Find(off); i < len(p.Segs); i++ {
			s := &p.Segs[i]
			list = appendHole(list, off, s.Off)
			x := ExtentLocation{Off: s.Off, Len: s.Len, Kind: "inline"}
			if s.Data == nil {
				x.Kind, x.Blob = "blob", s.Blob.String()
				if s.Blob != lastBlob {
					if lastNodes, err = fs.blobs.Locate(ctx, s.Blob); err != nil {
						return nil, fserr.Map(err)
					}
					lastBlob = s.Blob
				}
				x.Nodes = lastNodes
			}
			list = append(list, x)
			off = s.End()
		}
		list = appendHole(list, off, p.To)
		off = p.To
	}
	return list, nil
}

func appendHole(list []ExtentLocation, from, to int64) []ExtentLocation {
	if from >= to {
		return list
	}
	if k := len(list) - 1; k >= 0 && list[k].Kind == "hole" {
		list[k].Len = to - list[k].Off
		return list
	}
	return append(list, ExtentLocation{Off: from, Len: to - from, Kind: "hole"})
}

// locateUnflushed puts what is not flushed over what is stored.
func (of *openFile) locateUnflushed(stored []ExtentLocation) (list []ExtentLocation) {
	of.mu.RLock()
	defer of.mu.RUnlock()
	var at int64
	next := 0
	// below copies what is stored up to an offset.
	below := func(to int64) {
		for at < to {
			for next < len(stored) && stored[next].end() <= at {
				next++
			}
			if next == len(stored) {
				list = appendHole(list, at, to)
				at = to
				return
			}
			x := stored[next]
			x.Len = min(x.end(), to) - at
			x.Off = at
			list = append(list, x)
			at = x.end()
		}
	}
	for _, p := range of.pieces {
		below(p.off)
		if k := len(list) - 1; k >= 0 && list[k].Kind == "unflushed" && list[k].end() == p.off {
			list[k].Len += p.len
		} else {
			list = append(list, ExtentLocation{Off: p.off, Len: p.len, Kind: "unflushed"})
		}
		at = p.end()
	}
	if k := len(stored); k > 0 {
		below(stored[k-1].end())
	}
	return list
}

package vfs

import (
	"context"

	"ogw/cluster"
)

// CheckOptions of Check.
type CheckOptions struct {
	Repair bool // mend what is safe to mend
	Data   bool // read and verify all bytes too
}

// CheckReport tells what Check found.
type CheckReport struct {
	Inodes, Directories, Files, Contents, Extents, Blobs int64
	Bytes                                                int64
	Problems                                             []Problem
	Dropped                                              int64 // problems over MaxProblems, counted only
	Repaired                                             int64
}

// Problem is one finding of Check.
type Problem struct {
	Kind     string // stable word: "orphan-blob", "missing-blob", "nlink", …
	Detail   string
	Repaired bool
}

// Check walks everything (ogw check).
func (fs *FS) Check(ctx context.Context, o CheckOptions) (CheckReport, error) {
	return CheckReport{}, nil
}

// ExtentLocation tells where one range of a file is.
type ExtentLocation struct {
	Off, Len int64
	Kind     string             // "inline", "blob", "hole", "unflushed"
	Blob     string             // hexadecimal blob ID
	Nodes    []cluster.Location // empty for inline data: it is in the metadata
}

// Whereis tells who holds the bytes of the object at a stored path
// "bucket/key" (or its POSIX form). ErrNotExist.
func (fs *FS) Whereis(ctx context.Context, path string) (ObjectInfo, []ExtentLocation, error) {
	return ObjectInfo{}, nil, ErrNotSupported
}

// Purge drops path, and with a trailing slash all below it, from every cache
// of this process: block caches, and through the Invalidators those of the
// kernels. It returns the number of inodes touched. The store is unchanged.
func (fs *FS) Purge(ctx context.Context, path string) (int, error) { return 0, ErrNotSupported }

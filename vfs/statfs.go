package vfs

import (
	"context"

	"ogw/vfs/internal/fserr"
)

const (
	// unknownBytes is what a cluster that cannot tell its size shows as
	// total and free: programs that look for room must find some.
	unknownBytes = 1 << 50
	// freeFiles: inode numbers do not run out.
	freeFiles = 1 << 40
)

// StatFS returns the size of the whole. Files counts the inodes ever made: an
// upper bound that costs nothing to know.
func (fs *FS) StatFS(ctx context.Context) (StatFS, error) {
	u, err := fs.blobs.Usage(ctx)
	if err != nil {
		return StatFS{}, fserr.Map(err)
	}
	s := StatFS{TotalBytes: u.Total, UsedBytes: u.Used, FreeBytes: u.Free, Files: fs.ids.Count(), FreeFiles: freeFiles, FSID: fs.FSID()}
	if u.Total == 0 {
		s.TotalBytes, s.UsedBytes, s.FreeBytes = unknownBytes, 0, unknownBytes
	}
	return s, nil
}

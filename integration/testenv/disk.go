package testenv

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// DiskBytes is what the files below a folder take on the disk, in bytes. What comes
// or goes concurrently may be missed.
func DiskBytes(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			total += allocated(e)
		}
		return nil
	})
	return total
}

// allocated is what the blocks of a file take, in bytes; 0 of one that is gone.
func allocated(e fs.DirEntry) int64 {
	info, err := e.Info()
	if err != nil {
		return 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return st.Blocks * 512
}

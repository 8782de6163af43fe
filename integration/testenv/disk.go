package testenv

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// DiskBytes is what the files below a folder take on the disk, in bytes. What comes
// or goes meanwhile may be missed.
func DiskBytes(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				total += st.Blocks * 512
			}
		}
		return nil
	})
	return total
}

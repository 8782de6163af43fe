package metafs

import "github.com/cockroachdb/pebble/v2/vfs"

// Stack is the file system for Pebble over that of a rollback guard.
func Stack(below *RollbackGuard, wait *SpaceWait, h *Health) vfs.FS {
	return walErrorFS{guardFS{spaceWaitFS{aheadFS{below}, wait}, h}, h, wait}
}

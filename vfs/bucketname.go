package vfs

import (
	"strings"

	"ogw/vfs/internal/naming"
)

// reserved tells whether no directory at the top may have this name (see
// Config.Reserved).
func (fs *FS) reserved(name string) bool {
	for _, r := range fs.cfg.Reserved {
		if rest, ok := strings.CutSuffix(name, r); ok && (rest == "" || strings.HasSuffix(rest, ".")) {
			return true
		}
	}
	return false
}

// ValidBucketName tells whether name is legal for a bucket: 3 to 255 of
// a-z 0-9 . - _, not beginning or ending with one of the last three, and not
// formatted as an IPv4 address.
func ValidBucketName(name string) bool { return naming.ValidBucket(name) }

package fusemount

import (
	"os"
	"path/filepath"
	"strconv"
)

// mountPlace is where a mount is, and its ID.
type mountPlace struct {
	path string
	id   uint64 // 0: not known
}

// mountsOf returns the mounts of a superblock that are in the tree. What is
// mounted over another hides that. It looks no path up: the way to a mount may
// lead through one that nobody serves yet.
func mountsOf(device string) (list []mountPlace) {
	var ids map[uint32]uint64
	for f := range mountEntries() {
		if f[2] != device {
			continue
		}
		if ids == nil {
			ids = mountIDs()
		}
		old, err := strconv.ParseUint(f[0], 10, 32)
		if err != nil {
			continue
		}
		list = append(list, mountPlace{unescapeMount(f[4]), ids[uint32(old)]})
	}
	return list
}

// hasMountsInside reports whether something is mounted on a directory of a
// superblock, in any mount namespace that can be seen.
func hasMountsInside(device string) bool {
	seen := make(map[string]bool)
	list, _ := filepath.Glob("/proc/[0-9]*/ns/mnt") // the pattern is right
	for _, name := range append([]string{"/proc/self/ns/mnt"}, list...) {
		namespace, err := os.Readlink(name)
		if err != nil || seen[namespace] { // gone, or not to be seen
			continue
		}
		seen[namespace] = true
		if mountedInside(filepath.Join(filepath.Dir(name), "../mountinfo"), device) {
			return true
		}
	}
	return false
}

// mountedInside is hasMountsInside for one mount table.
func mountedInside(table, device string) bool {
	own := make(map[string]bool) // mounts of the superblock
	for f := range entriesOf(table) {
		if f[2] == device {
			own[f[0]] = true
		}
	}
	for f := range entriesOf(table) {
		if own[f[1]] {
			return true
		}
	}
	return false
}

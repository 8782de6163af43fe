package fusemount

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
// superblock, in any mount namespace that can be seen. Each is known by its first mount,
// whose ID no other one has: to ask a process for its namespace would wait for one that
// begins another program, which waits itself if it has files of a mount that nobody serves
// yet.
func hasMountsInside(device string) bool {
	seen := make(map[string]bool)
	list, _ := filepath.Glob("/proc/[0-9]*/mountinfo") // the pattern is right
	for _, table := range append([]string{"/proc/self/mountinfo"}, list...) {
		first := firstMount(table)
		if first == "" || seen[first] { // gone, or not to be seen
			continue
		}
		seen[first] = true
		if mountedInside(table, device) {
			return true
		}
	}
	return false
}

// firstMount is the ID of the first mount of a table; "" if it cannot be read.
func firstMount(table string) string {
	f, err := os.Open(table)
	if err != nil {
		return ""
	}
	defer f.Close()
	var line [16]byte // begins with the ID
	n, _ := f.Read(line[:])
	id, _, _ := strings.Cut(string(line[:n]), " ")
	return id
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

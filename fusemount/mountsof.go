package fusemount

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// IsMount reports whether a mount of this package, of whichever process, is at the
// absolute path dir: on top or covered by another.
func IsMount(dir string) bool {
	for fields := range mountEntries() {
		i := slices.Index(fields, "-")
		if unescapeMount(fields[4]) == dir && i > 0 && i+1 < len(fields) && fields[i+1] == "fuse."+fsType {
			return true
		}
	}
	return false
}

// mountedType returns the type of the file system mounted on dir, if any.
func mountedType(dir string) string {
	fields := mountEntry(dir)
	if i := slices.Index(fields, "-"); i > 0 && i+1 < len(fields) {
		return fields[i+1]
	}
	return ""
}

// mountEntry returns the line of the mount table for what is mounted on dir:
//
//	ID parent major:minor root MOUNTPOINT options... - TYPE source ...
//
// Where several are, it is the one on which no other stands: the table has them in the order
// in which they were made, and an older one may have been moved there.
func mountEntry(dir string) (found []string) {
	var list [][]string
	parents := make(map[string]bool)
	for fields := range mountEntries() {
		if unescapeMount(fields[4]) == dir {
			list = append(list, fields)
			parents[fields[1]] = true
		}
	}
	for _, fields := range list {
		if !parents[fields[0]] {
			found = fields
		}
	}
	return found
}

// mountEntries are the lines of the mount table.
func mountEntries() iter.Seq[[]string] { return entriesOf("/proc/self/mountinfo") }

// entriesOf are the lines of a mount table; none if it cannot be read.
func entriesOf(name string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		table, err := os.ReadFile(name)
		if err != nil {
			return
		}
		for line := range strings.SplitSeq(string(table), "\n") {
			if fields := strings.Fields(line); len(fields) >= 7 && !yield(fields) {
				return
			}
		}
	}
}

// unescapeMount undoes the octal escapes of the mount table.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

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
		list = append(list, mountPlace{unescapeMount(f[4]), uniqueID(ids, f)})
	}
	return list
}

// uniqueID is that of a line of the mount table, among those of mountIDs; 0: not known.
func uniqueID(ids map[uint32]uint64, line []string) uint64 {
	old, err := strconv.ParseUint(line[0], 10, 32)
	if err != nil {
		return 0
	}
	return ids[uint32(old)]
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

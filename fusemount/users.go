package fusemount

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxUsers bounds how many users of a mount a message names.
const maxUsers = 5

// Users names what keeps the mount at the absolute path dir busy, for a message:
// processes that have something of it open, as working directory or as program, and
// mounts below. It is "programs" if nothing is seen; who only maps a file, is in another mount
// namespace or may not be looked at, is not. No call reaches the mount.
func Users(dir string) string {
	var list []string
	below := func(path string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
	for fields := range mountEntries() {
		if at := unescapeMount(fields[4]); at != dir && below(at) {
			list = append(list, "the mount at "+at)
		}
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return "programs"
	}
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err != nil || !usesAny(filepath.Join("/proc", p.Name()), below) {
			continue
		}
		name, err := os.ReadFile(filepath.Join("/proc", p.Name(), "comm"))
		if err == nil {
			list = append(list, fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), p.Name()))
		}
	}
	if len(list) == 0 {
		return "programs"
	}
	if n := len(list) - maxUsers; n > 0 {
		list = append(list[:maxUsers], fmt.Sprintf("%d more", n))
	}
	return strings.Join(list, ", ")
}

// usesAny reports whether a process, by its directory in /proc, has a file whose path
// is one of those.
func usesAny(proc string, below func(path string) bool) bool {
	uses := func(link string) bool {
		path, err := os.Readlink(filepath.Join(proc, link))
		return err == nil && below(strings.TrimSuffix(path, " (deleted)"))
	}
	if uses("cwd") || uses("root") || uses("exe") {
		return true
	}
	d, err := os.Open(filepath.Join(proc, "fd"))
	if err != nil {
		return false
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return false
	}
	for _, fd := range names {
		if uses("fd/" + fd) {
			return true
		}
	}
	return false
}

package fusemount

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// mountPlace is where a mount is, and its ID.
type mountPlace struct {
	path string
	id   uint64
}

// mountsOf returns the mounts of a superblock that are in the tree. What is
// mounted over another hides that.
func mountsOf(device string) (list []mountPlace) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range strings.SplitSeq(string(table), "\n") {
		if f := strings.Fields(line); len(f) >= 7 && f[2] == device {
			p := mountPlace{path: unescapeMount(f[4])}
			p.id = idAt(p.path)
			list = append(list, p)
		}
	}
	return list
}

// idAt returns the ID of the mount at path, 0 if it is not known. It asks no
// server: the root of a mount is not looked up.
func idAt(path string) (id uint64) {
	done := make(chan struct{})
	go onOwnThread(func() {
		defer close(done)
		if ownDescriptors(-1) != nil {
			return
		}
		if fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0); err == nil {
			id, _ = mountID(fd)
			unix.Close(fd)
		}
	})
	<-done
	return id
}

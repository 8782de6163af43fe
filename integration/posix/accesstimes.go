package posix

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is above the grain of times of local file systems.
const clockTick = 30 * time.Millisecond

// readers read a file past the kernel's pages, or a directory or a link.
var readers = map[string]func(t *T, name string, flags int){
	reg: func(t *T, name string, flags int) {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
		must(t, err)
		defer unix.Close(fd)
		must(t, unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED))
		n, err := unix.Read(fd, make([]byte, 10))
		check(t, err == nil && n == 4, "read %d, %v", n, err)
	},
	dir: func(t *T, name string, flags int) {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|flags, 0)
		must(t, err)
		defer unix.Close(fd)
		_, err = unix.Getdents(fd, make([]byte, 1000))
		must(t, err)
	},
}

// accessTimeCases are those of relatime, which is the default of mount(8).
var accessTimeCases = []namedCase{
	{"reading", func(t *T, d string) {
		write(t, d+"/"+reg, "text")
		must(t, unix.Mkdir(d+"/"+dir, 0o755))
		for kind, read := range readers {
			name := d + "/" + kind
			fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			must(t, err)
			must(t, unix.Fsync(fd)) // so that its pages can be dropped
			must(t, unix.Close(fd))
			before := lstat(t, name)
			time.Sleep(clockTick)
			read(t, name, unix.O_NOATIME)
			st := lstat(t, name)
			check(t, st.Atim == before.Atim, "%s: O_NOATIME moves the time", kind)
			read(t, name, 0)
			first := lstat(t, name)
			check(t, later(first.Atim, before.Atim) && first.Mtim == before.Mtim && first.Ctim == before.Ctim,
				"%s: the first read leaves %v, %v, %v", kind, first.Atim, first.Mtim, first.Ctim)
			time.Sleep(clockTick)
			read(t, name, 0)
			st = lstat(t, name)
			check(t, st.Atim == first.Atim, "%s: a second read moves the time", kind)
			must(t, unix.Chmod(name, 0o700))
			time.Sleep(clockTick)
			read(t, name, 0)
			st = lstat(t, name)
			check(t, later(st.Atim, first.Atim), "%s: a read after a change of attributes leaves the time", kind)
			past := unix.Timespec{Sec: 1e9}
			must(t, unix.UtimesNano(name, []unix.Timespec{past, past}))
			st = lstat(t, name)
			check(t, st.Atim == past, "%s: set is %v", kind, st.Atim)
		}
	}},
	{"copy_file_range", func(t *T, d string) {
		size := 1 << 20 // above what a server may copy like a write
		write(t, d+"/src", strings.Repeat("text", size/4))
		dst := open(t, d+"/dst", unix.O_CREAT|unix.O_RDWR)
		copied := func(flags int) {
			src, err := unix.Open(d+"/src", unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
			must(t, err)
			defer unix.Close(src)
			from, to := int64(0), int64(0)
			n, err := unix.CopyFileRange(src, &from, dst, &to, size, 0)
			check(t, err == nil && n == size, "copied %d, %v", n, err)
		}
		before := lstat(t, d+"/src")
		time.Sleep(clockTick)
		copied(unix.O_NOATIME)
		check(t, lstat(t, d+"/src").Atim == before.Atim, "copying with O_NOATIME moves the time")
		copied(0)
		check(t, later(lstat(t, d+"/src").Atim, before.Atim), "copying leaves the time of the source")
	}},
	{"links", func(t *T, d string) {
		must(t, os.Symlink("target", d+"/l"))
		before := lstat(t, d+"/l")
		time.Sleep(clockTick)
		_, err := os.Readlink(d + "/l")
		must(t, err)
		check(t, later(lstat(t, d+"/l").Atim, before.Atim), "reading a link leaves the time")
	}},
	{"flag", func(t *T, d string) {
		if !t.has(Chattr) {
			return
		}
		write(t, d+"/f", "text")
		must(t, setFlags(d+"/f", flNoAtime))
		before := lstat(t, d+"/f")
		time.Sleep(clockTick)
		readers[reg](t, d+"/f", 0)
		check(t, lstat(t, d+"/f").Atim == before.Atim, "reading a file with +A moves the time")
	}},
}

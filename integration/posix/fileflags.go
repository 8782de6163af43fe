package posix

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// File flags of linux/fs.h.
const (
	flImmutable = 0x10
	flAppend    = 0x20
	flNoDump    = 0x40
	flNoAtime   = 0x80
	// flOurs are those that cases look at: file systems add flags of their own.
	flOurs = flImmutable | flAppend | flNoDump | flNoAtime

	iocFSGetXattr = 0x801c581f
	iocFSSetXattr = 0x401c5820
	xflImmutable  = 0x08
	xflNoDump     = 0x80
	xflNoAtime    = 0x40
)

type fsXattr struct {
	Xflags, ExtSize, NExtents, ProjID, CowExtSize uint32
	Pad                                           [8]byte
}

func ioctl(name string, cmd uintptr, arg unsafe.Pointer) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), cmd, uintptr(arg)); e != 0 {
		return e
	}
	return nil
}

// getFlags is lsattr; of the flags only those of flOurs.
func getFlags(name string) (int, error) {
	var flags int32
	err := ioctl(name, unix.FS_IOC_GETFLAGS, unsafe.Pointer(&flags))
	return int(flags) & flOurs, err
}

// setFlags is chattr: other flags stay.
func setFlags(name string, flags int) error {
	var all int32
	if err := ioctl(name, unix.FS_IOC_GETFLAGS, unsafe.Pointer(&all)); err != nil {
		return err
	}
	all = all&^flOurs | int32(flags)
	return ioctl(name, unix.FS_IOC_SETFLAGS, unsafe.Pointer(&all))
}

func wantFlags(t *T, name string, flags int) {
	t.Helper()
	got, err := getFlags(name)
	check(t, err == nil && got == flags, "flags %#x, %v; want %#x", got, err, flags)
}

// flagged runs fn on a file or directory with flags, and takes them off again.
func flagged(t *T, name string, flags int, fn func()) {
	t.Helper()
	must(t, setFlags(name, flags))
	defer func() { must(t, setFlags(name, 0)) }()
	fn()
}

// flagAct is a change that flags forbid: it answers EPERM unless said otherwise.
type flagAct struct {
	name              string
	immutable, append syscall.Errno
	do                func(d string, fd int) error
}

const no = unix.EPERM

// flaggedFile are changes of the file d/f with "text", fd being open to read and
// write it since before.
var flaggedFile = []flagAct{
	{"pwrite at the end", no, 0, func(_ string, fd int) error { return only(unix.Pwrite(fd, []byte("x"), 4)) }},
	{"ftruncate", no, no, func(_ string, fd int) error { return unix.Ftruncate(fd, 1) }},
	{"truncate", no, no, func(d string, _ int) error { return unix.Truncate(d+"/f", 1) }},
	{"fchmod", no, no, func(_ string, fd int) error { return unix.Fchmod(fd, 0o600) }},
	{"chown", no, no, func(d string, _ int) error { return unix.Chown(d+"/f", userA, groupA) }},
	{"times", no, no, func(d string, _ int) error { return unix.UtimesNano(d+"/f", []unix.Timespec{{Sec: 1}, {Sec: 1}}) }},
	{"times of now", no, 0, func(d string, _ int) error { return unix.Utimes(d+"/f", nil) }},
	{"allocate", no, 0, func(_ string, fd int) error { return unix.Fallocate(fd, 0, 0, 100) }},
	{"punch a hole", no, no, func(_ string, fd int) error {
		return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 2)
	}},
	{"setxattr", no, no, func(d string, _ int) error { return unix.Setxattr(d+"/f", "user.a", []byte("b"), 0) }},
	{"removexattr", no, no, func(d string, _ int) error { return unix.Removexattr(d+"/f", "user.there") }},
	{"open to write", no, no, func(d string, _ int) error { return openErr(d+"/f", unix.O_WRONLY, 0) }},
	{"open to read and write", no, no, func(d string, _ int) error { return openErr(d+"/f", unix.O_RDWR, 0) }},
	{"open to append", no, 0, func(d string, _ int) error { return openErr(d+"/f", unix.O_WRONLY|unix.O_APPEND, 0) }},
	{"open to cut", no, no, func(d string, _ int) error { return openErr(d+"/f", unix.O_WRONLY|unix.O_APPEND|unix.O_TRUNC, 0) }},
	{"open to read", 0, 0, func(d string, _ int) error { return openErr(d+"/f", unix.O_RDONLY|unix.O_CREAT, 0o644) }},
	{"link", no, no, func(d string, _ int) error { return unix.Link(d+"/f", d+"/l") }},
	{"rename", no, no, func(d string, _ int) error { return unix.Rename(d+"/f", d+"/g") }},
	{"rename onto", no, no, func(d string, _ int) error { return unix.Rename(d+"/other", d+"/f") }},
	{"unlink", no, no, func(d string, _ int) error { return unix.Unlink(d + "/f") }},
}

func only(_ int, err error) error { return err }

// flaggedDir are changes in the directory d/d.
var flaggedDir = []flagAct{
	{"create", no, 0, func(d string, _ int) error { return openErr(d+"/d/new", unix.O_CREAT|unix.O_WRONLY, 0o644) }},
	{"mkdir", no, 0, func(d string, _ int) error { return unix.Mkdir(d+"/d/new", 0o755) }},
	{"symlink", no, 0, func(d string, _ int) error { return unix.Symlink("x", d+"/d/new") }},
	{"mknod", no, 0, func(d string, _ int) error { return unix.Mkfifo(d+"/d/new", 0o644) }},
	{"link in", no, 0, func(d string, _ int) error { return unix.Link(d+"/f", d+"/d/new") }},
	{"rename in", no, 0, func(d string, _ int) error { return unix.Rename(d+"/f", d+"/d/new") }},
	{"rename out", no, no, func(d string, _ int) error { return unix.Rename(d+"/d/in", d+"/new") }},
	{"rename within", no, no, func(d string, _ int) error { return unix.Rename(d+"/d/in", d+"/d/new") }},
	{"unlink", no, no, func(d string, _ int) error { return unix.Unlink(d + "/d/in") }},
	{"rmdir in it", no, no, func(d string, _ int) error { return unix.Rmdir(d + "/d/sub") }},
	{"rename it", no, no, func(d string, _ int) error { return unix.Rename(d+"/d", d+"/new") }},
	{"chmod it", no, no, func(d string, _ int) error { return unix.Chmod(d+"/d", 0o700) }},
	{"write to a file in it", 0, 0, func(d string, _ int) error { return os.WriteFile(d+"/d/in", []byte("x"), 0o644) }},
	{"make something deeper", 0, 0, func(d string, _ int) error { return unix.Mkdir(d+"/d/sub/new", 0o755) }},
}

// tryFlagged tries an act under each flag, and again without: then it succeeds.
func tryFlagged(t *T, d string, a *flagAct, name string) {
	t.Helper()
	for i, flag := range []int{flImmutable, flAppend} {
		d := d + []string{"/i", "/a"}[i]
		must(t, os.MkdirAll(d+"/d/sub", 0o755))
		write(t, d+"/f", "text")
		write(t, d+"/other", "other")
		write(t, d+"/d/in", "in")
		if t.has(Xattr) {
			must(t, unix.Setxattr(d+"/f", "user.there", nil, 0))
		}
		fd, err := unix.Open(d+"/f", unix.O_RDWR|unix.O_CLOEXEC, 0)
		must(t, err)
		want := []syscall.Errno{a.immutable, a.append}[i]
		flagged(t, d+"/"+name, flag, func() { wantErr(t, a.name, a.do(d, fd), want) })
		if want != 0 {
			wantErr(t, a.name+" without the flag", a.do(d, fd), 0)
		}
		must(t, unix.Close(fd))
		must(t, os.RemoveAll(d))
	}
}

var fileFlagCases = []namedCase{
	{"files hold", func(t *T, d string) {
		for i := range flaggedFile {
			tryFlagged(t, d, &flaggedFile[i], "f")
		}
	}},
	{"directories hold", func(t *T, d string) {
		for i := range flaggedDir {
			tryFlagged(t, d, &flaggedDir[i], "d")
		}
	}},
	{"what is open", func(t *T, d string) {
		write(t, d+"/f", "text")
		fd, err := unix.Open(d+"/f", unix.O_RDWR|unix.O_CLOEXEC, 0)
		must(t, err)
		defer unix.Close(fd)
		m, err := unix.Mmap(fd, 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		must(t, err)
		copy(m, "TEXT")
		flagged(t, d+"/f", flImmutable, func() {
			wantErr(t, "write", only(unix.Pwrite(fd, []byte("x"), 0)), unix.EPERM)
			wantErr(t, "fsync of what a mapping wrote before", unix.Fsync(fd), 0)
			wantText(t, d+"/f", "TEXT")
		})
		must(t, unix.Munmap(m))
		flagged(t, d+"/f", flAppend, func() {
			if t.has(Own) { // ext4 looks at open only
				wantErr(t, "write into an append-only file", only(unix.Pwrite(fd, []byte("x"), 0)), unix.EPERM)
			}
			wantErr(t, "write behind its end", only(unix.Pwrite(fd, []byte("!"), 4)), 0)
		})
		wantText(t, d+"/f", "TEXT!")
	}},
	{"held and shown", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		must(t, unix.Mkdir(d+"/d", 0o755))
		for _, name := range []string{d + "/f", d + "/d"} {
			wantFlags(t, name, 0)
			for _, flags := range []int{flNoDump, flNoAtime | flNoDump, flAppend | flNoDump, flImmutable | flAppend, 0} {
				must(t, setFlags(name, 0))
				must(t, setFlags(name, flags))
				wantFlags(t, name, flags)
			}
			other := int32(0x1) // secure deletion, which nobody has
			if t.has(Own) {
				wantErr(t, "an unknown flag", ioctl(name, unix.FS_IOC_SETFLAGS, unsafe.Pointer(&other)), unix.EOPNOTSUPP)
			}
			var x fsXattr
			must(t, setFlags(name, flNoDump))
			must(t, ioctl(name, iocFSGetXattr, unsafe.Pointer(&x)))
			check(t, x.Xflags&xflNoDump != 0 && x.Xflags&xflImmutable == 0, "extended flags %#x", x.Xflags)
			x.Xflags |= xflImmutable | xflNoAtime
			must(t, ioctl(name, iocFSSetXattr, unsafe.Pointer(&x)))
			wantFlags(t, name, flNoDump|flImmutable|flNoAtime)
			must(t, setFlags(name, 0))
		}
	}},
	{"who may", func(t *T, d string) {
		touch(t, d+"/f", 0o666)
		must(t, unix.Chown(d+"/f", userA, groupA))
		asUser(t, func() {
			wantErr(t, "no dump by the owner", setFlags(d+"/f", flNoDump), 0)
			wantErr(t, "immutable by the owner", setFlags(d+"/f", flNoDump|flImmutable), unix.EPERM)
			wantErr(t, "append-only by the owner", setFlags(d+"/f", flNoDump|flAppend), unix.EPERM)
		})
		as(t, userB, groupB, nil, func() {
			wantErr(t, "no dump by another", setFlags(d+"/f", 0), unix.EPERM)
		})
		flagged(t, d+"/f", flImmutable, func() {
			asUser(t, func() { wantErr(t, "clearing by the owner", setFlags(d+"/f", 0), unix.EPERM) })
			wantErr(t, "another flag of what is immutable", setFlags(d+"/f", flImmutable|flNoDump), unix.EPERM)
		})
	}},
	{"inherited", func(t *T, d string) {
		must(t, unix.Mkdir(d+"/d", 0o755))
		flagged(t, d+"/d", flNoDump|flNoAtime|flAppend, func() {
			touch(t, d+"/d/f", 0o644)
			must(t, unix.Mkdir(d+"/d/d", 0o755))
		})
		wantFlags(t, d+"/d/f", flNoDump|flNoAtime)
		wantFlags(t, d+"/d/d", flNoDump|flNoAtime)
	}},
}

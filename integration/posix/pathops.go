package posix

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// pathOp is one system call that takes a path.
type pathOp struct {
	name string
	// call applies it to p. "src" and "new" in d are the other name of calls
	// that need two.
	call func(d, p string) error
	// follow: a symlink in the last place is followed.
	follow bool
	// makes: p must not be there.
	makes bool
	// onDir and onFile: it works on those.
	onDir, onFile bool
	// changes: it changes something, which a read-only mount refuses.
	changes bool
	// user: plain users may do it, with the rights on the directories.
	user bool
	// needs is a feature of the file system that it needs.
	needs Feature
}

const at = unix.AT_FDCWD

var someTimes = []unix.Timespec{{Sec: 1000, Nsec: 1}, {Sec: 2000, Nsec: 2}}

// pathOps returns every call of the suite that takes a path.
func (t *T) pathOps() (list []pathOp) {
	for _, o := range allPathOps() {
		if o.needs == "" || t.has(o.needs) {
			list = append(list, o)
		}
	}
	return list
}

func allPathOps() []pathOp {
	return append(append(readingOps(), changingOps()...), namingOps()...)
}

func readingOps() []pathOp {
	return []pathOp{
		{name: "stat", follow: true, onDir: true, onFile: true, user: true,
			call: func(_, p string) error { return unix.Stat(p, new(unix.Stat_t)) }},
		{name: "lstat", onDir: true, onFile: true, user: true,
			call: func(_, p string) error { return unix.Lstat(p, new(unix.Stat_t)) }},
		{name: "statx", follow: true, onDir: true, onFile: true, user: true,
			call: func(_, p string) error { return unix.Statx(at, p, 0, unix.STATX_ALL, new(unix.Statx_t)) }},
		{name: "statfs", follow: true, onDir: true, onFile: true, user: true,
			call: func(_, p string) error { return unix.Statfs(p, new(unix.Statfs_t)) }},
		{name: "access", follow: true, onDir: true, onFile: true, user: true,
			call: func(_, p string) error { return unix.Access(p, unix.F_OK) }},
		{name: "open(O_RDONLY)", follow: true, onDir: true, onFile: true, user: true,
			call: func(_, p string) error { return openErr(p, unix.O_RDONLY|unix.O_NONBLOCK, 0) }},
		{name: "open(O_PATH)", follow: true, onDir: true, onFile: true, user: true,
			call: func(_, p string) error { return openErr(p, unix.O_PATH, 0) }},
		{name: "open(O_DIRECTORY)", follow: true, onDir: true, user: true,
			call: func(_, p string) error { return openErr(p, unix.O_RDONLY|unix.O_DIRECTORY, 0) }},
		{name: "chdir", follow: true, onDir: true, user: true,
			call: func(_, p string) error { return unix.Chdir(p) }},
		{name: "getxattr", follow: true, onDir: true, onFile: true, needs: Xattr, user: true,
			call: func(_, p string) error {
				_, err := unix.Getxattr(p, "user.none", nil)
				if errors.Is(err, unix.ENODATA) {
					return nil
				}
				return err
			}},
		{name: "llistxattr", onDir: true, onFile: true, needs: Xattr, user: true,
			call: func(_, p string) error { _, err := unix.Llistxattr(p, nil); return err }},
	}
}

func changingOps() []pathOp {
	return []pathOp{
		{name: "open(O_WRONLY)", follow: true, onFile: true, changes: true, user: true,
			call: func(_, p string) error { return openErr(p, unix.O_WRONLY, 0) }},
		{name: "open(O_RDWR|O_TRUNC)", follow: true, onFile: true, changes: true, user: true,
			call: func(_, p string) error { return openErr(p, unix.O_RDWR|unix.O_TRUNC, 0) }},
		{name: "truncate", follow: true, onFile: true, changes: true, user: true,
			call: func(_, p string) error { return unix.Truncate(p, 1) }},
		{name: "chmod", follow: true, onDir: true, onFile: true, changes: true, user: true,
			call: func(_, p string) error { return unix.Chmod(p, 0o777) }},
		{name: "chown", follow: true, onDir: true, onFile: true, changes: true, user: true,
			call: func(_, p string) error { return unix.Chown(p, -1, -1) }},
		{name: "lchown", onDir: true, onFile: true, changes: true, user: true,
			call: func(_, p string) error { return unix.Lchown(p, -1, -1) }},
		{name: "utimensat", follow: true, onDir: true, onFile: true, changes: true, user: true,
			call: func(_, p string) error { return unix.UtimesNanoAt(at, p, someTimes, 0) }},
		{name: "utimensat(NOFOLLOW)", onDir: true, onFile: true, changes: true, user: true,
			call: func(_, p string) error { return unix.UtimesNanoAt(at, p, someTimes, unix.AT_SYMLINK_NOFOLLOW) }},
		{name: "setxattr", follow: true, onDir: true, onFile: true, needs: Xattr, changes: true, user: true,
			call: func(_, p string) error { return unix.Setxattr(p, "user.x", []byte("x"), 0) }},
		{name: "removexattr", follow: true, onDir: true, onFile: true, needs: Xattr, changes: true, user: true,
			call: func(_, p string) error {
				if err := unix.Removexattr(p, "user.none"); !errors.Is(err, unix.ENODATA) {
					return err
				}
				return nil
			}},
		{name: "unlink", onFile: true, changes: true, user: true,
			call: func(_, p string) error { return unix.Unlink(p) }},
		{name: "rmdir", onDir: true, changes: true, user: true,
			call: func(_, p string) error { return unix.Rmdir(p) }},
		{name: "rename from", onDir: true, onFile: true, changes: true, user: true,
			call: func(d, p string) error { return unix.Rename(p, d+"/new") }},
		{name: "link from", onFile: true, changes: true, user: true,
			call: func(d, p string) error { return unix.Link(p, d+"/new") }},
		{name: "rename to", onFile: true, changes: true, user: true,
			call: func(d, p string) error { return unix.Rename(d+"/src", p) }},
		{name: "exchange from", onDir: true, onFile: true, needs: Flags, changes: true, user: true,
			call: func(d, p string) error { return exchange(p, d+"/src") }},
		{name: "exchange with", onDir: true, onFile: true, needs: Flags, changes: true, user: true,
			call: func(d, p string) error { return exchange(d+"/src", p) }},
	}
}

func namingOps() []pathOp {
	return []pathOp{
		{name: "open(O_CREAT|O_EXCL)", makes: true, changes: true, user: true,
			call: func(_, p string) error { return openErr(p, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o644) }},
		{name: "mkdir", makes: true, changes: true, user: true,
			call: func(_, p string) error { return unix.Mkdir(p, 0o755) }},
		{name: "mkfifo", makes: true, changes: true, user: true,
			call: func(_, p string) error { return unix.Mkfifo(p, 0o644) }},
		{name: "mknod(socket)", makes: true, changes: true, user: true,
			call: func(_, p string) error { return unix.Mknod(p, unix.S_IFSOCK|0o644, 0) }},
		{name: "mknod(file)", makes: true, changes: true, user: true,
			call: func(_, p string) error { return unix.Mknod(p, unix.S_IFREG|0o644, 0) }},
		{name: "mknod(char device)", makes: true, changes: true,
			call: func(_, p string) error { return unix.Mknod(p, unix.S_IFCHR|0o644, int(unix.Mkdev(1, 3))) }},
		{name: "mknod(block device)", makes: true, changes: true,
			call: func(_, p string) error { return unix.Mknod(p, unix.S_IFBLK|0o644, int(unix.Mkdev(1, 3))) }},
		{name: "symlink", makes: true, changes: true, user: true,
			call: func(_, p string) error { return unix.Symlink("target", p) }},
		{name: "link to", makes: true, changes: true, user: true,
			call: func(d, p string) error { return unix.Link(d+"/src", p) }},
		{name: "rename(NOREPLACE) to", makes: true, needs: Flags, changes: true, user: true,
			call: func(d, p string) error { return unix.Renameat2(at, d+"/src", at, p, unix.RENAME_NOREPLACE) }},
	}
}

func exchange(a, b string) error { return unix.Renameat2(at, a, at, b, unix.RENAME_EXCHANGE) }

// fresh puts a new "src", which userA owns, into d and takes "new" away.
func fresh(t *T, d string) {
	t.Helper()
	removeKind(t, d+"/new")
	removeKind(t, d+"/src")
	touch(t, d+"/src", 0o666)
	must(t, unix.Lchown(d+"/src", userA, groupA))
}

// onKind is what an operation that follows no more symlinks answers on an
// existing file of a kind; ok is false where kernels or file systems differ.
func (o *pathOp) onKind(kind string) (no syscall.Errno, ok bool) {
	if o.makes {
		return unix.EEXIST, true
	}
	if o.follow && kind == lnk {
		return unix.ENOENT, true // it dangles
	}
	isDir := kind == dir
	switch o.name {
	case "open(O_RDONLY)", "open(O_WRONLY)", "open(O_RDWR|O_TRUNC)":
		if kind != reg && !isDir {
			return 0, false // of the driver, or the other end
		}
	case "truncate":
		if kind != reg && !isDir {
			return unix.EINVAL, true
		}
	case "getxattr", "setxattr", "removexattr":
		if kind != reg && !isDir {
			return 0, false // user.* is for files and directories: see the cases of attributes
		}
	case "rmdir", "open(O_DIRECTORY)", "chdir":
		if !isDir {
			return unix.ENOTDIR, true
		}
	case "link from":
		if isDir {
			return unix.EPERM, true
		}
	case "unlink", "rename to":
		if isDir {
			return unix.EISDIR, true
		}
	}
	if isDir && !o.onDir {
		return unix.EISDIR, true
	}
	return 0, true
}

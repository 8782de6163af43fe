package posix

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// privilegeCases: who changes the content of a file that is not theirs takes
// setuid, setgid and capabilities off it, whatever call that is.
var privilegeCases = []namedCase{
	{"every call that changes content", contentPrivileges},
	{"setgid without group execution", func(t *T, d string) {
		// A lock of old, no privilege: it stays where a member of the group
		// writes, and goes like the others where anybody else does.
		n := 0
		for name, call := range privilegeCalls(t) {
			for _, c := range []struct {
				who    string
				uid    int
				groups []uint32
				want   uint32
			}{
				{"a stranger", userA, nil, 0o666},
				{"a member of the group", userA, []uint32{groupS, groupB}, 0o2666},
				{"root", 0, nil, 0o2666},
			} {
				n++
				p := fmt.Sprintf("%s/%d", d, n)
				must(t, os.WriteFile(p+".src", make([]byte, 100), 0o644))
				must(t, os.WriteFile(p, make([]byte, 10_000), 0o666))
				must(t, unix.Chown(p, userB, groupB))
				must(t, unix.Chmod(p, 0o2666))
				as(t, c.uid, c.uid, c.groups, func() {
					fd := open(t, p, unix.O_WRONLY)
					wantErr(t, name+" by "+c.who, call(p, fd), 0)
				})
				st := lstat(t, p)
				check(t, st.Mode&0o7777 == c.want, "%s by %s: mode 2666 becomes %o, want %o", name, c.who, st.Mode&0o7777, c.want)
			}
		}
	}},
	{"a new ACL", func(t *T, d string) {
		if !t.has(ACL) || !t.has(Xattr) {
			t.Skip("no ACLs")
		}
		// Who is not in the group takes setgid off with the ACL that he sets.
		acl := aclBytes([][3]uint32{{1, 7, none}, {2, 7, userB}, {4, 7, none}, {0x10, 7, none}, {0x20, 7, none}})
		for _, c := range []struct {
			what   string
			groups []uint32
			uid    int
			want   uint32
		}{
			{"the owner, not in the group", nil, userA, 0o777},
			{"the owner, in the group", []uint32{groupS}, userA, 0o2777},
			{"root", nil, 0, 0o2777},
		} {
			p := fmt.Sprintf("%s/%d%d", d, c.uid, len(c.groups))
			touch(t, p, 0o777)
			must(t, unix.Chown(p, userA, groupS))
			must(t, unix.Chmod(p, 0o2777))
			as(t, c.uid, c.uid, c.groups, func() { wantErr(t, "setxattr by "+c.what, unix.Setxattr(p, aclAccess, acl, 0), 0) })
			wantMode(t, p, c.want)
		}
	}},
}

// privilegeCalls change the content of the file p, which is open as fd.
func privilegeCalls(t *T) map[string]func(p string, fd int) error {
	calls := map[string]func(p string, fd int) error{
		"write":     func(_ string, fd int) error { _, err := unix.Write(fd, []byte("x")); return err },
		"pwrite":    func(_ string, fd int) error { _, err := unix.Pwrite(fd, []byte("x"), 100); return err },
		"writev":    func(_ string, fd int) error { _, err := unix.Writev(fd, [][]byte{{'a'}, {'b'}}); return err },
		"ftruncate": func(_ string, fd int) error { return unix.Ftruncate(fd, 1) },
		"truncate":  func(p string, _ int) error { return unix.Truncate(p, 50_000) },
		"O_TRUNC":   func(p string, _ int) error { return openErr(p, unix.O_WRONLY|unix.O_TRUNC, 0) },
		"append":    func(p string, _ int) error { return appendTo(p) },
		"copy_file_range": func(p string, fd int) error {
			off := int64(0)
			_, err := unix.CopyFileRange(open(t, p+".src", unix.O_RDONLY), nil, fd, &off, 10, 0)
			return err
		},
		"sendfile": func(p string, fd int) error {
			_, err := unix.Sendfile(fd, open(t, p+".src", unix.O_RDONLY), nil, 10)
			return err
		},
	}
	if t.has(Direct) {
		calls["O_DIRECT"] = func(p string, _ int) error {
			buf, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
			if err != nil {
				return err
			}
			defer unix.Munmap(buf)
			_, err = unix.Pwrite(open(t, p, unix.O_WRONLY|unix.O_DIRECT), buf, 0)
			return err
		}
	}
	modes := map[string]uint32{}
	if t.has(Fallocate) {
		modes["allocate"], modes["allocate, keep size"] = 0, unix.FALLOC_FL_KEEP_SIZE
		modes["punch hole"] = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	}
	if t.has(ZeroRange) {
		modes["zero range"] = unix.FALLOC_FL_ZERO_RANGE
	}
	for name, mode := range modes {
		calls[name] = func(_ string, fd int) error { return unix.Fallocate(fd, mode, 0, 8192) }
	}
	return calls
}

func appendTo(p string) error {
	fd, err := unix.Open(p, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("x"))
	return err
}

func contentPrivileges(t *T, d string) {
	caps := []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	n := 0
	for name, call := range privilegeCalls(t) {
		for _, root := range []bool{false, true} {
			for mode, want := range map[uint32]uint32{0o4777: 0o777, 0o2777: 0o777, 0o6777: 0o777, 0o6711: 0o711, 0o4766: 0o766} {
				n++
				p := fmt.Sprintf("%s/%d", d, n)
				must(t, os.WriteFile(p+".src", make([]byte, 100), 0o644))
				must(t, os.WriteFile(p, make([]byte, 10_000), 0o777))
				must(t, unix.Chown(p, userB, groupB))
				must(t, unix.Chmod(p, mode|0o022)) // the caller writes to it
				want |= 0o022
				if t.has(Security) {
					must(t, unix.Setxattr(p, "security.capability", caps, 0))
				}
				caller := userA
				if root {
					caller, want = 0, mode|0o022
				}
				as(t, caller, caller, nil, func() {
					fd := open(t, p, unix.O_WRONLY)
					wantErr(t, fmt.Sprintf("%s by %d", name, caller), call(p, fd), 0)
				})
				st := lstat(t, p)
				check(t, st.Mode&0o7777 == want, "%s by %d: mode %o becomes %o, want %o", name, caller, mode|0o022, st.Mode&0o7777, want)
				if t.has(Security) {
					_, err := getxattr(p, "security.capability")
					check(t, errors.Is(err, unix.ENODATA), "%s by %d leaves capabilities: %v", name, caller, err)
				}
			}
		}
	}
}

// statxCases: what statx returns beyond stat.
var statxCases = []namedCase{
	{"birth", func(t *T, d string) {
		for i, k := range kinds {
			p := fmt.Sprintf("%s/%d", d, i)
			before := time.Now().Add(-time.Second)
			makeKind(t, k, p, 0o755)
			born := statx(t, p, unix.STATX_BASIC_STATS|unix.STATX_BTIME, 0)
			if !holds(t, born.Mask&unix.STATX_BTIME != 0, "a %s has no time of birth", k) {
				return
			}
			at := time.Unix(born.Btime.Sec, int64(born.Btime.Nsec))
			check(t, at.After(before) && at.Before(time.Now().Add(time.Second)), "a %s was born at %v", k, at)
			tick(t)
			must(t, unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{{Sec: 5}, {Sec: 6}}, unix.AT_SYMLINK_NOFOLLOW))
			must(t, unix.Lchown(p, userA, groupA))
			must(t, unix.Rename(p, p+"-moved"))
			if k == reg {
				must(t, os.WriteFile(p+"-moved", []byte("x"), 0o644))
			}
			now := statx(t, p+"-moved", unix.STATX_BASIC_STATS|unix.STATX_BTIME, 0)
			check(t, now.Btime == born.Btime, "the birth of a %s moved from %v to %v", k, born.Btime, now.Btime)
			check(t, now.Mtime != born.Mtime && now.Uid == userA || k == reg, "a %s: %+v", k, now)
		}
	}},
	{"as stat", func(t *T, d string) {
		for i, k := range kinds {
			p := fmt.Sprintf("%s/%d", d, i)
			makeKind(t, k, p, 0o751)
			if k == reg {
				must(t, os.WriteFile(p, pattern(100_000), 0o644))
			}
			st := lstat(t, p)
			for _, flags := range []int{unix.AT_STATX_SYNC_AS_STAT, unix.AT_STATX_FORCE_SYNC, unix.AT_STATX_DONT_SYNC} {
				for _, mask := range []int{unix.STATX_BASIC_STATS, unix.STATX_BASIC_STATS | unix.STATX_BTIME} {
					x := statx(t, p, mask, flags)
					check(t, x.Mask&unix.STATX_BASIC_STATS == unix.STATX_BASIC_STATS && x.Ino == st.Ino && uint32(x.Mode) == st.Mode &&
						x.Nlink == uint32(st.Nlink) && x.Uid == st.Uid && x.Gid == st.Gid && int64(x.Size) == st.Size && int64(x.Blocks) == st.Blocks &&
						x.Blksize == uint32(st.Blksize) && x.Mtime.Sec == st.Mtim.Sec && int64(x.Mtime.Nsec) == st.Mtim.Nsec &&
						x.Ctime.Sec == st.Ctim.Sec && int64(x.Ctime.Nsec) == st.Ctim.Nsec &&
						unix.Mkdev(x.Rdev_major, x.Rdev_minor) == st.Rdev && unix.Mkdev(x.Dev_major, x.Dev_minor) == st.Dev,
						"%s, mask %x, flags %x: statx %+v, stat %+v", k, mask, flags, x, st)
				}
			}
		}
		fd := open(t, d, unix.O_PATH)
		var x unix.Statx_t
		wantErr(t, "AT_EMPTY_PATH", unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &x), 0)
		check(t, x.Ino == lstat(t, d).Ino, "AT_EMPTY_PATH shows inode %d", x.Ino)
		for _, c := range []struct {
			name  string
			flags int
			mask  int
			want  syscall.Errno
		}{
			{d + "/none", 0, unix.STATX_BTIME, unix.ENOENT},
			{"", 0, unix.STATX_BTIME, unix.ENOENT},
			{d, unix.AT_STATX_FORCE_SYNC | unix.AT_STATX_DONT_SYNC, unix.STATX_BTIME, unix.EINVAL},
			{d, 0, -1 << 31, unix.EINVAL},
			{d + "/0/x", 0, unix.STATX_BTIME, unix.ENOTDIR},
		} {
			wantErr(t, fmt.Sprintf("statx(%q, %x, %x)", c.name, c.flags, c.mask), unix.Statx(unix.AT_FDCWD, c.name, c.flags, c.mask, &x), c.want)
		}
	}},
}

func statx(t *T, p string, mask, flags int) (x unix.Statx_t) {
	t.Helper()
	must(t, unix.Statx(unix.AT_FDCWD, p, flags|unix.AT_SYMLINK_NOFOLLOW, mask, &x))
	return x
}

// holds is check that reports what it found.
func holds(t *T, ok bool, format string, args ...any) bool {
	t.Helper()
	check(t, ok, format, args...)
	return ok
}

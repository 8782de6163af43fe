package posix

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Further kinds of the rename tables.
const (
	nothing = "nothing"
	full    = "full directory"
	same    = "link to the same file"
)

// renameKindCases: every kind over every kind, with every flag.
var renameKindCases = []namedCase{
	{"rename", func(t *T, d string) { renameKinds(t, d, 0, renameErr) }},
	{"times and links", renameTimes},
}

var renameFlagCases = []namedCase{
	{"flags", renameFlags},
	{"NOREPLACE of kinds", func(t *T, d string) { renameKinds(t, d, unix.RENAME_NOREPLACE, noReplaceErr) }},
	{"EXCHANGE of kinds", func(t *T, d string) { renameKinds(t, d, unix.RENAME_EXCHANGE, exchangeErr) }},
}

func renameErr(from, to string) syscall.Errno {
	switch {
	case to == nothing || to == same:
		return 0
	case from == dir || from == full:
		switch to {
		case dir:
			return 0
		case full:
			return unix.ENOTEMPTY
		}
		return unix.ENOTDIR
	case to == dir || to == full:
		return unix.EISDIR
	}
	return 0
}

func noReplaceErr(_, to string) syscall.Errno {
	if to == nothing {
		return 0
	}
	return unix.EEXIST
}

func exchangeErr(_, to string) syscall.Errno {
	if to == nothing {
		return unix.ENOENT
	}
	return 0
}

func makeAny(t *T, kind, name string) {
	t.Helper()
	switch kind {
	case nothing:
	case full:
		must(t, os.MkdirAll(name+"/inside", 0o755))
	default:
		makeKind(t, kind, name, 0o755)
	}
}

func renameKinds(t *T, d string, flags uint, expect func(from, to string) syscall.Errno) {
	must(t, unix.Mkdir(d+"/p", 0o777))
	must(t, unix.Mkdir(d+"/q", 0o777))
	for _, target := range []string{d + "/p/to", d + "/q/to"} { // the same directory, and another
		for _, from := range append(append([]string{}, kinds...), full) {
			for _, to := range append(append([]string{nothing}, kinds...), full, same) {
				a := d + "/p/from"
				makeAny(t, from, a)
				if to == same {
					if from == dir || from == full {
						must(t, os.RemoveAll(a))
						continue
					}
					must(t, unix.Link(a, target))
				} else {
					makeAny(t, to, target)
				}
				renameOne(t, a, target, from, to, flags, expect(from, to))
				must(t, os.RemoveAll(a))
				must(t, os.RemoveAll(target))
			}
		}
	}
}

func renameOne(t *T, a, b, from, to string, flags uint, want syscall.Errno) {
	what := fmt.Sprintf("rename(%s, %s, %d)", from, to, flags)
	inoA, inoB := lstat(t, a).Ino, uint64(0)
	if to != nothing {
		inoB = lstat(t, b).Ino
	}
	wantErr(t, what, unix.Renameat2(at, a, at, b, flags), want)
	afterA, afterB := inoOf(a), inoOf(b)
	switch {
	case want != 0 || to == same:
		check(t, afterA == inoA && afterB == inoB, "%s failed, but changed something", what)
	case flags == unix.RENAME_EXCHANGE:
		check(t, afterA == inoB && afterB == inoA, "%s did not exchange", what)
		if from == full {
			check(t, inoOf(b+"/inside") != 0, "%s lost what was inside", what)
		}
	default:
		check(t, afterA == 0 && afterB == inoA, "%s: the source is %d, the target %d, want 0 and %d", what, afterA, afterB, inoA)
	}
}

// inoOf returns 0 for what is not there.
func inoOf(name string) uint64 {
	var st unix.Stat_t
	if unix.Lstat(name, &st) != nil {
		return 0
	}
	return st.Ino
}

func renameTimes(t *T, d string) {
	must(t, unix.Mkdir(d+"/p", 0o777))
	must(t, unix.Mkdir(d+"/q", 0o777))
	for _, k := range kinds {
		a, b := d+"/p/from", d+"/q/to"
		makeKind(t, k, a, 0o755)
		p, q, f := lstat(t, d+"/p"), lstat(t, d+"/q"), lstat(t, a)
		tick(t)
		must(t, unix.Rename(a, b))
		p2, q2, f2 := lstat(t, d+"/p"), lstat(t, d+"/q"), lstat(t, b)
		check(t, later(p2.Mtim, p.Mtim) && later(p2.Ctim, p.Ctim), "rename of a %s: the old parent's times", k)
		check(t, later(q2.Mtim, q.Mtim) && later(q2.Ctim, q.Ctim), "rename of a %s: the new parent's times", k)
		check(t, f2.Mtim == f.Mtim && f2.Mode == f.Mode && f2.Uid == f.Uid && f2.Nlink == f.Nlink && f2.Size == f.Size,
			"rename of a %s changes it: %+v, was %+v", k, f2, f)
		if k == dir && t.has(DirLinks) {
			check(t, p2.Nlink == p.Nlink-1 && q2.Nlink == q.Nlink+1, "parents' links %d, %d; were %d, %d", p2.Nlink, q2.Nlink, p.Nlink, q.Nlink)
		}
		removeKind(t, b)
	}
}

// createCases: modes, owners and groups of new files.
var createCases = []namedCase{
	{"mode and umask", createModes},
	{"owner and group", createOwners},
	{"O_CREAT over every kind", createOver},
}

// makers make a file with a mode.
var makers = []struct {
	name string
	typ  uint32
	call func(p string, mode uint32) error
}{
	{"open", unix.S_IFREG, func(p string, m uint32) error { return openErr(p, unix.O_CREAT|unix.O_WRONLY, m) }},
	{"mkdir", unix.S_IFDIR, unix.Mkdir},
	{"mkfifo", unix.S_IFIFO, unix.Mkfifo},
	{"mknod(file)", unix.S_IFREG, func(p string, m uint32) error { return unix.Mknod(p, unix.S_IFREG|m, 0) }},
	{"mknod(socket)", unix.S_IFSOCK, func(p string, m uint32) error { return unix.Mknod(p, unix.S_IFSOCK|m, 0) }},
	{"mknod(device)", unix.S_IFCHR, func(p string, m uint32) error { return unix.Mknod(p, unix.S_IFCHR|m, int(unix.Mkdev(1, 3))) }},
}

func createModes(t *T, d string) {
	as(t, 0, 0, nil, func() {
		for _, m := range makers {
			for _, mask := range []int{0, 0o022, 0o027, 0o077, 0o137, 0o777} {
				unix.Umask(mask)
				for mode := uint32(0); mode <= 0o7777; mode += 73 {
					p := d + "/it"
					wantErr(t, fmt.Sprintf("%s with mode %o, umask %o", m.name, mode, mask), m.call(p, mode), 0)
					st := lstat(t, p)
					want := mode &^ uint32(mask)
					if m.name == "mkdir" {
						want &^= 0o6000 // Linux takes only permissions and sticky
					}
					check(t, st.Mode == m.typ|want, "%s with mode %o, umask %o gives %o, want %o", m.name, mode, mask, st.Mode, m.typ|want)
					removeKind(t, p)
				}
			}
		}
	})
}

func createOwners(t *T, d string) {
	for _, dirMode := range []uint32{0o777, 0o2777, 0o1777, 0o3777} {
		for _, dirGroup := range []int{0, groupA, groupB, groupS} {
			sub := fmt.Sprintf("%s/%o-%d", d, dirMode, dirGroup)
			must(t, unix.Mkdir(sub, 0o777))
			must(t, unix.Chown(sub, userB, dirGroup))
			must(t, unix.Chmod(sub, dirMode))
			for _, caller := range []int{0, userA, userB} {
				for _, m := range makers {
					if m.name == "mknod(device)" && caller != 0 {
						as(t, caller, caller, nil, func() {
							wantErr(t, "mknod of a device by a user", m.call(sub+"/no", 0o644), unix.EPERM)
						})
						continue
					}
					p := sub + "/it"
					as(t, caller, caller, nil, func() { wantErr(t, m.name, m.call(p, 0o755), 0) })
					st := lstat(t, p)
					gid, mode := caller, uint32(0o755)
					if dirMode&0o2000 != 0 {
						gid = dirGroup
						if m.typ == unix.S_IFDIR {
							mode |= 0o2000
						}
					}
					check(t, int(st.Uid) == caller && int(st.Gid) == gid && st.Mode == m.typ|mode,
						"%s by %d in mode %o of group %d: %d:%d mode %o, want %d:%d mode %o", m.name, caller, dirMode, dirGroup, st.Uid, st.Gid, st.Mode, caller, gid, m.typ|mode)
					removeKind(t, p)
				}
			}
		}
	}
}

func createOver(t *T, d string) {
	for i, k := range kinds {
		p := fmt.Sprintf("%s/%d", d, i)
		makeKind(t, k, p, 0o666)
		wantErr(t, "open(O_CREAT|O_EXCL) over a "+k, openErr(p, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o644), unix.EEXIST)
		for _, m := range makers {
			if m.name != "open" {
				wantErr(t, m.name+" over a "+k, m.call(p, 0o644), unix.EEXIST)
			}
		}
		wantErr(t, "open(O_DIRECTORY) of a "+k, openErr(p, unix.O_DIRECTORY, 0), map[string]syscall.Errno{dir: 0, lnk: unix.ENOENT}[k]|notDir(k))
		wantErr(t, "open(O_NOFOLLOW|O_PATH) of a "+k, openErr(p, unix.O_PATH|unix.O_NOFOLLOW, 0), 0)
	}
	must(t, unix.Symlink("made", d+"/l"))
	wantErr(t, "O_CREAT through a dangling symlink", openErr(d+"/l", unix.O_CREAT|unix.O_WRONLY, 0o644), 0)
	check(t, inoOf(d+"/made") != 0, "O_CREAT through a dangling symlink made nothing")
}

func notDir(kind string) syscall.Errno {
	if kind == dir || kind == lnk {
		return 0
	}
	return unix.ENOTDIR
}

// kindCases: what stat returns for each kind, links, and opens of special files.
var kindCases = []namedCase{
	{"links of every kind", func(t *T, d string) {
		for i, k := range kinds {
			if k == dir {
				continue
			}
			a := fmt.Sprintf("%s/%d", d, i)
			makeKind(t, k, a, 0o644)
			before, parent := lstat(t, a), lstat(t, d)
			tick(t)
			must(t, unix.Link(a, a+"b"))
			x, y := lstat(t, a), lstat(t, a+"b")
			check(t, x == y && x.Nlink == 2 && x.Ino == before.Ino, "two links of a %s: %+v and %+v", k, x, y)
			check(t, later(x.Ctim, before.Ctim) && x.Mtim == before.Mtim, "link of a %s: ctime only", k)
			check(t, later(lstat(t, d).Mtim, parent.Mtim), "link of a %s: the parent's mtime", k)
			tick(t)
			must(t, unix.Unlink(a))
			z := lstat(t, a+"b")
			check(t, z.Nlink == 1 && later(z.Ctim, x.Ctim), "unlink of a %s: %+v", k, z)
		}
	}},
	{"stat", func(t *T, d string) {
		parent := lstat(t, d)
		for i, k := range kinds {
			p := fmt.Sprintf("%s/%d", d, i)
			makeKind(t, k, p, 0o644)
			st := lstat(t, p)
			check(t, st.Mode&unix.S_IFMT == typeOf(k) && st.Dev == parent.Dev && st.Ino != 0 && st.Uid == 0 && st.Gid == 0, "%s: %+v", k, st)
			check(t, k == dir || st.Nlink == 1, "%s has %d links", k, st.Nlink)
			var sx unix.Statx_t
			must(t, unix.Statx(at, p, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &sx))
			check(t, sx.Ino == st.Ino && uint32(sx.Mode) == st.Mode && sx.Nlink == uint32(st.Nlink) && int64(sx.Size) == st.Size &&
				sx.Mtime.Sec == st.Mtim.Sec && int64(sx.Mtime.Nsec) == st.Mtim.Nsec, "%s: statx %+v, stat %+v", k, sx, st)
			if k == chr || k == blk {
				check(t, st.Rdev == unix.Mkdev(1, 3), "%s: rdev %x", k, st.Rdev)
			}
			if k == dir && t.has(DirLinks) {
				check(t, st.Nlink == 2, "an empty directory has %d links", st.Nlink)
			}
		}
	}},
	{"device numbers", func(t *T, d string) {
		for _, n := range [][2]uint32{{0, 0}, {1, 3}, {8, 0}, {255, 255}, {256, 256}, {4095, 1 << 19}, {4095, 1<<20 - 1}} {
			for _, typ := range []uint32{unix.S_IFCHR, unix.S_IFBLK} {
				p := d + "/dev"
				dev := unix.Mkdev(n[0], n[1])
				must(t, unix.Mknod(p, typ|0o600, int(dev)))
				st := lstat(t, p)
				check(t, st.Rdev == dev, "device %v: rdev %x, want %x", n, st.Rdev, dev)
				removeKind(t, p)
			}
		}
	}},
	{"opening special files", func(t *T, d string) {
		makeKind(t, sock, d+"/sock", 0o666)
		wantErr(t, "open of a socket", openErr(d+"/sock", unix.O_RDWR, 0), unix.ENXIO)
		makeKind(t, fifo, d+"/fifo", 0o666)
		wantErr(t, "open of a fifo without reader", openErr(d+"/fifo", unix.O_WRONLY|unix.O_NONBLOCK, 0), unix.ENXIO)
		wantErr(t, "open of a fifo to read", openErr(d+"/fifo", unix.O_RDONLY|unix.O_NONBLOCK, 0), 0)
		wantErr(t, "truncate of a fifo", unix.Truncate(d+"/fifo", 0), unix.EINVAL)
		fd := open(t, d+"/fifo", unix.O_RDWR)
		_, err := unix.Seek(fd, 0, 0)
		wantErr(t, "lseek of a fifo", err, unix.ESPIPE)
		_, err = unix.Pread(fd, make([]byte, 1), 0)
		wantErr(t, "pread of a fifo", err, unix.ESPIPE)
		makeKind(t, chr, d+"/null", 0o666)
		want := syscall.Errno(0)
		if !t.has(Devices) {
			want = unix.EACCES
		}
		wantErr(t, "open of a device", openErr(d+"/null", unix.O_RDWR, 0), want)
	}},
	{"a bound socket", func(t *T, d string) {
		as(t, 0, 0, nil, func() {
			must(t, unix.Chdir(d)) // a socket's path is short
			l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			must(t, err)
			defer unix.Close(l)
			wantErr(t, "bind", unix.Bind(l, &unix.SockaddrUnix{Name: "s"}), 0)
			must(t, unix.Listen(l, 1))
			c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			must(t, err)
			defer unix.Close(c)
			wantErr(t, "connect", unix.Connect(c, &unix.SockaddrUnix{Name: "s"}), 0)
			wantErr(t, "bind again", unix.Bind(c, &unix.SockaddrUnix{Name: "s"}), unix.EADDRINUSE)
		})
		st := lstat(t, d+"/s")
		check(t, st.Mode&unix.S_IFMT == unix.S_IFSOCK, "mode %o", st.Mode)
	}},
	{"directory links", func(t *T, d string) {
		if !t.has(DirLinks) {
			t.Skip("directories report one link")
		}
		for i := range 5 {
			st := lstat(t, d)
			check(t, int(st.Nlink) == 2+i, "%d links with %d subdirectories", st.Nlink, i)
			must(t, unix.Mkdir(fmt.Sprintf("%s/%d", d, i), 0o755))
		}
	}},
}

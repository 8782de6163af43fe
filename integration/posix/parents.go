package posix

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// identity is a caller in its relation to a file.
type identity struct {
	name         string
	owner, group int // of the file
	groups       []uint32
	shift        uint32 // of the permission bits that count
}

// identities of userA: in each, only one class of the mode counts.
var identities = []identity{
	{"owner", userA, groupB, nil, 6},
	{"owner in the group", userA, groupA, nil, 6},
	{"group", userB, groupA, nil, 3},
	{"supplementary group", userB, groupS, []uint32{groupS}, 3},
	{"others", userB, groupB, nil, 0},
}

// only grants perm to the class of id, and the opposite to the others.
func (id *identity) only(perm uint32) uint32 {
	return (0o777&^(7<<id.shift))&(0o111*(^perm&7)) | perm<<id.shift
}

func (id *identity) as(t *T, fn func()) { t.Helper(); as(t, userA, groupA, id.groups, fn) }

// parentCases: what each change of names needs of the directories.
var parentCases = []namedCase{
	{"making and removing names", parentRights},
	{"read-only directory of another, sticky or not", func(t *T, d string) {
		for _, mode := range []uint32{0o755, 0o1755, 0o555} {
			sub := fmt.Sprintf("%s/%o", d, mode)
			must(t, unix.Mkdir(sub, 0o755))
			must(t, unix.Chmod(sub, mode))
			touch(t, sub+"/file", 0o666)
			must(t, unix.Lchown(sub+"/file", userA, groupA))
			asUser(t, func() {
				wantErr(t, "unlink of an own file", unix.Unlink(sub+"/file"), unix.EACCES)
				wantErr(t, "chmod of it", unix.Chmod(sub+"/file", 0o600), 0)
				wantErr(t, "write to it", os.WriteFile(sub+"/file", []byte("x"), 0), 0)
			})
		}
	}},
}

func parentRights(t *T, d string) {
	sub := d + "/sub"
	must(t, unix.Mkdir(sub, 0o777))
	for _, id := range identities {
		must(t, unix.Chown(sub, id.owner, id.group))
		for perm := range uint32(8) {
			want := unix.EACCES
			if perm&3 == 3 {
				want = 0
			}
			for _, o := range t.pathOps() {
				if !o.user || !o.changes || !renames(o.name) && !o.makes {
					continue
				}
				for _, k := range kinds {
					if no, ok := o.onKind(k); !o.makes && (!ok || no != 0) || o.makes && k != reg || k == lnk && o.name == "link from" {
						continue
					}
					p := sub + "/it"
					must(t, unix.Chmod(sub, 0o777))
					fresh(t, d)
					if !o.makes {
						makeKind(t, k, p, 0o666)
						must(t, unix.Lchown(p, userA, groupA))
					}
					must(t, unix.Chmod(sub, id.only(perm)))
					id.as(t, func() {
						wantErr(t, fmt.Sprintf("%s of a %s, %s has %d", o.name, k, id.name, perm), o.call(d, p), want)
					})
					removeKind(t, p)
				}
			}
		}
	}
}

// renames reports whether a call changes an existing name.
func renames(name string) bool {
	switch name {
	case "unlink", "rmdir", "rename from", "rename to", "exchange from", "exchange with":
		return true
	}
	return false
}

// modeCases: what each call needs of the file itself.
var modeCases = []namedCase{
	{"open", openRights},
	{"access with all modes", accessRights},
	{"calls by path", pathRights},
	{"directories", dirRights},
	{"O_NOATIME", func(t *T, d string) {
		touch(t, d+"/f", 0o666)
		must(t, os.Chown(d+"/f", userA, groupA))
		asUser(t, func() { wantErr(t, "O_NOATIME by the owner", openErr(d+"/f", unix.O_RDONLY|unix.O_NOATIME, 0), 0) })
		as(t, userB, groupB, nil, func() {
			wantErr(t, "O_NOATIME by another", openErr(d+"/f", unix.O_RDONLY|unix.O_NOATIME, 0), unix.EPERM)
		})
	}},
	{"a descriptor keeps its rights", func(t *T, d string) {
		write(t, d+"/f", "text")
		must(t, unix.Chmod(d+"/f", 0o666))
		asUser(t, func() {
			fd, err := unix.Open(d+"/f", unix.O_RDWR, 0)
			must(t, err)
			defer unix.Close(fd)
			as(t, 0, 0, nil, func() { must(t, unix.Chmod(d+"/f", 0)) })
			_, err = unix.Pread(fd, make([]byte, 4), 0)
			wantErr(t, "read after chmod 0", err, 0)
			_, err = unix.Pwrite(fd, []byte("TEXT"), 0)
			wantErr(t, "write after chmod 0", err, 0)
			wantErr(t, "ftruncate after chmod 0", unix.Ftruncate(fd, 2), 0)
			wantErr(t, "open again", openErr(d+"/f", unix.O_RDONLY, 0), unix.EACCES)
			wantErr(t, "fchmod by another", unix.Fchmod(fd, 0o777), unix.EPERM)
			wantErr(t, "fchown by another", unix.Fchown(fd, userA, -1), unix.EPERM)
		})
	}},
}

func openRights(t *T, d string) {
	const r, w = 4, 2
	flags := []struct {
		name  string
		flags int
		needs uint32
	}{
		{"O_RDONLY", unix.O_RDONLY, r}, {"O_WRONLY", unix.O_WRONLY, w}, {"O_RDWR", unix.O_RDWR, r | w},
		{"O_WRONLY|O_TRUNC", unix.O_WRONLY | unix.O_TRUNC, w}, {"O_RDONLY|O_TRUNC", unix.O_RDONLY | unix.O_TRUNC, r | w},
		{"O_WRONLY|O_APPEND", unix.O_WRONLY | unix.O_APPEND, w}, {"O_RDWR|O_CREAT", unix.O_RDWR | unix.O_CREAT, r | w},
		{"O_RDONLY|O_CREAT", unix.O_CREAT, r}, {"O_PATH", unix.O_PATH, 0}, {"O_RDWR|O_NONBLOCK", unix.O_RDWR | unix.O_NONBLOCK, r | w},
	}
	must(t, unix.Chmod(d, 0o755)) // in sticky and world-writable directories O_CREAT has rules of its own
	for _, k := range []string{reg, fifo} {
		p := d + "/" + k
		makeKind(t, k, p, 0)
		for _, id := range identities {
			must(t, unix.Chown(p, id.owner, id.group))
			for perm := range uint32(8) {
				must(t, unix.Chmod(p, id.only(perm)))
				id.as(t, func() {
					for _, f := range flags {
						if k == fifo && f.flags&unix.O_ACCMODE == unix.O_WRONLY {
							continue // needs a reader
						}
						want := unix.EACCES
						if f.needs&^perm == 0 {
							want = 0
						}
						fl := f.flags
						if k == fifo {
							fl |= unix.O_NONBLOCK
						}
						wantErr(t, fmt.Sprintf("open(%s, %s), %s has %d", k, f.name, id.name, perm), openErr(p, fl, 0), want)
					}
				})
			}
		}
		must(t, unix.Chmod(p, 0))
		wantErr(t, "root opens a "+k, openErr(p, unix.O_RDWR, 0), 0)
	}
}

func accessRights(t *T, d string) {
	for _, k := range []string{reg, dir} {
		p := d + "/" + k
		makeKind(t, k, p, 0)
		for _, id := range identities {
			must(t, unix.Chown(p, id.owner, id.group))
			for mode := uint32(0); mode < 0o1000; mode += 5 {
				must(t, unix.Chmod(p, mode))
				id.as(t, func() {
					for mask := range uint32(8) {
						want := unix.EACCES
						if mask&^(mode>>id.shift) == 0 {
							want = 0
						}
						wantErr(t, fmt.Sprintf("access(%s of mode %o, %d), %s", k, mode, mask, id.name), unix.Access(p, mask), want)
					}
				})
			}
		}
		for mode := range uint32(0o1000) {
			if mode%0o11 != 0 {
				continue
			}
			must(t, unix.Chmod(p, mode))
			want := syscall.Errno(0)
			if k == reg && mode&0o111 == 0 {
				want = unix.EACCES
			}
			wantErr(t, fmt.Sprintf("root access(%s of mode %o, X_OK)", k, mode), unix.Access(p, unix.X_OK), want)
			wantErr(t, fmt.Sprintf("root access(%s of mode %o, R_OK|W_OK)", k, mode), unix.Access(p, unix.R_OK|unix.W_OK), 0)
		}
	}
	wantErr(t, "bad mask", unix.Access(d, 8), unix.EINVAL)
}

// pathRights are the calls that need a right on the file or its ownership.
func pathRights(t *T, d string) {
	const r, w = 4, 2
	now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	calls := []struct {
		name  string
		needs uint32        // rights
		owner syscall.Errno // 0: the rights decide; else what all but the owner get
		or    bool          // either the right or the ownership
		call  func(p string) error
	}{
		{"truncate", w, 0, false, func(p string) error { return unix.Truncate(p, 5) }},
		{"utimensat(now)", w, 0, true, func(p string) error { return unix.UtimesNanoAt(at, p, now, 0) }},
		{"utimensat(NULL)", w, 0, true, func(p string) error { return unix.Utimes(p, nil) }},
		{"utimensat(then)", 0, unix.EPERM, false, func(p string) error { return unix.UtimesNanoAt(at, p, someTimes, 0) }},
		{"utimensat(now, omit)", 0, unix.EPERM, false, func(p string) error {
			return unix.UtimesNanoAt(at, p, []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_OMIT}}, 0)
		}},
		{"utimensat(omit, omit)", 0, 0, false, func(p string) error {
			return unix.UtimesNanoAt(at, p, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_OMIT}}, 0)
		}},
		{"stat", 0, 0, false, func(p string) error { return unix.Stat(p, new(unix.Stat_t)) }},
	}
	p := d + "/f"
	touch(t, p, 0)
	if t.has(Xattr) {
		must(t, unix.Setxattr(p, "user.a", []byte("a"), 0))
	}
	for _, id := range identities {
		must(t, unix.Chown(p, id.owner, id.group))
		for perm := range uint32(8) {
			must(t, unix.Chmod(p, id.only(perm)))
			id.as(t, func() {
				for _, c := range calls {
					want := syscall.Errno(0)
					switch {
					case c.owner != 0 && id.owner != userA:
						want = c.owner
					case c.needs&^perm != 0 && !(c.or && id.owner == userA):
						want = unix.EACCES
					}
					wantErr(t, fmt.Sprintf("%s, %s has %d", c.name, id.name, perm), c.call(p), want)
				}
				if t.has(Xattr) {
					xattrRights(t, p, perm, fmt.Sprintf("%s has %d", id.name, perm))
				}
			})
		}
	}
}

func xattrRights(t *T, p string, perm uint32, who string) {
	want := func(right uint32) syscall.Errno {
		if perm&right != 0 {
			return 0
		}
		return unix.EACCES
	}
	_, err := unix.Getxattr(p, "user.a", make([]byte, 10))
	wantErr(t, "getxattr, "+who, err, want(4))
	wantErr(t, "setxattr, "+who, unix.Setxattr(p, "user.a", []byte("b"), 0), want(2))
	_, err = unix.Listxattr(p, make([]byte, 1000))
	wantErr(t, "listxattr, "+who, err, 0)
}

// dirRights are the rights on a directory for what is in it.
func dirRights(t *T, d string) {
	const r, x = 4, 1
	sub := d + "/sub"
	must(t, unix.Mkdir(sub, 0o777))
	touch(t, sub+"/f", 0o666)
	calls := []struct {
		name  string
		needs uint32
		call  func() error
	}{
		{"open of the directory", r, func() error { return openErr(sub, unix.O_RDONLY|unix.O_DIRECTORY, 0) }},
		{"stat in it", x, func() error { return unix.Stat(sub+"/f", new(unix.Stat_t)) }},
		{"stat of nothing in it", x, func() error {
			if err := unix.Stat(sub+"/none", new(unix.Stat_t)); err != unix.ENOENT {
				return err
			}
			return nil
		}},
		{"open in it", x, func() error { return openErr(sub+"/f", unix.O_RDWR, 0) }},
		{"chdir", x, func() error { return unix.Chdir(sub) }},
		{"path through it", x, func() error { return unix.Stat(sub+"/..", new(unix.Stat_t)) }},
		{"readdir", r, func() error { _, err := os.ReadDir(sub); return err }},
	}
	for _, id := range identities {
		must(t, unix.Chown(sub, id.owner, id.group))
		for perm := range uint32(8) {
			must(t, unix.Chmod(sub, id.only(perm)))
			id.as(t, func() {
				for _, c := range calls {
					want := syscall.Errno(0)
					if c.needs&^perm != 0 {
						want = unix.EACCES
					}
					wantErr(t, fmt.Sprintf("%s, %s has %d", c.name, id.name, perm), c.call(), want)
				}
			})
		}
	}
}

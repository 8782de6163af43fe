package posix

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var chmodCases = []namedCase{
	{"every mode of every kind", func(t *T, d string) {
		for i, k := range kinds {
			if k == lnk {
				continue
			}
			p := fmt.Sprintf("%s/%d", d, i)
			makeKind(t, k, p, 0o644)
			for mode := uint32(0); mode <= 0o7777; mode += 11 {
				if wantErr(t, fmt.Sprintf("chmod(%s, %o)", k, mode), unix.Chmod(p, mode), 0) {
					st := lstat(t, p)
					check(t, st.Mode == typeOf(k)|mode, "chmod(%s, %o) gives %o", k, mode, st.Mode)
				}
			}
			must(t, unix.Chmod(p, 0o755))
		}
	}},
	{"callers and kinds", func(t *T, d string) {
		for i, k := range kinds {
			if k == lnk {
				continue
			}
			p := fmt.Sprintf("%s/%d", d, i)
			makeKind(t, k, p, 0o777)
			for _, id := range identities {
				must(t, unix.Lchown(p, id.owner, id.group))
				want := unix.EPERM
				if id.owner == userA {
					want = 0
				}
				for _, mode := range []uint32{0, 0o600, 0o755, 0o777, 0o1777, 0o4755} {
					id.as(t, func() {
						wantErr(t, fmt.Sprintf("chmod(%s, %o) by %s", k, mode, id.name), unix.Chmod(p, mode), want)
					})
				}
				must(t, unix.Chmod(p, 0o755))
				// setgid is for members of the group.
				for _, mode := range []uint32{0o2755, 0o2644, 0o6711, 0o3777} {
					id.as(t, func() {
						wantErr(t, fmt.Sprintf("chmod(%s, %o) by %s", k, mode, id.name), unix.Chmod(p, mode), want)
					})
					if want != 0 {
						continue
					}
					kept := mode
					if id.group == groupB {
						kept &^= 0o2000
					}
					st := lstat(t, p)
					check(t, st.Mode&0o7777 == kept, "chmod(%s, %o) by %s gives %o, want %o", k, mode, id.name, st.Mode&0o7777, kept)
				}
			}
		}
	}},
	{"through a symlink and a descriptor", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		must(t, unix.Symlink("f", d+"/l"))
		must(t, unix.Chmod(d+"/l", 0o600))
		wantMode(t, d+"/f", 0o600)
		fd := open(t, d+"/f", unix.O_RDONLY)
		must(t, unix.Fchmod(fd, 0o711))
		wantMode(t, d+"/f", 0o711)
		dfd := open(t, d, unix.O_RDONLY|unix.O_DIRECTORY)
		must(t, unix.Fchmodat(dfd, "f", 0o722, 0))
		wantMode(t, d+"/f", 0o722)
		p := open(t, d+"/f", unix.O_PATH)
		wantErr(t, "fchmod of an O_PATH descriptor", unix.Fchmod(p, 0o600), unix.EBADF)
		st := lstat(t, d+"/l")
		check(t, st.Mode == unix.S_IFLNK|0o777, "the link has mode %o", st.Mode)
	}},
}

var chownCases = []namedCase{
	{"callers, owners and groups", chownCallers},
	{"setuid and setgid go", chownClears},
	{"symlinks", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		must(t, unix.Symlink("f", d+"/l"))
		must(t, unix.Chown(d+"/l", userA, groupA))
		must(t, unix.Lchown(d+"/l", userB, groupB))
		f, l := lstat(t, d+"/f"), lstat(t, d+"/l")
		check(t, f.Uid == userA && f.Gid == groupA, "file %d:%d", f.Uid, f.Gid)
		check(t, l.Uid == userB && l.Gid == groupB, "link %d:%d", l.Uid, l.Gid)
		fd := open(t, d+"/f", unix.O_RDONLY)
		must(t, unix.Fchown(fd, userB, -1))
		f = lstat(t, d+"/f")
		check(t, f.Uid == userB && f.Gid == groupA, "fchown: %d:%d", f.Uid, f.Gid)
		p := open(t, d+"/l", unix.O_PATH|unix.O_NOFOLLOW)
		must(t, unix.Fchownat(p, "", 0, 0, unix.AT_EMPTY_PATH))
		l = lstat(t, d+"/l")
		check(t, l.Uid == 0 && l.Gid == 0, "fchownat(AT_EMPTY_PATH): %d:%d", l.Uid, l.Gid)
	}},
	{"large numbers", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		for _, id := range []int{65533, 65534, 65535, 65536, 1 << 30, 1<<32 - 2} {
			must(t, unix.Chown(d+"/f", id, id))
			st := lstat(t, d+"/f")
			check(t, st.Uid == uint32(id) && st.Gid == uint32(id), "%d:%d, want %d", st.Uid, st.Gid, id)
		}
	}},
}

func chownCallers(t *T, d string) {
	const keep = -1
	p := d + "/it"
	for _, k := range kinds {
		for _, id := range identities {
			for _, uid := range []int{keep, userA, userB, 0} {
				for _, gid := range []int{keep, groupA, groupB, groupS, 0} {
					makeKind(t, k, p, 0o777)
					must(t, unix.Lchown(p, id.owner, id.group))
					// The owner may keep himself, and give a group that he is in.
					mine := id.owner == userA
					member := gid == groupA || gid == groupS && id.groups != nil || gid == id.group
					want := unix.EPERM
					if (uid == keep || mine && uid == userA) && (gid == keep || mine && member) {
						want = 0
					}
					id.as(t, func() {
						wantErr(t, fmt.Sprintf("lchown(%s of %d:%d, %d, %d) by %s", k, id.owner, id.group, uid, gid, id.name),
							unix.Lchown(p, uid, gid), want)
					})
					st := lstat(t, p)
					o, g := id.owner, id.group
					if want == 0 {
						o, g = pick(uid, o), pick(gid, g)
					}
					check(t, int(st.Uid) == o && int(st.Gid) == g, "%s is %d:%d, want %d:%d", k, st.Uid, st.Gid, o, g)
					removeKind(t, p)
				}
			}
		}
	}
}

func pick(id, old int) int {
	if id == -1 {
		return old
	}
	return id
}

// chownClears: a change of owner takes setuid away, and setgid where the
// group may execute, from all but directories; whoever makes it.
func chownClears(t *T, d string) {
	for _, k := range []string{reg, dir, fifo} {
		for _, root := range []bool{true, false} {
			for _, change := range [][2]int{{userA, -1}, {-1, groupA}, {userA, groupA}, {-1, groupS}} {
				for _, mode := range []uint32{0o4755, 0o4644, 0o2755, 0o2711, 0o6755, 0o6777, 0o1777, 0o7777, 0o4111} {
					p := d + "/it"
					makeKind(t, k, p, 0o644)
					must(t, unix.Chown(p, userA, groupA))
					must(t, unix.Chmod(p, mode))
					caller, want := userA, mode
					if root {
						caller = 0
					}
					if k != dir {
						want = mode &^ 0o6000
					}
					as(t, caller, caller, []uint32{groupS}, func() {
						wantErr(t, fmt.Sprintf("chown(%s of mode %o, %v) by %d", k, mode, change, caller), unix.Chown(p, change[0], change[1]), 0)
					})
					st := lstat(t, p)
					check(t, st.Mode&0o7777 == want, "chown(%s of mode %o, %v) by %d leaves %o, want %o", k, mode, change, caller, st.Mode&0o7777, want)
					removeKind(t, p)
				}
			}
		}
	}
	// Without the group's right to execute, setgid is no privilege: root's
	// change leaves it.
	touch(t, d+"/f", 0o2644)
	must(t, unix.Chmod(d+"/f", 0o2644))
	must(t, os.Chown(d+"/f", userA, groupA))
	wantMode(t, d+"/f", 0o2644)
}

// stickyCases: in a sticky directory only the owners of file and directory,
// and root, may remove or rename a file.
var stickyCases = []namedCase{
	{"files", func(t *T, d string) { stickyMatrix(t, d, []string{reg, fifo, sock, lnk, chr}) }},
	{"directories", func(t *T, d string) { stickyMatrix(t, d, []string{dir}) }},
	{"replacing", stickyReplace},
}

func stickyMatrix(t *T, d string, kinds []string) {
	sub := d + "/sub"
	must(t, unix.Mkdir(sub, 0o777))
	for _, sticky := range []bool{true, false} {
		for _, dirOwner := range []int{userA, userB, 0} {
			must(t, unix.Chown(sub, dirOwner, 0))
			must(t, unix.Chmod(sub, stickyMode(sticky)))
			for _, owner := range []int{userA, userB, 0} {
				for _, caller := range []int{userA, userB, 0} {
					want := unix.EPERM
					if !sticky || caller == 0 || caller == dirOwner || caller == owner {
						want = 0
					}
					for _, k := range kinds {
						stickyCalls(t, sub, d+"/out", k, owner, caller, want,
							fmt.Sprintf("sticky %v, directory of %d, %s of %d, caller %d", sticky, dirOwner, k, owner, caller))
					}
				}
			}
		}
	}
}

func stickyMode(sticky bool) uint32 {
	if sticky {
		return 0o1777
	}
	return 0o777
}

func stickyCalls(t *T, sub, out, k string, owner, caller int, want syscall.Errno, what string) {
	p := sub + "/it"
	calls := []struct {
		name string
		call func() error
	}{
		{"rename within", func() error { return unix.Rename(p, sub+"/new") }},
		{"rename out", func() error { return unix.Rename(p, out) }},
		{"remove", func() error {
			if k == dir {
				return unix.Rmdir(p)
			}
			return unix.Unlink(p)
		}},
	}
	for _, c := range calls {
		makeKind(t, k, p, 0o777)
		must(t, unix.Lchown(p, owner, owner))
		expect := want
		if c.name == "rename out" && k == dir && want == 0 && caller != 0 && caller != owner {
			expect = 0 // mode 0777: its ".." may be changed
		}
		as(t, caller, caller, nil, func() { wantErr(t, c.name+": "+what, c.call(), expect) })
		for _, left := range []string{p, sub + "/new", out} {
			removeKindIfThere(t, left)
		}
	}
}

func removeKindIfThere(t *T, name string) {
	t.Helper()
	if unix.Lstat(name, new(unix.Stat_t)) == nil {
		removeKind(t, name)
	}
}

func stickyReplace(t *T, d string) {
	sub := d + "/sub"
	must(t, unix.Mkdir(sub, 0o777))
	for _, sticky := range []bool{true, false} {
		for _, dirOwner := range []int{userA, userB, 0} {
			must(t, unix.Chown(sub, dirOwner, 0))
			must(t, unix.Chmod(sub, stickyMode(sticky)))
			for _, victim := range []int{userA, userB, 0} {
				for _, k := range []string{reg, dir} {
					makeKind(t, k, d+"/src", 0o777)
					must(t, unix.Lchown(d+"/src", userA, groupA))
					makeKind(t, k, sub+"/it", 0o777)
					must(t, unix.Lchown(sub+"/it", victim, victim))
					want := unix.EPERM
					if !sticky || dirOwner == userA || victim == userA {
						want = 0
					}
					what := fmt.Sprintf("a %s of %d in a directory of %d, sticky %v", k, victim, dirOwner, sticky)
					asUser(t, func() {
						if t.has(Flags) {
							wantErr(t, "exchange with "+what, exchange(d+"/src", sub+"/it"), want)
							if want == 0 {
								wantErr(t, "exchange back "+what, asRoot(t, func() error { return exchange(d+"/src", sub+"/it") }), 0)
							}
						}
						wantErr(t, "rename over "+what, unix.Rename(d+"/src", sub+"/it"), want)
					})
					removeKindIfThere(t, d+"/src")
					removeKindIfThere(t, sub+"/it")
				}
			}
		}
	}
}

// asRoot runs fn as root while another caller is at work.
func asRoot(t *T, fn func() error) (err error) {
	as(t, 0, 0, nil, func() { err = fn() })
	return err
}

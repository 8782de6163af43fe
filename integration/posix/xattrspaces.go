package posix

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

var xattrSpaceCases = []namedCase{
	{"namespaces, kinds and callers", xattrMatrix},
	{"sizes and flags", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		f := d + "/f"
		sizes := []int{0, 1, 2, 255, 256, 1000, 3000}
		if t.has(XattrBig) {
			sizes = append(sizes, 4096, 10_000, 65_535, 65_536)
		}
		for _, n := range sizes {
			v := string(pattern(int64(n)))
			wantErr(t, fmt.Sprintf("setxattr of %d bytes", n), unix.Setxattr(f, "user.v", []byte(v), 0), 0)
			got, err := getxattr(f, "user.v")
			check(t, err == nil && got == v, "%d bytes, %v; want %d", len(got), err, n)
			size, err := unix.Getxattr(f, "user.v", nil)
			check(t, err == nil && size == n, "size %d, %v; want %d", size, err, n)
			if n > 1 {
				_, err = unix.Getxattr(f, "user.v", make([]byte, n-1))
				wantErr(t, "a buffer one too short", err, unix.ERANGE)
			}
		}
		wantErr(t, "65537 bytes", unix.Setxattr(f, "user.v", make([]byte, 65_537), 0), unix.E2BIG)
		for _, n := range []int{1, 100, 250} {
			name := "user." + strings.Repeat("n", n)
			wantErr(t, fmt.Sprintf("a name of %d", len(name)), unix.Setxattr(f, name, []byte("v"), unix.XATTR_CREATE), 0)
			wantErr(t, "CREATE again", unix.Setxattr(f, name, []byte("w"), unix.XATTR_CREATE), unix.EEXIST)
			wantErr(t, "REPLACE", unix.Setxattr(f, name, []byte("w"), unix.XATTR_REPLACE), 0)
			wantErr(t, "remove", unix.Removexattr(f, name), 0)
			wantErr(t, "REPLACE of nothing", unix.Setxattr(f, name, []byte("w"), unix.XATTR_REPLACE), unix.ENODATA)
			wantErr(t, "remove of nothing", unix.Removexattr(f, name), unix.ENODATA)
		}
		wantErr(t, "a name of 256", unix.Setxattr(f, "user."+strings.Repeat("n", 251), nil, 0), unix.ERANGE)
		wantErr(t, "an empty name", unix.Setxattr(f, "", nil, 0), unix.ERANGE)
		wantErr(t, "bad flags", unix.Setxattr(f, "user.f", nil, 64), unix.EINVAL)
		for _, name := range []string{"nospace", "other.x", "user", "system.x"} {
			wantErr(t, "the name "+name, unix.Setxattr(f, name, nil, 0), unix.EOPNOTSUPP)
		}
		wantErr(t, "user. alone", unix.Setxattr(f, "user.", nil, 0), unix.EINVAL)
	}},
	{"many", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		var want []string
		for i := range 40 {
			name := fmt.Sprintf("user.name-%02d", i)
			want = append(want, name)
			must(t, unix.Setxattr(d+"/f", name, []byte(name), 0))
		}
		for i := 0; i < 40; i += 3 {
			must(t, unix.Removexattr(d+"/f", want[i]))
		}
		want = slices.DeleteFunc(want, func(s string) bool { return (int(s[10]-'0')*10+int(s[11]-'0'))%3 == 0 })
		got := listxattr(t, d+"/f")
		check(t, slices.Equal(got, want), "%v, want %v", got, want)
		must(t, unix.Rename(d+"/f", d+"/g"))
		must(t, unix.Link(d+"/g", d+"/h"))
		got = listxattr(t, d+"/h")
		check(t, slices.Equal(got, want), "through another link: %v", got)
		fd := open(t, d+"/h", unix.O_RDWR)
		wantErr(t, "fsetxattr", unix.Fsetxattr(fd, "user.fd", []byte("fd"), 0), 0)
		v, err := getxattr(d+"/g", "user.fd")
		check(t, err == nil && v == "fd", "%q, %v", v, err)
	}},
}

func listxattr(t *T, p string) (names []string) {
	t.Helper()
	b := make([]byte, 65536)
	n, err := unix.Llistxattr(p, b)
	must(t, err)
	for s := range strings.SplitSeq(strings.TrimSuffix(string(b[:n]), "\x00"), "\x00") {
		if s != "" && !strings.HasPrefix(s, "security.") || s == "security.s" {
			names = append(names, s)
		}
	}
	slices.Sort(names)
	return names
}

// xattrMatrix: who may set and see what, on which kind. user.* is for files
// and directories; in a sticky directory of another it is for the owner.
func xattrMatrix(t *T, d string) {
	type caller struct {
		name string
		uid  int
	}
	for i, k := range kinds {
		p := fmt.Sprintf("%s/%d", d, i)
		makeKind(t, k, p, 0o666)
		must(t, unix.Lchown(p, userA, groupA))
		for _, c := range []caller{{"root", 0}, {"owner", userA}, {"other", userB}} {
			for _, name := range []string{"user.u", "trusted.t", "security.s"} {
				want, get := syscall.Errno(0), syscall.Errno(0)
				plain := k == reg || k == dir
				switch {
				case name == "user.u" && !plain:
					want, get = unix.EPERM, unix.ENODATA
				case name == "trusted.t" && c.uid != 0:
					want, get = unix.EPERM, unix.ENODATA
				case name == "security.s" && c.uid != 0:
					want = unix.EPERM
				}
				what := fmt.Sprintf("%s of a %s by %s", name, k, c.name)
				as(t, c.uid, c.uid, nil, func() {
					wantErr(t, "set "+what, unix.Lsetxattr(p, name, []byte(c.name), 0), want)
					v, err := getxattr(p, name)
					wantErr(t, "get "+what, err, get)
					if want == 0 {
						check(t, v == c.name, "%s is %q", what, v)
					}
				})
			}
		}
		for _, name := range listxattr(t, p) {
			wantErr(t, "remove "+name+" of a "+k, unix.Lremovexattr(p, name), 0)
		}
		left := listxattr(t, p)
		check(t, len(left) == 0, "left on a %s: %v", k, left)
	}
}

// aclRightCases: what entries of an ACL grant, and how chmod and creation
// change them.
var aclRightCases = []namedCase{
	{"named entries and mask", aclRights},
	{"chmod and the mask", func(t *T, d string) {
		p := d + "/f"
		touch(t, p, 0o640)
		must(t, unix.Setxattr(p, aclAccess, aclBytes([][3]uint32{{1, 6, none}, {2, 7, userA}, {4, 4, none}, {0x10, 7, none}, {0x20, 0, none}}), 0))
		for mode := range uint32(0o1000) {
			if mode%13 != 0 {
				continue
			}
			must(t, unix.Chmod(p, mode))
			wantMode(t, p, mode)
			got, err := getxattr(p, aclAccess)
			want := string(aclBytes([][3]uint32{{1, mode >> 6, none}, {2, 7, userA}, {4, 4, none}, {0x10, mode >> 3 & 7, none}, {0x20, mode & 7, none}}))
			check(t, err == nil && got == want, "after chmod %o: %x, %v; want %x", mode, got, err, want)
		}
	}},
	{"an ACL that a mode can say is none", func(t *T, d string) {
		touch(t, d+"/f", 0o600)
		must(t, unix.Setxattr(d+"/f", aclAccess, aclBytes([][3]uint32{{1, 6, none}, {4, 4, none}, {0x20, 1, none}}), 0))
		wantMode(t, d+"/f", 0o641)
		_, err := getxattr(d+"/f", aclAccess)
		wantErr(t, "get", err, unix.ENODATA)
	}},
	{"bad ACLs", func(t *T, d string) {
		touch(t, d+"/f", 0o600)
		for name, acl := range map[string][]byte{
			"no version":    {1, 2},
			"version 1":     {1, 0, 0, 0},
			"half an entry": {2, 0, 0, 0, 1, 0, 6},
			"no owner":      aclBytes([][3]uint32{{4, 4, none}, {0x20, 1, none}}),
			"no mask":       aclBytes([][3]uint32{{1, 6, none}, {2, 6, userA}, {4, 4, none}, {0x20, 1, none}}),
			"two masks":     aclBytes([][3]uint32{{1, 6, none}, {4, 4, none}, {0x10, 4, none}, {0x10, 4, none}, {0x20, 1, none}}),
			"wrong order":   aclBytes([][3]uint32{{4, 4, none}, {1, 6, none}, {0x20, 1, none}}),
			"unknown tag":   aclBytes([][3]uint32{{1, 6, none}, {3, 4, none}, {4, 4, none}, {0x20, 1, none}}),
			"bad rights":    aclBytes([][3]uint32{{1, 0x16, none}, {4, 4, none}, {0x20, 1, none}}),
		} {
			err := unix.Setxattr(d+"/f", aclAccess, acl, 0)
			check(t, err != nil, "an ACL with %s was taken", name)
			wantMode(t, d+"/f", 0o600)
		}
	}},
	{"who may set", func(t *T, d string) {
		touch(t, d+"/f", 0o666)
		must(t, unix.Chown(d+"/f", userA, groupA))
		acl := aclBytes([][3]uint32{{1, 6, none}, {2, 6, userB}, {4, 4, none}, {0x10, 6, none}, {0x20, 0, none}})
		as(t, userB, groupB, nil, func() {
			wantErr(t, "set by another", unix.Setxattr(d+"/f", aclAccess, acl, 0), unix.EPERM)
		})
		asUser(t, func() { wantErr(t, "set by the owner", unix.Setxattr(d+"/f", aclAccess, acl, 0), 0) })
		as(t, userB, groupB, nil, func() {
			v, err := getxattr(d+"/f", aclAccess)
			check(t, err == nil && v == string(acl), "read by another: %x, %v", v, err)
			wantErr(t, "remove by another", unix.Removexattr(d+"/f", aclAccess), unix.EPERM)
		})
		wantErr(t, "on a symlink", func() error {
			must(t, unix.Symlink("f", d+"/l"))
			return unix.Lsetxattr(d+"/l", aclAccess, acl, 0)
		}(), unix.EOPNOTSUPP)
	}},
	{"default ACL and modes of new files", func(t *T, d string) {
		for _, mask := range []uint32{0, 4, 5, 6, 7} {
			sub := fmt.Sprintf("%s/%d", d, mask)
			must(t, unix.Mkdir(sub, 0o777))
			must(t, unix.Setxattr(sub, aclDefault, aclBytes([][3]uint32{{1, 7, none}, {2, 7, userA}, {4, 5, none}, {0x10, mask, none}, {0x20, 1, none}}), 0))
			for mode := range uint32(0o1000) {
				if mode%37 != 0 {
					continue
				}
				must(t, openErr(sub+"/f", unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, mode))
				st := lstat(t, sub+"/f")
				want := mode&0o700 | (mode>>3&7&mask)<<3 | mode&1
				check(t, st.Mode&0o7777 == want, "mask %d, create with %o gives %o, want %o", mask, mode, st.Mode&0o7777, want)
				got, err := getxattr(sub+"/f", aclAccess)
				acl := string(aclBytes([][3]uint32{{1, mode >> 6, none}, {2, 7, userA}, {4, 5, none}, {0x10, mode >> 3 & 7 & mask, none}, {0x20, mode & 1, none}}))
				check(t, err == nil && got == acl, "mask %d, create with %o: ACL %x, %v; want %x", mask, mode, got, err, acl)
				must(t, unix.Unlink(sub+"/f"))
			}
		}
	}},
}

const (
	aclAccess  = "system.posix_acl_access"
	aclDefault = "system.posix_acl_default"
)

// aclRights follows the algorithm of acl(5) for every combination.
func aclRights(t *T, d string) {
	p := d + "/f"
	touch(t, p, 0o600)
	callers := []struct {
		name   string
		uid    int
		gid    int
		groups []uint32
	}{
		{"named user", userA, groupB, nil}, {"owning group", userB, groupA, nil},
		{"named group", userB, groupS, nil}, {"named group, supplementary", userB, groupB, []uint32{groupS}}, {"other", userB, groupB, nil},
	}
	must(t, unix.Chown(p, 0, groupA))
	for user := range uint32(8) {
		group, named, other := 7-user, user^5, user^3
		for mask := range uint32(8) {
			must(t, unix.Setxattr(p, aclAccess, aclBytes([][3]uint32{{1, 6, none}, {2, user, userA}, {4, group, none},
				{8, named, groupS}, {0x10, mask, none}, {0x20, other, none}}), 0))
			for _, c := range callers {
				granted := map[string]uint32{"named user": user & mask, "owning group": group & mask, "other": other}[c.name]
				if strings.HasPrefix(c.name, "named group") {
					granted = named & mask
				}
				if mask == 0 && c.name != "owning group" {
					granted = other // Linux looks at no entry then
				}
				as(t, c.uid, c.gid, c.groups, func() {
					for want := range uint32(8) {
						no := unix.EACCES
						if want&^granted == 0 {
							no = 0
						}
						wantErr(t, fmt.Sprintf("access(%d) by %s, entries %d %d %d %d, mask %d", want, c.name, user, group, named, other, mask), unix.Access(p, want), no)
					}
				})
			}
		}
	}
}

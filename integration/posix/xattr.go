package posix

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

var xattrCases = []namedCase{
	{"values and flags", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		f := d + "/f"
		for _, v := range []string{"", "value", "\x00binary\xff", strings.Repeat("v", 3000)} {
			must(t, unix.Setxattr(f, "user.a", []byte(v), 0))
			if got, err := getxattr(f, "user.a"); err != nil || got != v {
				t.Errorf("%d bytes, %v; want %d", len(got), err, len(v))
			}
		}
		wantErr(t, "CREATE of one that is there", unix.Setxattr(f, "user.a", nil, unix.XATTR_CREATE), unix.EEXIST)
		wantErr(t, "REPLACE of one that is not", unix.Setxattr(f, "user.b", nil, unix.XATTR_REPLACE), unix.ENODATA)
		wantErr(t, "CREATE", unix.Setxattr(f, "user.b", []byte("B"), unix.XATTR_CREATE), 0)
		_, err := unix.Getxattr(f, "user.b", make([]byte, 0))
		must(t, err)
		_, err = unix.Getxattr(f, "user.a", make([]byte, 3))
		wantErr(t, "short buffer", err, unix.ERANGE)
		names := make([]byte, 100)
		n, err := unix.Listxattr(f, names)
		must(t, err)
		if got := string(names[:n]); got != "user.a\x00user.b\x00" && got != "user.b\x00user.a\x00" {
			t.Errorf("list %q", got)
		}
		_, err = unix.Listxattr(f, names[:3])
		wantErr(t, "short list", err, unix.ERANGE)
		must(t, unix.Removexattr(f, "user.a"))
		wantErr(t, "removing it again", unix.Removexattr(f, "user.a"), unix.ENODATA)
		_, err = getxattr(f, "user.a")
		wantErr(t, "get of what is gone", err, unix.ENODATA)
		wantErr(t, "value too large", unix.Setxattr(f, "user.big", make([]byte, 65537), 0), unix.E2BIG)
		wantErr(t, "name too long", unix.Setxattr(f, "user."+strings.Repeat("n", 251), nil, 0), unix.ERANGE)
	}},
	{"spaces and rights", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		must(t, unix.Setxattr(d+"/f", "trusted.t", []byte("T"), 0))
		must(t, unix.Setxattr(d+"/f", "security.s", []byte("S"), 0))
		must(t, unix.Setxattr(d+"/f", "user.u", []byte("U"), 0))
		must(t, os.Symlink("f", d+"/l"))
		wantErr(t, "user attribute of a link", unix.Lsetxattr(d+"/l", "user.x", nil, 0), unix.EPERM)
		asUser(t, func() {
			_, err := getxattr(d+"/f", "trusted.t")
			wantErr(t, "trusted by a user", err, unix.ENODATA)
			wantErr(t, "setting without write", unix.Setxattr(d+"/f", "user.u", nil, 0), unix.EACCES)
			if got, err := getxattr(d+"/f", "user.u"); err != nil || got != "U" {
				t.Errorf("%q, %v", got, err)
			}
		})
		must(t, unix.Chmod(d+"/f", 0o600))
		asUser(t, func() {
			_, err := getxattr(d+"/f", "user.u")
			wantErr(t, "getting without read", err, unix.EACCES)
		})
		if !t.has(Own) {
			return
		}
		wantErr(t, "an own name", unix.Setxattr(d+"/f", "ogw.key", nil, 0), unix.EPERM)
		if got, err := getxattr(d+"/f", "ogw.key"); err != nil || !strings.Contains(got, "/") || !strings.HasSuffix(got, "/f") {
			t.Errorf("ogw.key %q, %v", got, err)
		}
	}},
	{"capabilities go with a write", func(t *T, d string) {
		if !t.has(Security) {
			t.Skip("the file system does not revoke capabilities")
		}
		touch(t, d+"/f", 0o755)
		caps := []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		must(t, unix.Setxattr(d+"/f", "security.capability", caps, 0))
		must(t, os.WriteFile(d+"/f", []byte("x"), 0))
		_, err := getxattr(d+"/f", "security.capability")
		wantErr(t, "after a write", err, unix.ENODATA)
	}},
}

var aclCases = []namedCase{
	{"access ACL", func(t *T, d string) {
		f := d + "/f"
		touch(t, f, 0o640)
		// user::rw- user:1001:rw- group::r-- mask::rw- other::---
		acl := aclBytes([][3]uint32{{1, 6, none}, {2, 6, 1001}, {4, 4, none}, {0x10, 6, none}, {0x20, 0, none}})
		must(t, unix.Setxattr(f, "system.posix_acl_access", acl, 0))
		asUser(t, func() { wantErr(t, "the named user writes", openErr(f, unix.O_RDWR, 0), 0) })
		as(t, 1002, 1002, nil, func() { wantErr(t, "others do not read", openErr(f, unix.O_RDONLY, 0), unix.EACCES) })
		wantMode(t, f, 0o660) // the group bits show the mask
		must(t, unix.Chmod(f, 0o600))
		asUser(t, func() { wantErr(t, "chmod takes the mask away", openErr(f, unix.O_RDONLY, 0), unix.EACCES) })
		must(t, unix.Removexattr(f, "system.posix_acl_access"))
		_, err := getxattr(f, "system.posix_acl_access")
		wantErr(t, "after removal", err, unix.ENODATA)
	}},
	{"default ACL", func(t *T, d string) {
		acl := aclBytes([][3]uint32{{1, 7, none}, {2, 7, 1001}, {4, 5, none}, {0x10, 7, none}, {0x20, 0, none}})
		must(t, unix.Setxattr(d, "system.posix_acl_default", acl, 0))
		must(t, openErr(d+"/f", unix.O_CREAT, 0o666))
		must(t, os.Mkdir(d+"/sub", 0o777))
		wantMode(t, d+"/f", 0o660) // umask 022 does not count
		asUser(t, func() { wantErr(t, "inherited right", openErr(d+"/f", unix.O_RDWR, 0), 0) })
		if got, err := getxattr(d+"/sub", "system.posix_acl_default"); err != nil || got != string(acl) {
			t.Errorf("a directory inherits %x, %v", got, err)
		}
		wantErr(t, "default ACL of a file", unix.Setxattr(d+"/f", "system.posix_acl_default", acl, 0), unix.EACCES)
	}},
}

const none = 0xffffffff

// aclBytes encodes entries (tag, permissions, id) as Linux does, version 2.
func aclBytes(entries [][3]uint32) []byte {
	b := []byte{2, 0, 0, 0}
	for _, e := range entries {
		b = append(b, byte(e[0]), byte(e[0]>>8), byte(e[1]), byte(e[1]>>8))
		b = append(b, byte(e[2]), byte(e[2]>>8), byte(e[2]>>16), byte(e[2]>>24))
	}
	return b
}

func getxattr(name, attr string) (string, error) {
	b := make([]byte, 65536)
	n, err := unix.Lgetxattr(name, attr, b)
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}

package posix

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var attrCases = []namedCase{
	{"chmod", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		must(t, os.Chown(d+"/f", 1001, 1001))
		before := lstat(t, d+"/f")
		for _, m := range []uint32{0, 0o777, 0o1777, 0o2755, 0o4755, 0o6755, 0o7777} {
			must(t, unix.Chmod(d+"/f", m))
			wantMode(t, d+"/f", m)
		}
		if a := lstat(t, d+"/f"); !later(a.Ctim, before.Ctim) || a.Mtim != before.Mtim {
			t.Error("chmod moves ctime only")
		}
		asUser(t, func() { wantErr(t, "chmod by the owner", unix.Chmod(d+"/f", 0o600), 0) })
		as(t, 1002, 1002, nil, func() { wantErr(t, "chmod by another", unix.Chmod(d+"/f", 0o600), unix.EPERM) })
		wantErr(t, "chmod of nothing", unix.Chmod(d+"/none", 0o600), unix.ENOENT)
		must(t, os.Chown(d+"/f", 1001, 1007))
		asUser(t, func() { must(t, unix.Chmod(d+"/f", 0o2755)) })
		wantMode(t, d+"/f", 0o755) // not a member of the group: setgid is dropped
		as(t, 1001, 1001, []uint32{1007}, func() { must(t, unix.Chmod(d+"/f", 0o2755)) })
		wantMode(t, d+"/f", 0o2755)
	}},
	{"chown", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		must(t, os.Lchown(d+"/f", 1001, 1001))
		as(t, 1001, 1001, []uint32{1005}, func() {
			wantErr(t, "giving away", unix.Lchown(d+"/f", 1002, -1), unix.EPERM)
			wantErr(t, "to an own group", unix.Lchown(d+"/f", -1, 1005), 0)
			wantErr(t, "to a foreign group", unix.Lchown(d+"/f", -1, 1006), unix.EPERM)
		})
		if st := lstat(t, d+"/f"); st.Uid != 1001 || st.Gid != 1005 {
			t.Errorf("owner %d:%d", st.Uid, st.Gid)
		}
		must(t, unix.Chmod(d+"/f", 0o6755))
		as(t, 1001, 1001, []uint32{1005}, func() { must(t, unix.Lchown(d+"/f", -1, 1001)) })
		wantMode(t, d+"/f", 0o755)
		must(t, unix.Chmod(d+"/f", 0o6755))
		must(t, os.Chown(d+"/f", 1003, 1003))
		wantMode(t, d+"/f", 0o755)
		must(t, os.Symlink("f", d+"/l"))
		must(t, os.Lchown(d+"/l", 1004, 1004))
		if lstat(t, d+"/l").Uid != 1004 || lstat(t, d+"/f").Uid != 1003 {
			t.Error("lchown followed the link")
		}
	}},
	{"utimensat", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		must(t, os.Chown(d+"/f", 1001, 1001))
		set := func(name string, a, m unix.Timespec) error {
			return unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{a, m}, unix.AT_SYMLINK_NOFOLLOW)
		}
		for _, ts := range []unix.Timespec{{Sec: 1, Nsec: 1}, {Sec: 1700000000, Nsec: 123456789}, {Sec: -86400, Nsec: 5}, {Sec: 1 << 32, Nsec: 999999999}, {}} {
			must(t, set(d+"/f", ts, ts))
			if st := lstat(t, d+"/f"); st.Atim != ts || st.Mtim != ts {
				t.Errorf("set %v, got %v and %v", ts, st.Atim, st.Mtim)
			}
		}
		omit, now := unix.Timespec{Nsec: unix.UTIME_OMIT}, unix.Timespec{Nsec: unix.UTIME_NOW}
		must(t, set(d+"/f", unix.Timespec{Sec: 77}, omit))
		if st := lstat(t, d+"/f"); st.Atim.Sec != 77 || st.Mtim.Sec != 0 {
			t.Errorf("UTIME_OMIT: %v %v", st.Atim, st.Mtim)
		}
		must(t, set(d+"/f", omit, now))
		if st := lstat(t, d+"/f"); st.Atim.Sec != 77 || time.Since(time.Unix(st.Mtim.Sec, 0)).Abs() > time.Minute {
			t.Errorf("UTIME_NOW: %v", st.Mtim)
		}
		as(t, 1002, 1002, nil, func() {
			wantErr(t, "times by another", set(d+"/f", unix.Timespec{Sec: 1}, unix.Timespec{Sec: 1}), unix.EPERM)
			wantErr(t, "now by another without write", set(d+"/f", now, now), unix.EACCES)
		})
		must(t, unix.Chmod(d+"/f", 0o666))
		as(t, 1002, 1002, nil, func() { wantErr(t, "now by another with write", set(d+"/f", now, now), 0) })
		must(t, os.Symlink("none", d+"/l"))
		must(t, set(d+"/l", unix.Timespec{Sec: 5}, unix.Timespec{Sec: 6}))
		if st := lstat(t, d+"/l"); st.Mtim.Sec != 6 {
			t.Errorf("times of a link: %v", st.Mtim)
		}
	}},
	{"truncate", func(t *T, d string) {
		write(t, d+"/f", "0123456789")
		before := lstat(t, d+"/f")
		must(t, unix.Truncate(d+"/f", 4))
		wantText(t, d+"/f", "0123")
		must(t, unix.Truncate(d+"/f", 6))
		wantText(t, d+"/f", "0123\x00\x00")
		a := lstat(t, d+"/f")
		if !later(a.Mtim, before.Mtim) || !later(a.Ctim, before.Ctim) {
			t.Error("times did not move")
		}
		must(t, unix.Truncate(d+"/f", 1<<40))
		if st := lstat(t, d+"/f"); st.Size != 1<<40 || st.Blocks > 16 {
			t.Errorf("sparse file of %d bytes has %d blocks", st.Size, st.Blocks)
		}
		wantErr(t, "negative", unix.Truncate(d+"/f", -1), unix.EINVAL)
		wantErr(t, "a directory", unix.Truncate(d, 1), unix.EISDIR)
		wantErr(t, "nothing", unix.Truncate(d+"/none", 1), unix.ENOENT)
		r, err := unix.Open(d+"/f", unix.O_RDONLY, 0)
		must(t, err)
		wantErr(t, "ftruncate of a reading descriptor", unix.Ftruncate(r, 1), unix.EINVAL)
		unix.Close(r)
		must(t, unix.Chmod(d+"/f", 0o644))
		asUser(t, func() { wantErr(t, "without write", unix.Truncate(d+"/f", 1), unix.EACCES) })
	}},
	{"setuid and setgid go with a write", func(t *T, d string) {
		for _, c := range []struct {
			mode, want uint32
		}{{0o4777, 0o777}, {0o2777, 0o777}, {0o6777, 0o777}, {0o2767, 0o2767}, {0o1777, 0o1777}} {
			for what, change := range map[string]func(string) error{
				"write": func(f string) error {
					fd, err := unix.Open(f, unix.O_WRONLY, 0)
					if err == nil {
						_, err = unix.Write(fd, []byte("x"))
						unix.Close(fd)
					}
					return err
				},
				"truncate": func(f string) error { return unix.Truncate(f, 0) },
				"O_TRUNC":  func(f string) error { return openErr(f, unix.O_WRONLY|unix.O_TRUNC, 0) },
			} {
				f := fmt.Sprintf("%s/%s-%o", d, what, c.mode)
				touch(t, f, 0o777)
				must(t, os.WriteFile(f, []byte("content"), 0))
				must(t, os.Chown(f, 1003, 1003))
				must(t, unix.Chmod(f, c.mode))
				asUser(t, func() { must(t, change(f)) })
				// Newer kernels drop setgid from files that the group may not
				// execute as well, if the writer is not in the group.
				if st := lstat(t, f); st.Mode&0o7777 != c.want && st.Mode&0o7777 != c.want&^0o6000 {
					t.Errorf("%s of mode %o leaves %o, want %o", what, c.mode, st.Mode&0o7777, c.want)
				}
			}
		}
		// A second write, after somebody set the bit again.
		touch(t, d+"/again", 0o777)
		asUser(t, func() {
			fd, err := unix.Open(d+"/again", unix.O_WRONLY, 0)
			must(t, err)
			defer unix.Close(fd)
			_, err = unix.Write(fd, []byte("x"))
			must(t, err)
			as(t, 0, 0, nil, func() { must(t, unix.Chmod(d+"/again", 0o4777)) })
			_, err = unix.Write(fd, []byte("x"))
			must(t, err)
		})
		wantMode(t, d+"/again", 0o777)
		// root keeps them.
		touch(t, d+"/root", 0o4777)
		must(t, os.WriteFile(d+"/root", []byte("x"), 0))
		wantMode(t, d+"/root", 0o4777)
	}},
	{"times of reads, writes and names", func(t *T, d string) {
		write(t, d+"/f", "x")
		before := lstat(t, d+"/f")
		fd, err := unix.Open(d+"/f", unix.O_WRONLY, 0)
		must(t, err)
		if a := lstat(t, d+"/f"); a.Mtim != before.Mtim {
			t.Error("open for writing moves mtime")
		}
		_, err = unix.Write(fd, []byte("y"))
		must(t, err)
		var st unix.Stat_t
		must(t, unix.Fstat(fd, &st))
		if !later(st.Mtim, before.Mtim) || !later(st.Ctim, before.Ctim) {
			t.Error("write does not move mtime and ctime")
		}
		must(t, unix.Close(fd))
		if a := lstat(t, d+"/f"); a.Mtim != st.Mtim {
			t.Errorf("close moves mtime from %v to %v", st.Mtim, a.Mtim)
		}
	}},
}

var permCases = []namedCase{
	{"classes", func(t *T, d string) {
		touch(t, d+"/f", 0)
		must(t, os.Chown(d+"/f", 1001, 1005))
		for _, c := range []struct {
			mode   uint32
			uid    int
			groups []uint32
			flags  int
			want   syscall.Errno
		}{
			{0o400, 1001, nil, unix.O_RDONLY, 0}, {0o077, 1001, nil, unix.O_RDONLY, unix.EACCES},
			{0o200, 1001, nil, unix.O_WRONLY, 0}, {0o400, 1001, nil, unix.O_RDWR, unix.EACCES},
			{0o040, 1002, []uint32{1005}, unix.O_RDONLY, 0}, {0o707, 1002, []uint32{1005}, unix.O_RDONLY, unix.EACCES},
			{0o004, 1002, nil, unix.O_RDONLY, 0}, {0o770, 1002, nil, unix.O_RDONLY, unix.EACCES},
			{0o006, 1002, nil, unix.O_RDWR, 0}, {0o004, 1002, nil, unix.O_WRONLY, unix.EACCES},
			{0o444, 1002, nil, unix.O_WRONLY | unix.O_TRUNC, unix.EACCES},
		} {
			must(t, unix.Chmod(d+"/f", c.mode))
			as(t, c.uid, c.uid, c.groups, func() {
				wantErr(t, fmt.Sprintf("mode %o, uid %d, groups %v, flags %x", c.mode, c.uid, c.groups, c.flags), openErr(d+"/f", c.flags, 0), c.want)
			})
		}
		wantErr(t, "root", openErr(d+"/f", unix.O_RDWR, 0), 0)
	}},
	{"search and write of directories", func(t *T, d string) {
		must(t, os.Mkdir(d+"/sub", 0o755))
		must(t, os.Chown(d+"/sub", 1001, 1001))
		touch(t, d+"/sub/f", 0o666)
		touch(t, d+"/mine", 0o666)
		must(t, os.Chown(d+"/mine", 1001, 1001))
		must(t, unix.Chmod(d+"/sub", 0o600))
		asUser(t, func() {
			wantErr(t, "open without search", openErr(d+"/sub/f", unix.O_RDONLY, 0), unix.EACCES)
			wantErr(t, "create without search", openErr(d+"/sub/g", unix.O_CREAT, 0o644), unix.EACCES)
			_, err := os.ReadDir(d + "/sub")
			wantErr(t, "list with read", err, 0)
		})
		must(t, unix.Chmod(d+"/sub", 0o500))
		asUser(t, func() {
			s := d + "/sub/"
			wantErr(t, "open", openErr(s+"f", unix.O_RDONLY, 0), 0)
			wantErr(t, "create", openErr(s+"g", unix.O_CREAT|unix.O_WRONLY, 0o644), unix.EACCES)
			wantErr(t, "mkdir", unix.Mkdir(s+"g", 0o755), unix.EACCES)
			wantErr(t, "symlink", unix.Symlink("x", s+"g"), unix.EACCES)
			wantErr(t, "mkfifo", unix.Mkfifo(s+"g", 0o644), unix.EACCES)
			wantErr(t, "unlink", unix.Unlink(s+"f"), unix.EACCES)
			wantErr(t, "link into", unix.Link(d+"/mine", s+"g"), unix.EACCES)
			wantErr(t, "rename into", unix.Rename(d+"/mine", s+"g"), unix.EACCES)
			wantErr(t, "rename out of", unix.Rename(s+"f", d+"/out"), unix.EACCES)
		})
		must(t, unix.Chmod(d+"/sub", 0o300))
		asUser(t, func() {
			_, err := os.ReadDir(d + "/sub")
			wantErr(t, "list without read", err, unix.EACCES)
			wantErr(t, "create with write and search", openErr(d+"/sub/g", unix.O_CREAT, 0o644), 0)
		})
	}},
	{"sticky directories", func(t *T, d string) {
		must(t, unix.Chmod(d, 0o1777))
		for _, n := range []string{"a", "b", "c"} {
			touch(t, d+"/"+n, 0o666)
			must(t, os.Chown(d+"/"+n, 1001, 1001))
		}
		must(t, os.Mkdir(d+"/dir", 0o777))
		as(t, 1002, 1002, nil, func() {
			wantErr(t, "unlink of another's", unix.Unlink(d+"/a"), unix.EPERM)
			wantErr(t, "rename of another's", unix.Rename(d+"/a", d+"/x"), unix.EPERM)
			wantErr(t, "rmdir of another's", unix.Rmdir(d+"/dir"), unix.EPERM)
			must(t, openErr(d+"/own", unix.O_CREAT, 0o644))
			wantErr(t, "replacing another's", unix.Rename(d+"/own", d+"/a"), unix.EPERM)
			wantErr(t, "unlink of one's own", unix.Unlink(d+"/own"), 0)
		})
		asUser(t, func() { wantErr(t, "unlink by the owner", unix.Unlink(d+"/a"), 0) })
		must(t, os.Chown(d, 1002, 1002))
		as(t, 1002, 1002, nil, func() { wantErr(t, "unlink by the directory's owner", unix.Unlink(d+"/b"), 0) })
		wantErr(t, "root", unix.Unlink(d+"/c"), 0)
	}},
	{"access", func(t *T, d string) {
		touch(t, d+"/f", 0o640)
		must(t, os.Chown(d+"/f", 1001, 1005))
		asUser(t, func() {
			wantErr(t, "read and write", unix.Access(d+"/f", unix.R_OK|unix.W_OK), 0)
			wantErr(t, "execute", unix.Access(d+"/f", unix.X_OK), unix.EACCES)
		})
		as(t, 1002, 1002, []uint32{1005}, func() {
			wantErr(t, "read", unix.Access(d+"/f", unix.R_OK), 0)
			wantErr(t, "write", unix.Access(d+"/f", unix.W_OK), unix.EACCES)
		})
		as(t, 1003, 1003, nil, func() {
			wantErr(t, "exist", unix.Access(d+"/f", unix.F_OK), 0)
			wantErr(t, "read", unix.Access(d+"/f", unix.R_OK), unix.EACCES)
		})
		wantErr(t, "root executes nothing", unix.Access(d+"/f", unix.X_OK), unix.EACCES)
	}},
	{"moving a directory needs write on it", func(t *T, d string) {
		for _, n := range []string{"p", "q"} {
			must(t, os.Mkdir(d+"/"+n, 0o777))
			must(t, unix.Chmod(d+"/"+n, 0o777))
		}
		must(t, os.Mkdir(d+"/p/dir", 0o555))
		must(t, os.Chown(d+"/p/dir", 1001, 1001))
		asUser(t, func() {
			wantErr(t, "new parent", unix.Rename(d+"/p/dir", d+"/q/dir"), unix.EACCES)
			wantErr(t, "same parent", unix.Rename(d+"/p/dir", d+"/p/new"), 0)
		})
	}},
}

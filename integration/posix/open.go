package posix

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

var openCases = []namedCase{
	{"errors", func(t *T, d string) {
		f, l, loop := d+"/f", d+"/l", d+"/loop"
		touch(t, f, 0o644)
		must(t, os.Symlink("f", l))
		must(t, os.Symlink("loop", loop))
		must(t, unix.Mkfifo(d+"/fifo", 0o644))
		for _, c := range []struct {
			name  string
			flags int
			want  syscall.Errno
		}{
			{d + "/none", unix.O_RDONLY, unix.ENOENT},
			{d + "/none/x", unix.O_CREAT, unix.ENOENT},
			{d + "/none/x", unix.O_RDONLY, unix.ENOENT},
			{f + "/x", unix.O_RDONLY, unix.ENOTDIR},
			{f + "/x", unix.O_CREAT, unix.ENOTDIR},
			{f, unix.O_CREAT | unix.O_EXCL, unix.EEXIST},
			{l, unix.O_CREAT | unix.O_EXCL, unix.EEXIST},
			{f, unix.O_CREAT, 0},
			{f, unix.O_DIRECTORY, unix.ENOTDIR},
			{d, unix.O_WRONLY, unix.EISDIR},
			{d, unix.O_RDWR, unix.EISDIR},
			{d, unix.O_RDONLY | unix.O_DIRECTORY, 0},
			{d, unix.O_CREAT, unix.EISDIR},
			{l, unix.O_NOFOLLOW, unix.ELOOP},
			{loop, unix.O_RDONLY, unix.ELOOP},
			{d + "/" + long256, unix.O_CREAT, unix.ENAMETOOLONG},
			{d + "/" + long256, unix.O_RDONLY, unix.ENAMETOOLONG},
			{d + "/" + long255, unix.O_CREAT, 0},
			{d + "/" + strings.Repeat("x/", 2100) + "x", unix.O_RDONLY, unix.ENAMETOOLONG},
			{d + "/fifo", unix.O_WRONLY | unix.O_NONBLOCK, unix.ENXIO},
			{f + "/", unix.O_RDONLY, unix.ENOTDIR},
			{d + "/new/", unix.O_CREAT, unix.EISDIR},
		} {
			wantErr(t, fmt.Sprintf("open(%.40s, %#x)", strings.TrimPrefix(c.name, d), c.flags), openErr(c.name, c.flags, 0o644), c.want)
		}
	}},
	{"create: mode, umask, owner, times", func(t *T, d string) {
		before := lstat(t, d)
		as(t, 1001, 1002, nil, func() {
			unix.Umask(0o027) // of this thread
			defer unix.Umask(0o022)
			must(t, openErr(d+"/f", unix.O_CREAT|unix.O_EXCL, 0o6777))
		})
		st := lstat(t, d+"/f")
		if st.Mode != unix.S_IFREG|0o6750 && st.Mode != unix.S_IFREG|0o4750 {
			t.Errorf("mode %o", st.Mode)
		}
		if st.Uid != 1001 || st.Gid != 1002 || st.Size != 0 || st.Nlink != 1 || st.Blocks != 0 {
			t.Errorf("stat %+v", st)
		}
		after := lstat(t, d)
		if !later(after.Mtim, before.Mtim) || !later(after.Ctim, before.Ctim) {
			t.Error("the directory's times did not move")
		}
	}},
	{"setgid directory gives its group", func(t *T, d string) {
		must(t, os.Chown(d, 0, 1005))
		must(t, unix.Chmod(d, 0o2777))
		as(t, 1001, 1002, nil, func() {
			must(t, openErr(d+"/f", unix.O_CREAT, 0o644))
			must(t, os.Mkdir(d+"/sub", 0o755))
			must(t, os.Symlink("x", d+"/link"))
		})
		for name, mode := range map[string]uint32{"f": 0o644, "sub": 0o2755} {
			if st := lstat(t, d+"/"+name); st.Gid != 1005 || st.Mode&0o7777 != mode {
				t.Errorf("%s has group %d and mode %o", name, st.Gid, st.Mode&0o7777)
			}
		}
		if st := lstat(t, d+"/link"); st.Gid != 1005 {
			t.Errorf("link has group %d", st.Gid)
		}
	}},
	{"O_TRUNC cuts and moves times", func(t *T, d string) {
		write(t, d+"/f", "hello")
		before := lstat(t, d+"/f")
		must(t, openErr(d+"/f", unix.O_WRONLY|unix.O_TRUNC, 0))
		after := lstat(t, d+"/f")
		if after.Size != 0 || !later(after.Mtim, before.Mtim) || !later(after.Ctim, before.Ctim) {
			t.Errorf("after O_TRUNC: %+v", after)
		}
		wantText(t, d+"/f", "")
	}},
	{"O_TRUNC of an empty file moves times", func(t *T, d string) {
		write(t, d+"/f", "")
		before := lstat(t, d+"/f")
		must(t, openErr(d+"/f", unix.O_WRONLY|unix.O_TRUNC, 0))
		if after := lstat(t, d+"/f"); !later(after.Mtim, before.Mtim) || !later(after.Ctim, before.Ctim) {
			t.Errorf("after O_TRUNC: %+v", after)
		}
	}},
	{"unlinked but open", func(t *T, d string) {
		write(t, d+"/f", "still here")
		fd, err := unix.Open(d+"/f", unix.O_RDWR, 0)
		must(t, err)
		must(t, os.Remove(d+"/f"))
		b := make([]byte, 20)
		n, err := unix.Pread(fd, b, 0)
		if err != nil || string(b[:n]) != "still here" {
			t.Errorf("read %q, %v", b[:n], err)
		}
		_, err = unix.Pwrite(fd, []byte("SINCE"), 10)
		must(t, err)
		n, _ = unix.Pread(fd, b, 0)
		if string(b[:n]) != "still hereSINCE" {
			t.Errorf("read %q", b[:n])
		}
		var st unix.Stat_t
		must(t, unix.Fstat(fd, &st))
		if st.Nlink != 0 || st.Size != 15 {
			t.Errorf("nlink %d, size %d", st.Nlink, st.Size)
		}
		must(t, unix.Ftruncate(fd, 3))
		must(t, unix.Fchmod(fd, 0o600))
		must(t, unix.Fsync(fd))
		must(t, unix.Close(fd))
	}},
	{"one descriptor for reading, one for writing", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		r, err := unix.Open(d+"/f", unix.O_RDONLY, 0)
		must(t, err)
		w, err := unix.Open(d+"/f", unix.O_WRONLY, 0)
		must(t, err)
		_, err = unix.Write(r, []byte("x"))
		wantErr(t, "write to a reading descriptor", err, unix.EBADF)
		_, err = unix.Read(w, make([]byte, 1))
		wantErr(t, "read from a writing descriptor", err, unix.EBADF)
		_, err = unix.Write(w, []byte("seen"))
		must(t, err)
		b := make([]byte, 10)
		if n, err := unix.Read(r, b); err != nil || string(b[:n]) != "seen" {
			t.Errorf("read %q, %v", b[:n], err)
		}
		must(t, unix.Close(r))
		must(t, unix.Close(w))
	}},
	{"special files", func(t *T, d string) {
		for name, mode := range map[string]uint32{"fifo": unix.S_IFIFO, "sock": unix.S_IFSOCK, "chr": unix.S_IFCHR, "blk": unix.S_IFBLK, "reg": unix.S_IFREG} {
			dev := 0
			if mode == unix.S_IFCHR || mode == unix.S_IFBLK {
				dev = int(unix.Mkdev(1, 7))
			}
			must(t, unix.Mknod(d+"/"+name, mode|0o644, dev))
			st := lstat(t, d+"/"+name)
			if st.Mode != mode|0o644 || st.Rdev != uint64(dev) || st.Size != 0 {
				t.Errorf("%s: mode %o, rdev %x", name, st.Mode, st.Rdev)
			}
		}
		asUser(t, func() {
			wantErr(t, "mknod of a device by a user", unix.Mknod(d+"/no", unix.S_IFCHR|0o644, int(unix.Mkdev(1, 3))), unix.EPERM)
			wantErr(t, "mkfifo by a user", unix.Mkfifo(d+"/mine", 0o600), 0)
		})
		wantErr(t, "mknod over a name", unix.Mknod(d+"/fifo", unix.S_IFIFO|0o644, 0), unix.EEXIST)
		done := make(chan string)
		go func() {
			b, _ := os.ReadFile(d + "/fifo")
			done <- string(b)
		}()
		must(t, os.WriteFile(d+"/fifo", []byte("through"), 0))
		if s := <-done; s != "through" {
			t.Errorf("fifo gave %q", s)
		}
	}},
}

var tmpfileCases = []namedCase{
	{"O_TMPFILE, linked and not", func(t *T, d string) {
		fd, err := unix.Open(d, unix.O_TMPFILE|unix.O_RDWR, 0o640)
		must(t, err)
		defer unix.Close(fd)
		_, err = unix.Write(fd, []byte("temporary"))
		must(t, err)
		if entries, _ := os.ReadDir(d); len(entries) != 0 {
			t.Errorf("it has a name: %v", entries)
		}
		must(t, unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, d+"/named", unix.AT_SYMLINK_FOLLOW))
		wantText(t, d+"/named", "temporary")
		wantMode(t, d+"/named", 0o640)
		if st := lstat(t, d+"/named"); st.Nlink != 1 {
			t.Errorf("nlink %d", st.Nlink)
		}
		lost, err := unix.Open(d, unix.O_TMPFILE|unix.O_RDWR|unix.O_EXCL, 0o600)
		must(t, err)
		wantErr(t, "linking an O_EXCL temporary file", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", lost),
			unix.AT_FDCWD, d+"/never", unix.AT_SYMLINK_FOLLOW), unix.ENOENT)
		must(t, unix.Close(lost))
		wantErr(t, "O_TMPFILE read only", openErr(d, unix.O_TMPFILE|unix.O_RDONLY, 0o600), unix.EINVAL)
	}},
}

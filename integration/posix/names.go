package posix

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

var nameCases = []namedCase{
	{"mkdir", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		must(t, os.Symlink("none", d+"/dangling"))
		before := lstat(t, d)
		for _, c := range []struct {
			name string
			want syscall.Errno
		}{
			{"/sub", 0}, {"/sub", unix.EEXIST}, {"/f", unix.EEXIST}, {"/dangling", unix.EEXIST},
			{"/f/x", unix.ENOTDIR}, {"/none/x", unix.ENOENT}, {"/" + long256, unix.ENAMETOOLONG},
			{"/" + long255, 0}, {"/sub/.", unix.EEXIST}, {"/slash/", 0},
		} {
			wantErr(t, fmt.Sprintf("mkdir(%.20s)", c.name), unix.Mkdir(d+c.name, 0o777), c.want)
		}
		wantMode(t, d+"/sub", 0o755)
		if !later(lstat(t, d).Mtim, before.Mtim) {
			t.Error("the parent's mtime did not move")
		}
		must(t, unix.Mkdir(d+"/sticky", 0o1777))
		wantMode(t, d+"/sticky", 0o1755)
	}},
	{"rmdir", func(t *T, d string) {
		must(t, os.Mkdir(d+"/full", 0o755))
		touch(t, d+"/full/f", 0o644)
		must(t, os.Mkdir(d+"/empty", 0o755))
		must(t, os.Symlink("empty", d+"/link"))
		for _, c := range []struct {
			name string
			want syscall.Errno
		}{
			{"/full", unix.ENOTEMPTY}, {"/full/f", unix.ENOTDIR}, {"/none", unix.ENOENT}, {"/link", unix.ENOTDIR},
			{"/empty/.", unix.EINVAL}, {"/empty/..", unix.ENOTEMPTY}, {"/full/f/x", unix.ENOTDIR},
			{"/" + long256, unix.ENAMETOOLONG}, {"/empty", 0}, {"/empty", unix.ENOENT},
		} {
			wantErr(t, fmt.Sprintf("rmdir(%.20s)", c.name), unix.Rmdir(d+c.name), c.want)
		}
	}},
	{"removed directory in use", func(t *T, d string) {
		must(t, os.Mkdir(d+"/gone", 0o755))
		fd, err := unix.Open(d+"/gone", unix.O_DIRECTORY, 0)
		must(t, err)
		defer unix.Close(fd)
		must(t, unix.Rmdir(d+"/gone"))
		fd2, err := unix.Openat(fd, "x", unix.O_CREAT|unix.O_WRONLY, 0o644)
		wantErr(t, "create in a removed directory", err, unix.ENOENT)
		if err == nil {
			unix.Close(fd2)
		}
		wantErr(t, "mkdir in a removed directory", unix.Mkdirat(fd, "x", 0o755), unix.ENOENT)
	}},
	{"unlink", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		must(t, os.Link(d+"/f", d+"/g"))
		must(t, os.Mkdir(d+"/sub", 0o755))
		must(t, os.Symlink("f", d+"/l"))
		for _, c := range []struct {
			name string
			want syscall.Errno
		}{
			{"/none", unix.ENOENT}, {"/f/x", unix.ENOTDIR}, {"/sub", unix.EISDIR}, {"/" + long256, unix.ENAMETOOLONG},
			{"/l", 0}, {"/f", 0}, {"/f", unix.ENOENT},
		} {
			wantErr(t, fmt.Sprintf("unlink(%.20s)", c.name), unix.Unlink(d+c.name), c.want)
		}
		if st := lstat(t, d+"/g"); st.Nlink != 1 {
			t.Errorf("nlink %d after unlink of one of two", st.Nlink)
		}
	}},
	{"link", func(t *T, d string) {
		write(t, d+"/f", "text")
		must(t, os.Mkdir(d+"/sub", 0o755))
		must(t, os.Symlink("f", d+"/l"))
		before := lstat(t, d+"/f")
		for _, c := range []struct {
			from, to string
			want     syscall.Errno
		}{
			{"/f", "/g", 0}, {"/f", "/g", unix.EEXIST}, {"/f", "/sub", unix.EEXIST}, {"/none", "/x", unix.ENOENT},
			{"/sub", "/x", unix.EPERM}, {"/f", "/none/x", unix.ENOENT}, {"/f", "/g/x", unix.ENOTDIR},
			{"/f", "/" + long256, unix.ENAMETOOLONG}, {"/l", "/l2", 0},
		} {
			wantErr(t, fmt.Sprintf("link(%s, %.20s)", c.from, c.to), unix.Link(d+c.from, d+c.to), c.want)
		}
		a, b := lstat(t, d+"/f"), lstat(t, d+"/g")
		if a.Ino != b.Ino || a.Nlink != 2 || !later(a.Ctim, before.Ctim) || a.Mtim != before.Mtim {
			t.Errorf("after link: %+v, before %+v", a, before)
		}
		if lstat(t, d+"/l2").Mode&unix.S_IFMT != unix.S_IFLNK {
			t.Error("link followed the symbolic link")
		}
		write(t, d+"/g", "other")
		wantText(t, d+"/f", "other")
		must(t, os.Remove(d+"/f"))
		wantText(t, d+"/g", "other")
	}},
	{"symlink", func(t *T, d string) {
		target := strings.Repeat("t", 4095)
		must(t, unix.Symlink(target, d+"/long"))
		if got, err := os.Readlink(d + "/long"); err != nil || got != target {
			t.Errorf("readlink: %d bytes, %v", len(got), err)
		}
		if st := lstat(t, d+"/long"); st.Size != 4095 || st.Mode != unix.S_IFLNK|0o777 {
			t.Errorf("size %d, mode %o", st.Size, st.Mode)
		}
		wantErr(t, "symlink over 4095 bytes", unix.Symlink(target+"t", d+"/x"), unix.ENAMETOOLONG)
		wantErr(t, "symlink to nothing", unix.Symlink("", d+"/x"), unix.ENOENT)
		wantErr(t, "symlink over a name", unix.Symlink("a", d+"/long"), unix.EEXIST)
		touch(t, d+"/f", 0o644)
		_, err := unix.Readlink(d+"/f", make([]byte, 10))
		wantErr(t, "readlink of a file", err, unix.EINVAL)
		must(t, os.Mkdir(d+"/sub", 0o755))
		must(t, os.Symlink("../f", d+"/sub/up"))
		write(t, d+"/sub/up", "via link")
		wantText(t, d+"/f", "via link")
	}},
	{"names of any bytes", func(t *T, d string) {
		names := []string{"\x01", "\xff\xfe", "a b", "ä", "a\nb", "%", "-rf", "...", "*", "\\", long255, ".ogw", ".ogw~x"}
		for _, n := range names {
			if n == ".ogw~x" && !t.has(Own) {
				continue
			} else if n == ".ogw~x" { // the reserved prefix must decode to something
				wantErr(t, "a name with the reserved prefix", openErr(d+"/"+n, unix.O_CREAT|unix.O_WRONLY, 0o644), unix.EINVAL)
				continue
			}
			write(t, d+"/"+n, n)
		}
		names = names[:len(names)-1]
		entries, err := os.ReadDir(d)
		must(t, err)
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
			wantText(t, d+"/"+e.Name(), e.Name())
		}
		slices.Sort(got)
		slices.Sort(names)
		if !slices.Equal(got, names) {
			t.Errorf("listed %q, want %q", got, names)
		}
		for _, n := range got {
			must(t, os.Remove(d+"/"+n))
		}
	}},
}

var renameCases = []namedCase{
	{"errors", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		must(t, os.MkdirAll(d+"/dir/sub", 0o755))
		must(t, os.MkdirAll(d+"/full/x", 0o755))
		for _, c := range []struct {
			from, to string
			want     syscall.Errno
		}{
			{"/none", "/x", unix.ENOENT}, {"/f", "/none/x", unix.ENOENT}, {"/f", "/dir", unix.EISDIR},
			{"/dir", "/f", unix.ENOTDIR}, {"/dir", "/full", unix.ENOTEMPTY}, {"/dir", "/dir/sub/x", unix.EINVAL},
			{"/f", "/f/x", unix.ENOTDIR}, {"/f/x", "/y", unix.ENOTDIR}, {"/f", "/" + long256, unix.ENAMETOOLONG},
			{"/" + long256, "/y", unix.ENAMETOOLONG}, {"/f", "/f", 0}, {"/dir", "/dir", 0},
			{"/dir/sub", "/dir", unix.ENOTEMPTY}, {"/dir/.", "/x", unix.EBUSY}, {"/f", "/f2", 0},
		} {
			wantErr(t, fmt.Sprintf("rename(%.20s, %.20s)", c.from, c.to), unix.Rename(d+c.from, d+c.to), c.want)
		}
	}},
	{"replaces a file", func(t *T, d string) {
		write(t, d+"/a", "A")
		write(t, d+"/b", "B")
		fd, err := unix.Open(d+"/b", unix.O_RDONLY, 0)
		must(t, err)
		defer unix.Close(fd)
		ino := lstat(t, d+"/a").Ino
		must(t, os.Rename(d+"/a", d+"/b"))
		wantText(t, d+"/b", "A")
		if lstat(t, d+"/b").Ino != ino {
			t.Error("the inode did not move")
		}
		wantErr(t, "the old name", openErr(d+"/a", unix.O_RDONLY, 0), unix.ENOENT)
		b := make([]byte, 4)
		if n, err := unix.Read(fd, b); err != nil || string(b[:n]) != "B" {
			t.Errorf("the replaced file reads %q, %v", b[:n], err)
		}
	}},
	{"replaces an empty directory", func(t *T, d string) {
		must(t, os.MkdirAll(d+"/a/x", 0o755))
		must(t, os.Mkdir(d+"/b", 0o755))
		must(t, unix.Rename(d+"/a", d+"/b"))
		if _, err := os.Stat(d + "/b/x"); err != nil {
			t.Error(err)
		}
	}},
	{"moves a directory with all below", func(t *T, d string) {
		must(t, os.MkdirAll(d+"/from/x/y", 0o755))
		write(t, d+"/from/x/y/f", "deep")
		must(t, os.MkdirAll(d+"/to", 0o755))
		fd, err := unix.Open(d+"/from/x", unix.O_DIRECTORY, 0)
		must(t, err)
		defer unix.Close(fd)
		must(t, unix.Rename(d+"/from/x", d+"/to/z"))
		wantText(t, d+"/to/z/y/f", "deep")
		f, err := unix.Openat(fd, "../z/y/f", unix.O_RDONLY, 0)
		if err != nil {
			t.Errorf("through the open directory: %v", err)
		} else {
			unix.Close(f)
		}
	}},
	{"two links of one inode stay", func(t *T, d string) {
		write(t, d+"/a", "x")
		must(t, os.Link(d+"/a", d+"/b"))
		must(t, unix.Rename(d+"/a", d+"/b")) // POSIX: does nothing
		if lstat(t, d+"/a").Nlink != 2 || lstat(t, d+"/b").Nlink != 2 {
			t.Error("a link went")
		}
	}},
	{"times", func(t *T, d string) {
		must(t, os.Mkdir(d+"/p", 0o755))
		must(t, os.Mkdir(d+"/q", 0o755))
		touch(t, d+"/p/f", 0o644)
		p, q := lstat(t, d+"/p"), lstat(t, d+"/q")
		must(t, unix.Rename(d+"/p/f", d+"/q/f"))
		if !later(lstat(t, d+"/p").Mtim, p.Mtim) || !later(lstat(t, d+"/q").Mtim, q.Mtim) {
			t.Error("a parent's mtime did not move")
		}
		// Over a file, too, and what it replaced has one link less.
		touch(t, d+"/p/g", 0o644)
		must(t, unix.Link(d+"/q/f", d+"/other"))
		p, q = lstat(t, d+"/p"), lstat(t, d+"/q")
		was := lstat(t, d+"/other")
		tick(t)
		must(t, unix.Rename(d+"/p/g", d+"/q/f"))
		check(t, later(lstat(t, d+"/p").Mtim, p.Mtim) && later(lstat(t, d+"/q").Mtim, q.Mtim), "a rename over a file moves no mtime")
		is := lstat(t, d+"/other")
		check(t, is.Nlink == 1 && later(is.Ctim, was.Ctim), "what a rename replaced: %d links, ctime %v, was %v", is.Nlink, is.Ctim, was.Ctim)
	}},
}

var dirCases = []namedCase{
	{"listing, types and numbers", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		must(t, os.Mkdir(d+"/dir", 0o755))
		must(t, os.Symlink("f", d+"/link"))
		must(t, unix.Mkfifo(d+"/fifo", 0o644))
		for _, k := range []string{sock, chr, blk} {
			makeKind(t, k, d+"/"+k, 0o644)
		}
		want := map[string]uint8{".": unix.DT_DIR, "..": unix.DT_DIR, "f": unix.DT_REG, "dir": unix.DT_DIR, "link": unix.DT_LNK, "fifo": unix.DT_FIFO,
			sock: unix.DT_SOCK, chr: unix.DT_CHR, blk: unix.DT_BLK}
		fd, err := unix.Open(d, unix.O_DIRECTORY, 0)
		must(t, err)
		defer unix.Close(fd)
		for _, e := range getdents(t, fd, 4096) {
			if typ, ok := want[e.name]; !ok || typ != e.typ {
				t.Errorf("entry %q of type %d, want %d", e.name, e.typ, typ)
			}
			delete(want, e.name)
			if e.name != ".." && lstat(t, d+"/"+e.name).Ino != e.ino {
				t.Errorf("%s: d_ino differs from st_ino", e.name)
			}
		}
		if len(want) > 0 {
			t.Errorf("not listed: %v", want)
		}
	}},
	{"every size of buffer, and deletion while listing", func(t *T, d string) {
		const n = 700
		for i := range n {
			touch(t, fmt.Sprintf("%s/entry-%04d-%s", d, i, strings.Repeat("x", i%40)), 0o644)
		}
		for _, size := range []int{300, 1000, 32768, 1 << 20} {
			fd, err := unix.Open(d, unix.O_DIRECTORY, 0)
			must(t, err)
			if got := getdents(t, fd, size); len(got) != n+2 {
				t.Errorf("buffer %d: %d entries, want %d", size, len(got), n+2)
			}
			unix.Close(fd)
		}
		fd, err := unix.Open(d, unix.O_DIRECTORY, 0)
		must(t, err)
		defer unix.Close(fd)
		seen := map[string]int{}
		buf := make([]byte, 600)
		for {
			k, err := unix.Getdents(fd, buf)
			must(t, err)
			if k == 0 {
				break
			}
			for _, e := range parseDents(buf[:k]) {
				seen[e.name]++
				if e.name[0] != '.' {
					must(t, os.Remove(filepath.Join(d, e.name)))
				}
			}
		}
		if len(seen) != n+2 {
			t.Errorf("%d entries seen while each was removed, want %d", len(seen), n+2)
		}
		for name, k := range seen {
			if k != 1 {
				t.Errorf("%s listed %d times", name, k)
			}
		}
	}},
	{"seekdir and rewinddir", func(t *T, d string) {
		for i := range 300 {
			touch(t, fmt.Sprintf("%s/e%03d", d, i), 0o644)
		}
		fd, err := unix.Open(d, unix.O_DIRECTORY, 0)
		must(t, err)
		defer unix.Close(fd)
		all := getdents(t, fd, 1000)
		for i := 0; i < len(all)-1; i += 17 {
			if _, err := unix.Seek(fd, all[i].off, unix.SEEK_SET); err != nil {
				t.Fatal(err)
			}
			rest := getdents(t, fd, 500)
			if len(rest) != len(all)-i-1 || rest[0].name != all[i+1].name {
				t.Fatalf("after seek to behind %s: %d entries, first %v", all[i].name, len(rest), rest[:min(1, len(rest))])
			}
		}
		// Reading from the start again leaves what telldir told right.
		_, err = unix.Seek(fd, 0, unix.SEEK_SET)
		must(t, err)
		getdents(t, fd, 500)
		_, err = unix.Seek(fd, all[250].off, unix.SEEK_SET)
		must(t, err)
		rest := getdents(t, fd, 500)
		check(t, len(rest) == len(all)-251 && rest[0].name == all[251].name, "after a second start: %d entries, first %v", len(rest), rest[:min(1, len(rest))])
		// What comes after opendir shows after rewinddir.
		touch(t, d+"/zzz", 0o644)
		must(t, os.Remove(d+"/e000"))
		_, err = unix.Seek(fd, 0, unix.SEEK_SET)
		must(t, err)
		again := getdents(t, fd, 4096)
		seen := map[string]int{}
		for _, e := range again {
			seen[e.name]++
		}
		check(t, len(again) == len(all) && seen["zzz"] == 1 && seen["e000"] == 0, "after rewind: %d entries, %d new, %d removed", len(again), seen["zzz"], seen["e000"])
	}},
	{"directory is not readable as a file", func(t *T, d string) {
		fd, err := unix.Open(d, unix.O_RDONLY, 0)
		must(t, err)
		defer unix.Close(fd)
		_, err = unix.Read(fd, make([]byte, 10))
		wantErr(t, "read of a directory", err, unix.EISDIR)
		must(t, unix.Fsync(fd))
	}},
	{"statfs", func(t *T, d string) {
		var st unix.Statfs_t
		must(t, unix.Statfs(d, &st))
		if st.Namelen != 255 || st.Blocks == 0 || st.Bavail > st.Blocks || t.has(Own) && st.Type != unix.FUSE_SUPER_MAGIC {
			t.Errorf("%+v", st)
		}
	}},
}

type dent struct {
	name string
	ino  uint64
	off  int64
	typ  uint8
}

// getdents lists from where fd stands, with a buffer of that size.
func getdents(t *T, fd, size int) (all []dent) {
	t.Helper()
	buf := make([]byte, size)
	for {
		n, err := unix.Getdents(fd, buf)
		must(t, err)
		if n == 0 {
			return all
		}
		all = append(all, parseDents(buf[:n])...)
	}
}

func parseDents(b []byte) (list []dent) {
	le := func(b []byte) (v uint64) {
		for i := len(b) - 1; i >= 0; i-- {
			v = v<<8 | uint64(b[i])
		}
		return v
	}
	for len(b) > 0 {
		reclen := int(le(b[16:18]))
		name, _, _ := strings.Cut(string(b[19:reclen]), "\x00")
		list = append(list, dent{name, le(b[:8]), int64(le(b[8:16])), b[18]})
		b = b[reclen:]
	}
	return list
}

func renameFlags(t *T, d string) {
	at := func(from, to string, flags uint) error {
		return unix.Renameat2(unix.AT_FDCWD, d+from, unix.AT_FDCWD, d+to, flags)
	}
	write(t, d+"/a", "A")
	write(t, d+"/b", "B")
	must(t, os.MkdirAll(d+"/dir/x", 0o755))
	wantErr(t, "NOREPLACE over a file", at("/a", "/b", unix.RENAME_NOREPLACE), unix.EEXIST)
	wantErr(t, "NOREPLACE", at("/a", "/c", unix.RENAME_NOREPLACE), 0)
	wantErr(t, "EXCHANGE with nothing", at("/c", "/none", unix.RENAME_EXCHANGE), unix.ENOENT)
	wantErr(t, "EXCHANGE of files", at("/b", "/c", unix.RENAME_EXCHANGE), 0)
	wantText(t, d+"/b", "A")
	wantText(t, d+"/c", "B")
	wantErr(t, "EXCHANGE of a file and a directory", at("/b", "/dir", unix.RENAME_EXCHANGE), 0)
	wantText(t, d+"/dir", "A")
	if _, err := os.Stat(d + "/b/x"); err != nil {
		t.Error(err)
	}
	wantErr(t, "EXCHANGE with a descendant", at("/b", "/b/x", unix.RENAME_EXCHANGE), unix.EINVAL)
	if t.has(Own) {
		wantErr(t, "WHITEOUT over a file", at("/c", "/dir", unix.RENAME_WHITEOUT|unix.RENAME_NOREPLACE), unix.EEXIST)
		wantErr(t, "WHITEOUT with EXCHANGE", at("/c", "/dir", unix.RENAME_WHITEOUT|unix.RENAME_EXCHANGE), unix.EINVAL)
		wantErr(t, "WHITEOUT", at("/c", "/d", unix.RENAME_WHITEOUT), 0)
		wantText(t, d+"/d", "B")
		var st unix.Stat_t
		must(t, unix.Lstat(d+"/c", &st))
		check(t, st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0, "the whiteout has mode %o, device %d", st.Mode, st.Rdev)
		must(t, os.Remove(d+"/c"))
		must(t, os.Rename(d+"/d", d+"/c"))
	}
	wantErr(t, "NOREPLACE with EXCHANGE", at("/c", "/d", unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE), unix.EINVAL)
}

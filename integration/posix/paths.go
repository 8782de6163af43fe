package posix

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// pathCases are the errors of path resolution, the same for every call.
var pathCases = []namedCase{
	{"bad component in front", badPrefixes},
	{"names too long", longNames},
	{"last component", lastComponents},
	{"trailing slash", trailingSlashes},
	{"search right", searchRights},
	{"chains of symlinks", symlinkChains},
}

func badPrefixes(t *T, d string) {
	want := map[string]syscall.Errno{"missing": unix.ENOENT, "loop": unix.ELOOP, "tofile": unix.ENOTDIR}
	must(t, unix.Symlink("loop", d+"/loop"))
	must(t, unix.Symlink("src", d+"/tofile"))
	for i, k := range kinds {
		if k == dir {
			continue
		}
		name := fmt.Sprintf("k%d", i)
		makeKind(t, k, d+"/"+name, 0o777)
		if want[name] = unix.ENOTDIR; k == lnk {
			want[name] = unix.ENOENT
		}
	}
	fresh(t, d)
	for _, o := range t.pathOps() {
		for name, no := range want {
			wantErr(t, o.name+"("+name+"/x)", o.call(d, d+"/"+name+"/x"), no)
			wantErr(t, o.name+"("+name+"/x/y)", o.call(d, d+"/"+name+"/x/y"), no)
		}
		wantErr(t, o.name+"(\"\")", o.call(d, ""), unix.ENOENT)
		wantErr(t, o.name+"(name/x), a name of 256", o.call(d, d+"/"+long256+"/x"), unix.ENAMETOOLONG)
	}
}

func longNames(t *T, d string) {
	// d, then components "/./" up to the wanted length.
	path := func(length int, name string) string {
		rest := length - len(d) - len(name)
		return d + strings.Repeat("/.", rest/2-1) + strings.Repeat("/", 2+rest%2) + name
	}
	for _, o := range t.pathOps() {
		wantErr(t, o.name+", a name of 256", o.call(d, d+"/"+long256), unix.ENAMETOOLONG)
		wantErr(t, o.name+", a path of 4096", o.call(d, path(4096, "x")), unix.ENAMETOOLONG)
		for what, p := range map[string]string{"a name of 255": d + "/" + long255, "a path of 4095": path(4095, "y")} {
			fresh(t, d)
			if !o.makes && o.onFile {
				touch(t, p, 0o666)
			} else if !o.makes {
				must(t, unix.Mkdir(p, 0o777))
			}
			as(t, 0, 0, nil, func() { wantErr(t, o.name+", "+what, o.call(d, p), 0) })
			removeKind(t, p)
		}
	}
}

func lastComponents(t *T, d string) {
	p := d + "/it"
	for _, o := range t.pathOps() {
		if !o.makes {
			fresh(t, d)
			if want := unix.ENOENT; o.name != "rename to" {
				wantErr(t, o.name+" of nothing", o.call(d, p), want)
			}
		}
		for _, k := range kinds {
			fresh(t, d)
			makeKind(t, k, p, 0o777)
			if want, ok := o.onKind(k); ok {
				as(t, 0, 0, nil, func() { wantErr(t, o.name+" of a "+k, o.call(d, p), want) })
			}
			removeKind(t, p)
		}
		fresh(t, d)
		must(t, unix.Symlink("it", p))
		switch {
		case o.makes:
			wantErr(t, o.name+" of a loop", o.call(d, p), unix.EEXIST)
		case o.follow:
			wantErr(t, o.name+" of a loop", o.call(d, p), unix.ELOOP)
		}
		removeKind(t, p)
	}
}

// trailingSlashes: "name/" means a directory.
func trailingSlashes(t *T, d string) {
	want := map[string]syscall.Errno{
		"open(O_CREAT|O_EXCL)": unix.EISDIR, "mkdir": 0, "rename to": unix.ENOTDIR, "rename(NOREPLACE) to": unix.ENOTDIR,
	}
	for _, o := range t.pathOps() {
		fresh(t, d)
		no, special := want[o.name]
		if !special {
			no = unix.ENOENT
		}
		as(t, 0, 0, nil, func() { wantErr(t, o.name+"(nothing/)", o.call(d, d+"/nothing/"), no) })
		removeKind(t, d+"/nothing")
		if o.makes {
			continue
		}
		fresh(t, d)
		touch(t, d+"/file", 0o777)
		wantErr(t, o.name+"(file/)", o.call(d, d+"/file/"), unix.ENOTDIR)
		must(t, unix.Unlink(d+"/file"))
		if !o.onDir || strings.HasPrefix(o.name, "exchange") {
			continue
		}
		must(t, unix.Mkdir(d+"/dir", 0o777))
		as(t, 0, 0, nil, func() { wantErr(t, o.name+"(dir/)", o.call(d, d+"/dir/"), 0) })
		must(t, os.RemoveAll(d+"/dir"))
	}
}

// searchRights takes the right to search from a directory of the path.
func searchRights(t *T, d string) {
	must(t, os.MkdirAll(d+"/a/b/c", 0o777))
	for _, p := range []string{"/a", "/a/b", "/a/b/c"} {
		must(t, unix.Chmod(d+p, 0o777))
	}
	must(t, unix.Symlink("a/b/c", d+"/to"))
	fresh(t, d)
	class := []struct {
		name     string
		uid, gid int
		groups   []uint32
		owner    int
		group    int
		bit      uint32
	}{
		{"owner", userA, groupA, nil, userA, groupB, 0o100},
		{"group", userA, groupA, nil, userB, groupA, 0o010},
		{"supplementary group", userA, groupA, []uint32{groupS}, userB, groupS, 0o010},
		{"others", userA, groupA, nil, userB, groupB, 0o001},
	}
	for _, o := range t.pathOps() {
		if !o.user {
			continue
		}
		for _, c := range class {
			must(t, unix.Chown(d+"/a/b", c.owner, c.group))
			must(t, unix.Chmod(d+"/a/b", 0o777&^c.bit))
			as(t, c.uid, c.gid, c.groups, func() {
				for _, p := range []string{"/a/b/x", "/a/b/c/x", "/to/x", "/a/b/../x"} {
					wantErr(t, fmt.Sprintf("%s(%s), %s cannot search", o.name, p, c.name), o.call(d, d+p), unix.EACCES)
				}
			})
		}
	}
	must(t, unix.Chmod(d+"/a/b", 0))
	wantErr(t, "root searches everywhere", unix.Stat(d+"/a/b/c", new(unix.Stat_t)), 0)
}

// maxSymlinks is how many Linux follows in one path.
const maxSymlinks = 40

func symlinkChains(t *T, d string) {
	touch(t, d+"/l0", 0o666)
	for i := 1; i <= maxSymlinks+1; i++ {
		must(t, unix.Symlink(fmt.Sprintf("l%d", i-1), fmt.Sprintf("%s/l%d", d, i)))
	}
	for _, o := range t.pathOps() {
		if !o.follow || !o.onFile {
			continue
		}
		wantErr(t, fmt.Sprintf("%s through %d symlinks", o.name, maxSymlinks), o.call(d, fmt.Sprintf("%s/l%d", d, maxSymlinks)), 0)
		wantErr(t, o.name+" through one more", o.call(d, fmt.Sprintf("%s/l%d", d, maxSymlinks+1)), unix.ELOOP)
	}
	for _, length := range []int{1, 2, 59, 60, 61, 255, 256, 1000, 1023, 1024, 2048, 4000, 4095} {
		target := strings.Repeat("s", length)
		p := fmt.Sprintf("%s/len%d", d, length)
		must(t, unix.Symlink(target, p))
		got, err := os.Readlink(p)
		check(t, err == nil && got == target, "readlink of %d bytes: %d, %v", length, len(got), err)
		st := lstat(t, p)
		check(t, st.Size == int64(length), "size %d, want %d", st.Size, length)
		b := make([]byte, 10)
		n, err := unix.Readlink(p, b)
		check(t, err == nil && n == min(10, length), "readlink into 10 bytes: %d, %v", n, err)
	}
}

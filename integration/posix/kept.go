package posix

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	// keptReplacements is how often a file is replaced under its readers.
	keptReplacements = 3000
	// keptFiles is the size of the trees that two programs remove at once.
	keptFiles = 400
)

// keptCases: what has no name any more answers as long as somebody refers to
// it, by whatever.
var keptCases = []namedCase{
	{"a replaced file under its readers", func(t *T, d string) {
		replace(t, d)
	}},
	{"a removed directory, by descriptor", func(t *T, d string) {
		removedDir(t, d, unix.O_RDONLY)
	}},
	{"a removed directory, by O_PATH", func(t *T, d string) {
		removedDir(t, d, unix.O_PATH)
	}},
	{"a removed directory and those above it", func(t *T, d string) {
		must(t, os.MkdirAll(d+"/a/b/c", 0o755))
		fd, err := unix.Open(d+"/a/b/c", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		defer unix.Close(fd)
		must(t, os.RemoveAll(d+"/a"))
		var st unix.Stat_t
		for _, up := range []string{".", "..", "../..", "../../.."} {
			wantErr(t, "stat "+up, unix.Fstatat(fd, up, &st, 0), 0)
		}
		wantErr(t, "mkdir ../x", unix.Mkdirat(fd, "../x", 0o755), unix.ENOENT)
	}},
	{"a directory that a rename replaced", func(t *T, d string) {
		must(t, os.Mkdir(d+"/old", 0o711))
		must(t, os.Mkdir(d+"/new", 0o755))
		fd, err := unix.Open(d+"/old", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		defer unix.Close(fd)
		must(t, unix.Rename(d+"/new", d+"/old"))
		gone(t, fd, unix.S_IFDIR|0o711)
		wantErr(t, "create", createAt(fd, "x"), unix.ENOENT)
	}},
	{"a removed working directory", func(t *T, d string) {
		must(t, os.Mkdir(d+"/cwd", 0o755))
		c := exec.Command("/bin/sh", "-c", `rmdir ../cwd || exit 1
			for i in 1 2 3; do echo > f$i && exit 2; done 2>/dev/null
			stat -c %h . | grep -qx 0 || exit 3
			ls || exit 4
			cd .. && test -d . || exit 5`)
		c.Dir = d + "/cwd"
		out, err := c.CombinedOutput()
		check(t, err == nil && len(out) == 0, "a shell in its removed directory: %v %s", err, out)
	}},
	{"files of every kind, by O_PATH", func(t *T, d string) {
		makers := map[string]func(name string) error{
			"file":    func(n string) error { return os.WriteFile(n, []byte("text"), 0o640) },
			"fifo":    func(n string) error { return unix.Mkfifo(n, 0o640) },
			"socket":  func(n string) error { return unix.Mknod(n, unix.S_IFSOCK|0o640, 0) },
			"device":  func(n string) error { return unix.Mknod(n, unix.S_IFCHR|0o640, int(unix.Mkdev(1, 3))) },
			"symlink": func(n string) error { return os.Symlink("target", n) },
		}
		for kind, mk := range makers {
			name := d + "/" + kind
			must(t, mk(name))
			before := lstat(t, name)
			fd, err := unix.Open(name, unix.O_PATH|unix.O_NOFOLLOW, 0)
			must(t, err)
			must(t, unix.Unlink(name))
			gone(t, fd, before.Mode)
			proc := fmt.Sprintf("/proc/self/fd/%d", fd)
			switch kind {
			case "file":
				wantText(t, proc, "text")
				wantErr(t, "truncate", unix.Truncate(proc, 2), 0)
				wantText(t, proc, "te")
			case "symlink":
				b := make([]byte, 10)
				n, err := unix.Readlinkat(fd, "", b)
				check(t, err == nil && string(b[:n]) == "target", "readlink: %q, %v", b[:max(n, 0)], err)
			}
			if kind != "symlink" {
				wantErr(t, "chmod of a removed "+kind, unix.Chmod(proc, 0o600), 0)
				gone(t, fd, before.Mode&unix.S_IFMT|0o600)
			}
			must(t, unix.Close(fd))
		}
	}},
	{"a removed fifo that is open", func(t *T, d string) {
		must(t, unix.Mkfifo(d+"/fifo", 0o600))
		fd, err := unix.Open(d+"/fifo", unix.O_RDWR, 0)
		must(t, err)
		defer unix.Close(fd)
		must(t, unix.Unlink(d+"/fifo"))
		_, err = unix.Write(fd, []byte("x"))
		wantErr(t, "write", err, 0)
		_, err = unix.Read(fd, make([]byte, 1))
		wantErr(t, "read", err, 0)
		wantErr(t, "fchmod", unix.Fchmod(fd, 0o644), 0)
		gone(t, fd, unix.S_IFIFO|0o644)
	}},
	{"a removed socket that is connected", func(t *T, d string) {
		at := &unix.SockaddrUnix{Name: d + "/s"}
		if len(at.Name) > 100 {
			must(t, os.Symlink(d, "/tmp/"+fmt.Sprint(os.Getpid())))
			defer os.Remove("/tmp/" + fmt.Sprint(os.Getpid()))
			at.Name = "/tmp/" + fmt.Sprint(os.Getpid()) + "/s"
		}
		l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		must(t, err)
		defer unix.Close(l)
		must(t, unix.Bind(l, at))
		must(t, unix.Listen(l, 1))
		c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		must(t, err)
		defer unix.Close(c)
		must(t, unix.Connect(c, at))
		must(t, unix.Unlink(d+"/s"))
		_, err = unix.Write(c, []byte("x"))
		wantErr(t, "write", err, 0)
		wantErr(t, "connect", unix.Connect(c, at), unix.ENOENT)
	}},
	{"two programs remove one tree", func(t *T, d string) {
		makeTree(t, d+"/tree")
		together(t, [][]string{{"rm", "-rf", d + "/tree"}, {"rm", "-rf", d + "/tree"}})
		_, err := os.Lstat(d + "/tree")
		wantErr(t, "stat", err, unix.ENOENT)
	}},
	{"find beside the removal of its tree", func(t *T, d string) {
		makeTree(t, d+"/tree")
		together(t, [][]string{{"rm", "-rf", d + "/tree"}, {"find", d + "/tree", "-ignore_readdir_race", "-size", "+9"}})
	}},
}

// replace renames new files over a path while others open, stat and cut what is
// there: none of them may fail. OGW_REPLACE_CALLS is how many calls they make at
// the least.
func replace(t *T, d string) {
	calls, err := strconv.ParseInt(cmp.Or(os.Getenv("OGW_REPLACE_CALLS"), "0"), 10, 64)
	must(t, err)
	path := d + "/f"
	write(t, path, "0")
	var stop atomic.Bool
	var readers sync.WaitGroup
	acts := map[string]func() error{
		"open":     func() error { return openErr(path, unix.O_RDONLY, 0) },
		"O_TRUNC":  func() error { return openErr(path, unix.O_WRONLY|unix.O_TRUNC, 0) },
		"O_CREAT":  func() error { return openErr(path, unix.O_WRONLY|unix.O_CREAT, 0o644) },
		"stat":     func() error { var st unix.Stat_t; return unix.Stat(path, &st) },
		"truncate": func() error { return unix.Truncate(path, 1) },
		"chmod":    func() error { return unix.Chmod(path, 0o644) },
	}
	var done atomic.Int64
	for what, act := range acts {
		readers.Go(func() {
			for !stop.Load() {
				if !wantErr(t, what+" of a path that is replaced", act(), 0) {
					return
				}
				done.Add(1)
			}
		})
	}
	replaced := 0
	for ; replaced < keptReplacements || done.Load() < calls && !t.Failed(); replaced++ {
		name := fmt.Sprintf("%s/new%d", d, replaced%4)
		must(t, unix.Mknod(name, unix.S_IFREG|0o644, 0)) // nothing that a close makes durable
		must(t, unix.Rename(name, path))
	}
	stop.Store(true)
	readers.Wait()
	t.Logf("%d calls while the file was replaced %d times", done.Load(), replaced)
}

// removedDir removes a directory that somebody refers to.
func removedDir(t *T, d string, flags int) {
	must(t, os.Mkdir(d+"/x", 0o755))
	fd, err := unix.Open(d+"/x", flags|unix.O_DIRECTORY, 0)
	must(t, err)
	defer unix.Close(fd)
	must(t, os.Remove(d+"/x"))
	gone(t, fd, unix.S_IFDIR|0o755)
	proc := fmt.Sprintf("/proc/self/fd/%d", fd)
	wantErr(t, "chmod", unix.Chmod(proc, 0o700), 0)
	wantErr(t, "chown", unix.Chown(proc, 1, 2), 0)
	wantErr(t, "utimes", unix.UtimesNanoAt(unix.AT_FDCWD, proc, []unix.Timespec{{Sec: 1}, {Sec: 2}}, 0), 0)
	gone(t, fd, unix.S_IFDIR|0o700)
	if t.has(Xattr) {
		wantErr(t, "setxattr", unix.Setxattr(proc, "user.x", []byte("y"), 0), 0)
		_, err = unix.Getxattr(proc, "user.x", make([]byte, 9))
		wantErr(t, "getxattr", err, 0)
	}
	var st unix.Stat_t
	wantErr(t, "stat of a name in it", unix.Fstatat(fd, "y", &st, 0), unix.ENOENT)
	wantErr(t, "create in it", createAt(fd, "y"), unix.ENOENT)
	wantErr(t, "mkdir in it", unix.Mkdirat(fd, "y", 0o755), unix.ENOENT)
	wantErr(t, "symlink in it", unix.Symlinkat("z", fd, "y"), unix.ENOENT)
	wantErr(t, "unlink in it", unix.Unlinkat(fd, "y", 0), unix.ENOENT)
	touch(t, d+"/f", 0o644)
	wantErr(t, "link into it", unix.Linkat(unix.AT_FDCWD, d+"/f", fd, "y", 0), unix.ENOENT)
	wantErr(t, "rename into it", unix.Renameat(unix.AT_FDCWD, d+"/f", fd, "y"), unix.ENOENT)
	wantErr(t, "stat of ..", unix.Fstatat(fd, "..", &st, 0), 0)
	check(t, st.Ino == lstat(t, d).Ino, ".. is another directory")
	if flags&unix.O_PATH == 0 {
		_, err = unix.Getdents(fd, make([]byte, 4096))
		wantErr(t, "readdir", err, unix.ENOENT)
	}
	must(t, os.Mkdir(d+"/x", 0o755))
	check(t, lstat(t, d+"/x").Nlink > 0, "a new directory of that name has no links")
	gone(t, fd, unix.S_IFDIR|0o700)
}

// gone checks that what fd refers to answers and has no links.
func gone(t *T, fd int, mode uint32) {
	t.Helper()
	var st unix.Stat_t
	err := unix.Fstatat(fd, "", &st, unix.AT_EMPTY_PATH)
	if wantErr(t, "fstat of what was removed", err, 0) {
		check(t, st.Nlink == 0 && st.Mode == mode, "what was removed has %d links and mode %o, want 0 and %o", st.Nlink, st.Mode, mode)
	}
}

func createAt(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_WRONLY, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// makeTree makes directories of files.
func makeTree(t *T, top string) {
	for i := range keptFiles / 20 {
		sub := fmt.Sprintf("%s/%d/%d", top, i%5, i)
		must(t, os.MkdirAll(sub, 0o755))
		for j := range 20 {
			touch(t, fmt.Sprintf("%s/%d", sub, j), 0o644)
		}
	}
}

// together runs programs at once; none may complain.
func together(t *T, list [][]string) {
	var all sync.WaitGroup
	for _, args := range list {
		all.Go(func() {
			out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
			for line := range strings.Lines(string(out)) {
				// What find has just read the name of may be gone.
				if args[0] != "find" || !strings.HasSuffix(strings.TrimSpace(line), "No such file or directory") {
					check(t, false, "%s: %v %s", args[0], err, line)
				}
			}
			check(t, err == nil || args[0] == "find", "%s: %v", args[0], err)
		})
	}
	all.Wait()
}

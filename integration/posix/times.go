package posix

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// timeCases: which time stamps each call moves, and that failed calls move none.
var timeCases = []namedCase{
	{"of files", fileTimes},
	{"of parents", parentTimes},
	{"failed calls", failedTimes},
	{"nanoseconds", nanoTimes},
}

// tick waits until the clock of file times moved: on many file systems that
// is the timer's, seen a tick late.
func tick(t *T) {
	t.Helper()
	var last, now unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &last))
	for moves := 0; moves < 2; {
		time.Sleep(100 * time.Microsecond)
		must(t, unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now))
		if now != last {
			last, moves = now, moves+1
		}
	}
}

// moved lists which of a file's times moved: "m", "c" or both.
func moved(a, b unix.Stat_t) string {
	var s strings.Builder
	if a.Mtim != b.Mtim {
		s.WriteByte('m')
	}
	if later(b.Ctim, a.Ctim) {
		s.WriteByte('c')
	}
	return s.String()
}

func fileTimes(t *T, d string) {
	calls := []struct {
		name, want string
		needs      Feature
		call       func(p string, fd int) error
	}{
		{"write", "mc", "", func(_ string, fd int) error { _, err := unix.Pwrite(fd, []byte("x"), 0); return err }},
		{"write of nothing", "", "", func(_ string, fd int) error { _, err := unix.Pwrite(fd, nil, 0); return err }},
		{"writev", "mc", "", func(_ string, fd int) error { _, err := unix.Writev(fd, [][]byte{{'a'}, {'b'}}); return err }},
		{"truncate", "mc", "", func(p string, _ int) error { return unix.Truncate(p, 3) }},
		{"ftruncate", "mc", "", func(_ string, fd int) error { return unix.Ftruncate(fd, 2) }},
		{"ftruncate to the same size", "mc", "", func(_ string, fd int) error { return unix.Ftruncate(fd, 4) }},
		{"O_TRUNC", "mc", "", func(p string, _ int) error { return openErr(p, unix.O_WRONLY|unix.O_TRUNC, 0) }},
		{"open for writing", "", "", func(p string, _ int) error { return openErr(p, unix.O_WRONLY, 0) }},
		{"O_CREAT of what is there", "", "", func(p string, _ int) error { return openErr(p, unix.O_WRONLY|unix.O_CREAT, 0o644) }},
		{"chmod", "c", "", func(p string, _ int) error { return unix.Chmod(p, 0o640) }},
		{"fchmod", "c", "", func(_ string, fd int) error { return unix.Fchmod(fd, 0o600) }},
		{"chown", "c", "", func(p string, _ int) error { return unix.Chown(p, userA, groupA) }},
		{"link", "c", "", func(p string, _ int) error { return unix.Link(p, p+"2") }},
		{"rename", "", "", func(p string, _ int) error {
			if err := unix.Rename(p, p+"3"); err != nil {
				return err
			}
			return unix.Rename(p+"3", p)
		}},
		{"utimensat of atime", "c", "", func(p string, _ int) error {
			return unix.UtimesNanoAt(at, p, []unix.Timespec{{Sec: 5}, {Nsec: unix.UTIME_OMIT}}, 0)
		}},
		{"utimensat of nothing", "", "", func(p string, _ int) error {
			return unix.UtimesNanoAt(at, p, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_OMIT}}, 0)
		}},
		{"setxattr", "c", Xattr, func(p string, _ int) error { return unix.Setxattr(p, "user.a", []byte("a"), 0) }},
		{"fsync", "", "", func(_ string, fd int) error { return unix.Fsync(fd) }},
		{"stat", "", "", func(p string, _ int) error { return unix.Stat(p, new(unix.Stat_t)) }},
		{"read", "", "", func(_ string, fd int) error { _, err := unix.Pread(fd, make([]byte, 4), 0); return err }},
		{"fallocate", "mc", Fallocate, func(_ string, fd int) error { return unix.Fallocate(fd, 0, 0, 100) }},
		{"punch hole", "mc", Fallocate, func(_ string, fd int) error {
			return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4)
		}},
	}
	for i, c := range calls {
		if c.needs != "" && !t.has(c.needs) {
			continue
		}
		p := fmt.Sprintf("%s/f%d", d, i)
		write(t, p, "text")
		fd := open(t, p, unix.O_RDWR)
		before := lstat(t, p)
		tick(t)
		wantErr(t, c.name, c.call(p, fd), 0)
		after := lstat(t, p)
		got := moved(before, after)
		if c.name == "rename" && got == "c" {
			got = "" // allowed: "some implementations mark st_ctime"
		}
		if c.name == "ftruncate to the same size" && got == "" {
			got = "mc" // Linux leaves it to the file system
		}
		check(t, got == c.want, "%s moves %q, want %q", c.name, got, c.want)
		var st unix.Stat_t
		must(t, unix.Fstat(fd, &st))
		check(t, st.Mtim == after.Mtim && st.Ctim == after.Ctim, "%s: fstat and stat differ", c.name)
	}
}

func parentTimes(t *T, d string) {
	sub := d + "/sub"
	must(t, unix.Mkdir(sub, 0o777))
	for _, o := range t.pathOps() {
		if !o.makes && !renames(o.name) {
			continue
		}
		fresh(t, d)
		p := sub + "/it"
		if !o.makes {
			k := reg
			if !o.onFile {
				k = dir
			}
			makeKind(t, k, p, 0o777)
		}
		before := lstat(t, sub)
		tick(t)
		wantErr(t, o.name, o.call(d, p), 0)
		after := lstat(t, sub)
		check(t, later(after.Mtim, before.Mtim) && later(after.Ctim, before.Ctim), "%s: the parent's times did not move", o.name)
		check(t, after.Atim == before.Atim, "%s: the parent's atime moved", o.name)
		removeKindIfThere(t, p)
	}
	// A new file's times are those of its making, and the parent's agree.
	for _, m := range makers {
		before := lstat(t, sub)
		must(t, m.call(sub+"/new", 0o755))
		st := lstat(t, sub+"/new")
		check(t, !later(before.Mtim, st.Mtim) && st.Mtim == st.Ctim && st.Atim == st.Mtim, "%s: times %v %v %v", m.name, st.Atim, st.Mtim, st.Ctim)
		removeKind(t, sub+"/new")
	}
}

func failedTimes(t *T, d string) {
	p := d + "/it"
	for _, k := range kinds {
		for _, o := range t.pathOps() {
			want, ok := o.onKind(k)
			if !ok || want == 0 || o.follow && k == lnk {
				continue
			}
			fresh(t, d)
			makeKind(t, k, p, 0o777)
			before, parent := lstat(t, p), lstat(t, d)
			wantErr(t, o.name+" of a "+k, o.call(d, p), want)
			check(t, lstat(t, p) == before, "a failed %s changed the %s", o.name, k)
			check(t, lstat(t, d).Mtim == parent.Mtim, "a failed %s of a %s changed the parent", o.name, k)
			removeKind(t, p)
		}
	}
}

func nanoTimes(t *T, d string) {
	for i, k := range kinds {
		p := fmt.Sprintf("%s/%d", d, i)
		makeKind(t, k, p, 0o755)
		for _, sec := range []int64{0, 1, -1, -1<<31 + 2, 1<<31 - 1, 1 << 31, 1<<32 + 5, 1 << 33} {
			for _, nsec := range []int64{0, 1, 999, 123456789, 999999999} {
				a, m := unix.Timespec{Sec: sec, Nsec: nsec}, unix.Timespec{Sec: sec + 1, Nsec: 999999999 - nsec}
				wantErr(t, fmt.Sprintf("utimensat(%s, %v, %v)", k, a, m), unix.UtimesNanoAt(at, p, []unix.Timespec{a, m}, unix.AT_SYMLINK_NOFOLLOW), 0)
				st := lstat(t, p)
				check(t, st.Atim == a && st.Mtim == m, "utimensat(%s, %v, %v) gives %v, %v", k, a, m, st.Atim, st.Mtim)
			}
		}
	}
	for _, bad := range []int64{-1, 1000000000, 1 << 40} {
		wantErr(t, "utimensat with bad nanoseconds", unix.UtimesNanoAt(at, d, []unix.Timespec{{Nsec: bad}, {}}, 0), unix.EINVAL)
	}
	must(t, os.WriteFile(d+"/f", []byte("x"), 0o644))
	fd := open(t, d+"/f", unix.O_RDONLY)
	wantErr(t, "futimens", futimens(fd, unix.Timespec{Sec: 7, Nsec: 7}, unix.Timespec{Sec: 8, Nsec: 8}), 0)
	st := lstat(t, d+"/f")
	check(t, st.Atim.Sec == 7 && st.Mtim.Nsec == 8, "futimens: %v %v", st.Atim, st.Mtim)
}

package posix

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limitCases are about the longest paths and other file systems.
var limitCases = []namedCase{
	{"deeper than PATH_MAX", func(t *T, d string) {
		name := strings.Repeat("d", 200)
		const depth = 30 // 6000 bytes
		fds := []int{}
		fd, err := unix.Open(d, unix.O_PATH|unix.O_DIRECTORY, 0)
		must(t, err)
		for range depth {
			fds = append(fds, fd)
			must(t, unix.Mkdirat(fd, name, 0o755))
			fd, err = unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY, 0)
			must(t, err)
		}
		f, err := unix.Openat(fd, "f", unix.O_CREAT|unix.O_RDWR, 0o644)
		wantErr(t, "create in the deepest", err, 0)
		_, err = unix.Write(f, []byte("deep"))
		wantErr(t, "write in the deepest", err, 0)
		unix.Close(f)
		as(t, 0, 0, nil, func() {
			must(t, unix.Fchdir(fd))
			_, err := unix.Getcwd(make([]byte, 4096))
			wantErr(t, "getcwd", err, unix.ENAMETOOLONG)
			_, err = os.Readlink("f")
			wantErr(t, "readlink of a file by a relative path", err, unix.EINVAL)
		})
		wantErr(t, "unlink", unix.Unlinkat(fd, "f", 0), 0)
		unix.Close(fd)
		for i := len(fds) - 1; i >= 0; i-- {
			wantErr(t, "rmdir", unix.Unlinkat(fds[i], name, unix.AT_REMOVEDIR), 0)
			unix.Close(fds[i])
		}
	}},
	{"another file system", func(t *T, d string) {
		if t.run.Other == "" {
			t.Skip("no other file system was given")
		}
		other, err := os.MkdirTemp(t.run.Other, "ogw-posix")
		must(t, err)
		defer os.RemoveAll(other)
		for i, k := range kinds {
			in, out := fmt.Sprintf("%s/%d", d, i), fmt.Sprintf("%s/%d", other, i)
			makeKind(t, k, in, 0o644)
			wantErr(t, "rename of a "+k+" to another file system", unix.Rename(in, out), unix.EXDEV)
			want := unix.EXDEV
			wantErr(t, "link of a "+k+" to another file system", unix.Link(in, out), want)
			if k != sock {
				makeKind(t, k, out, 0o644)
				wantErr(t, "rename of a "+k+" from another file system", unix.Rename(out, in+"x"), unix.EXDEV)
			}
		}
	}},
	{"mount point", func(t *T, d string) {
		wantErr(t, "rename of ..", unix.Rename(d+"/..", d+"/x"), unix.EBUSY)
		wantErr(t, "rename of .", unix.Rename(d+"/.", d+"/x"), unix.EBUSY)
		wantErr(t, "rename to .", unix.Rename(d, d+"/."), unix.EBUSY)
		wantErr(t, "rmdir of .", unix.Rmdir(d+"/."), unix.EINVAL)
		wantErr(t, "rmdir of ..", unix.Rmdir(d+"/.."), unix.ENOTEMPTY)
		wantErr(t, "unlink of .", unix.Unlink(d+"/."), unix.EISDIR)
		wantErr(t, "mkdir of .", unix.Mkdir(d+"/.", 0o755), unix.EEXIST)
		wantErr(t, "open(O_CREAT) of .", openErr(d+"/.", unix.O_CREAT, 0o644), unix.EISDIR)
		wantErr(t, "symlink of ..", unix.Symlink("x", d+"/.."), unix.EEXIST)
	}},
}

// byteCases are names of any bytes.
var byteCases = []namedCase{
	{"every byte", func(t *T, d string) {
		var names []string
		for b := 1; b < 256; b++ {
			if b != '/' && b != '.' {
				names = append(names, string([]byte{byte(b)}))
			}
			if b != '/' {
				names = append(names, string([]byte{'x', byte(b), 'y'}))
			}
		}
		roundTrip(t, d, names)
	}},
	{"random names", func(t *T, d string) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 7))
		set := map[string]bool{}
		for range 300 {
			b := make([]byte, 1+r.IntN(255))
			for i := range b {
				for b[i] = byte(1 + r.IntN(255)); b[i] == '/'; {
					b[i] = byte(1 + r.IntN(255))
				}
			}
			if n := string(b); n != "." && n != ".." {
				set[n] = true
			}
		}
		var names []string
		for n := range set {
			names = append(names, n)
		}
		roundTrip(t, d, names)
	}},
	{"encodings", func(t *T, d string) {
		roundTrip(t, d, []string{
			"ä", "a\u0308", // composed and decomposed are two names
			"A", "a", "ÄÖÜ", "日本語", "\xc4", "\xe4", "\xff\xff", "\xed\xa0\x80", "\xf0\x9f\x98\x80",
			"trailing ", " leading", "...", ".. ", ". ", "CON", "nul", "a:b", "a\\b", "a*b?", "tab\there", "new\nline", "%2F", "%00",
			".ogw", ".ogw-", ".ogx~", "~", strings.Repeat("ä", 127), strings.Repeat("\xff", 255),
		})
	}},
}

// roundTrip makes a file of each name, lists, reads and removes them.
func roundTrip(t *T, d string, names []string) {
	for _, n := range names {
		if wantErr(t, fmt.Sprintf("create of %q", n), openErr(d+"/"+n, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o644), 0) {
			must(t, os.WriteFile(d+"/"+n, []byte(n), 0o644))
		}
	}
	entries, err := os.ReadDir(d)
	must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(got)
	slices.Sort(names)
	check(t, slices.Equal(got, names), "listed %d names, want %d: %.200q", len(got), len(names), difference(got, names))
	for _, n := range names {
		b, err := os.ReadFile(d + "/" + n)
		check(t, err == nil && string(b) == n, "%q holds %q, %v", n, b, err)
		wantErr(t, fmt.Sprintf("rename of %q", n), unix.Rename(d+"/"+n, d+"/"+n+"2"), tooLong(n))
		if tooLong(n) != 0 {
			wantErr(t, fmt.Sprintf("unlink of %q", n), unix.Unlink(d+"/"+n), 0)
		} else {
			wantErr(t, fmt.Sprintf("unlink of %q", n+"2"), unix.Unlink(d+"/"+n+"2"), 0)
		}
	}
	entries, err = os.ReadDir(d)
	check(t, err == nil && len(entries) == 0, "left: %v, %v", entries, err)
}

// difference returns what only one of two sorted lists has.
func difference(a, b []string) (list []string) {
	for _, s := range a {
		if _, ok := slices.BinarySearch(b, s); !ok {
			list = append(list, "+"+s)
		}
	}
	for _, s := range b {
		if _, ok := slices.BinarySearch(a, s); !ok {
			list = append(list, "-"+s)
		}
	}
	return list
}

// tooLong is the error of a name that is one byte longer than n.
func tooLong(n string) syscall.Errno {
	if len(n)+1 > 255 {
		return unix.ENAMETOOLONG
	}
	return 0
}

package integration

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/integration/doors"
	"ogw/integration/testenv/nfsclient"
)

// readOfDoor is one way to read a name.
type readOfDoor struct {
	name  string
	kind  byte // file, directory or link
	moves bool // the access time
	read  func(path string) error
}

// accessReads are the rows of the table of access times in docs/semantics.md.
type accessReads struct {
	s *server
	// mnt shares its superblock with quiet, which is noatime; own and part are the
	// only mounts of theirs, noatime and nodiratime; ro is read-only.
	mnt, quiet, own, part, ro string
	nfs, nfsRO                *nfsclient.Conn
}

func (a *accessReads) rows() []readOfDoor {
	rest := "http://" + a.s.REST + "/"
	return []readOfDoor{
		{"FUSE read", 'f', true, within(a.mnt, readWhole)},
		{"FUSE mapping", 'f', true, within(a.mnt, touchMapped)},
		{"FUSE copy_file_range", 'f', true, within(a.mnt, copySome)},
		{"FUSE readdir", 'd', true, within(a.mnt, readDir)},
		{"FUSE readlink", 'l', true, within(a.mnt, readLink)},
		{"FUSE O_NOATIME", 'f', false, within(a.mnt, func(path string) error { return readWith(path, unix.O_NOATIME) })},
		{"FUSE stat", 'f', false, within(a.mnt, func(path string) error { _, err := os.Stat(path); return err })},
		{"noatime that shares", 'f', true, within(a.quiet, readWhole)},
		{"noatime", 'f', false, within(a.own, readWhole)},
		{"noatime, readdir", 'd', false, within(a.own, readDir)},
		{"nodiratime", 'f', true, within(a.part, readWhole)},
		{"nodiratime, readdir", 'd', false, within(a.part, readDir)},
		{"read-only mount", 'f', false, within(a.ro, readWhole)},
		{"NFS READ", 'f', true, a.overNFS(a.nfs, nfsRead)},
		{"NFS READDIRPLUS", 'd', true, a.overNFS(a.nfs, nfsList)},
		{"NFS READLINK", 'l', true, a.overNFS(a.nfs, nfsReadLink)},
		{"NFS GETATTR", 'f', false, a.overNFS(a.nfs, (*nfsclient.Conn).Getattr)},
		{"NFS READ, read-only export", 'f', false, a.overNFS(a.nfsRO, nfsRead)},
		{"NFS READDIRPLUS, read-only export", 'd', false, a.overNFS(a.nfsRO, nfsList)},
		{"REST GET", 'f', true, ask(http.MethodGet, rest, "")},
		{"REST HEAD", 'f', false, ask(http.MethodHead, rest, "")},
		{"REST 304", 'f', false, ask(http.MethodGet, rest, "*")},
		{"REST listing", 'd', false, func(path string) error { return ask(http.MethodGet, rest, "")(path + "/") }},
		{"S3 GET", 'f', false, func(path string) error { _, err := a.s.s3Door().Read(path); return err }},
		{"flag A", 'f', false, within(a.mnt, func(path string) error {
			if out, err := a.s.Try("chattr", "+A", path); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return readWhole(path)
		})},
	}
}

// TestReadsMoveAccessTimes reads through each door, and looks at the access time by
// the next stat of a mount.
func TestReadsMoveAccessTimes(t *testing.T) {
	s := newServer(t, options{NFS: "[[gateway.export]]\npath = \"/\"\nsquash = \"none\"\n[[gateway.export]]\npath = \"/read\"\nsquash = \"none\"\nread_only = true\n"})
	a := &accessReads{s: s, mnt: s.Mount("-o", "io_uring=off"), quiet: s.Mount("-o", "io_uring=off,noatime"),
		own:  s.Mount("-o", "io_uring=off,entry_timeout=50,noatime"),
		part: s.Mount("-o", "io_uring=off,entry_timeout=51,nodiratime"), ro: s.Mount("-o", "io_uring=off,entry_timeout=52,ro")}
	a.nfs, a.nfsRO = dialNFS(t, s), dialNFS(t, s)
	rest := doors.NewREST(s.REST)
	old := []unix.Timespec{{Sec: 1_000_000_000}, {Sec: 1_000_000_001}}
	for i, row := range a.rows() {
		path := fmt.Sprintf("read/%d", i)
		err := rest.Write(path+".target/f", "text")
		switch row.kind {
		case 'f':
			err = rest.Write(path, "text")
		case 'd':
			path += ".target"
		case 'l':
			err = os.Symlink("target", filepath.Join(a.mnt, path))
		}
		at := filepath.Join(a.mnt, path)
		if err = errors.Join(err, unix.UtimesNanoAt(unix.AT_FDCWD, at, old, unix.AT_SYMLINK_NOFOLLOW)); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		for range 2 { // the second one finds a time that is later than the others
			if err := row.read(path); err != nil {
				t.Errorf("%s: %v", row.name, err)
			}
		}
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			t.Fatal(err)
		}
		if moved := st.Atim != old[0]; moved != row.moves || moved && time.Since(time.Unix(st.Atim.Unix())) > time.Hour {
			t.Errorf("%s: the access time is %v", row.name, time.Unix(st.Atim.Unix()))
		}
		if st.Mtim != old[1] {
			t.Errorf("%s: the modification time is %v", row.name, time.Unix(st.Mtim.Unix()))
		}
	}
	checkClean(t, s)
}

func dialNFS(t *testing.T, s *server) *nfsclient.Conn {
	t.Helper()
	c, err := nfsclient.Dial("", s.NFS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Net.Close() })
	return c
}

// within makes what reads a file one that reads a name below a mount.
func within(mnt string, read func(string) error) func(string) error {
	return func(path string) error { return read(filepath.Join(mnt, path)) }
}

func readWhole(path string) error { return readWith(path, 0) }
func readDir(path string) error   { _, err := os.ReadDir(path); return err }
func readLink(path string) error  { _, err := os.Readlink(path); return err }

func readWith(path string, flags int) error {
	f, err := os.OpenFile(path, os.O_RDONLY|flags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.ReadAll(f)
	return err
}

// touchMapped loads a page that nobody has read.
func touchMapped(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	return errors.Join(touching(func() {
		if m[0] != 't' {
			panic("it has other bytes")
		}
	}), unix.Munmap(m))
}

func copySome(path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(path + ".copy")
	if err != nil {
		return err
	}
	defer to.Close()
	_, err = unix.CopyFileRange(int(from.Fd()), nil, int(to.Fd()), nil, 4, 0)
	return err
}

// overNFS makes a call about the handle of a name; through the read-only export,
// names begin below it.
func (a *accessReads) overNFS(c *nfsclient.Conn, call func(c *nfsclient.Conn, fh []byte) (uint32, error)) func(string) error {
	return func(path string) error {
		bucket, name := filepath.Split(path)
		st, dir, err := c.Mnt("/read")
		if c == a.nfs && err == nil && st == nfsclient.OK {
			if st, dir, err = c.Mnt("/"); err == nil && st == nfsclient.OK {
				st, dir, err = c.Lookup(dir, filepath.Clean(bucket))
			}
		}
		var fh []byte
		if err == nil && st == nfsclient.OK {
			st, fh, err = c.Lookup(dir, name)
		}
		if err == nil && st == nfsclient.OK {
			st, err = call(c, fh)
		}
		if err == nil && st != nfsclient.OK {
			err = fmt.Errorf("status %d", st)
		}
		return err
	}
}

func nfsRead(c *nfsclient.Conn, fh []byte) (uint32, error) {
	st, b, err := c.Read(fh, 0, 100)
	if err == nil && st == nfsclient.OK && string(b) != "text" {
		err = fmt.Errorf("READ gives %q", b)
	}
	return st, err
}

func nfsList(c *nfsclient.Conn, fh []byte) (uint32, error) {
	st, _, err := c.ReaddirPlus(fh)
	return st, err
}

func nfsReadLink(c *nfsclient.Conn, fh []byte) (uint32, error) {
	st, to, err := c.Readlink(fh)
	if err == nil && st == nfsclient.OK && to != "target" {
		err = fmt.Errorf("READLINK gives %q", to)
	}
	return st, err
}

// ask makes a request, under a condition if there is one: it must be answered
// with 200, or 304 then.
func ask(method, base, ifNoneMatch string) func(string) error {
	return func(path string) error {
		r, err := http.NewRequest(method, base+path, nil)
		if err != nil {
			return err
		}
		want := http.StatusOK
		if ifNoneMatch != "" {
			r.Header.Set("If-None-Match", ifNoneMatch)
			want = http.StatusNotModified
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if resp.StatusCode != want {
			return fmt.Errorf("%s %s: %s", method, path, resp.Status)
		}
		return nil
	}
}

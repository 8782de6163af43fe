package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"ogw/integration/doors"
	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
)

// TestHandlesOfRemoved removes files whose NFS handle a client has: the handle is
// stale as soon as nobody else uses the file. A program of a mount that has it open
// keeps it for the client, too.
func TestHandlesOfRemoved(t *testing.T) {
	s := newServer(t, options{NFS: "[[gateway.export]]\npath = \"/\"\nsquash = \"none\"\n"})
	rest := doors.NewREST(s.REST)
	mnt, c := s.Mount(), dialNFS(t, s)
	for _, name := range []string{"used", "held", "unused", "replaced", "linked"} {
		if err := rest.Write("handles/"+name, "text"); err != nil {
			t.Fatal(err)
		}
	}
	status := func(st uint32, err error) uint32 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	must := func(what string, st uint32, err error) {
		t.Helper()
		if status(st, err) != nfsclient.OK {
			t.Fatalf("%s: status %d", what, st)
		}
	}
	st, root, err := c.Mnt("/")
	must("MNT", st, err)
	st, dir, err := c.Lookup(root, "handles")
	must("LOOKUP", st, err)
	handle := func(name string) []byte {
		t.Helper()
		st, fh, err := c.Lookup(dir, name)
		must("LOOKUP "+name, st, err)
		return fh
	}
	// stale waits until the mount's kernel has forgotten an inode.
	stale := func(what string, fh []byte) {
		t.Helper()
		testenv.Eventually(t, "the kernel to forget "+what, func() error {
			if st := status(c.Getattr(fh)); st != nfsclient.Stale {
				return fmt.Errorf("status %d", st)
			}
			return nil
		})
	}
	used, held, unused, replaced, linked := handle("used"), handle("held"), handle("unused"), handle("replaced"), handle("linked")
	f, g := openFor(t, filepath.Join(mnt, "handles/used")), openFor(t, filepath.Join(mnt, "handles/held"))
	for _, name := range []string{"used", "held", "unused"} {
		if err := rest.Delete("handles/" + name); err != nil {
			t.Fatal(err)
		}
	}
	if st := status(c.Getattr(unused)); st != nfsclient.Stale {
		t.Errorf("the handle of a removed file: status %d", st)
	}
	st, err = c.Write(used, 4, []byte(" and more"))
	must("WRITE to a removed file that a program uses", st, err)
	b := make([]byte, 20)
	if n, err := unix.Pread(int(f.Fd()), b, 0); err != nil || string(b[:n]) != "text and more" {
		t.Errorf("the program reads %q, %v", b[:max(n, 0)], err)
	}
	if _, err := f.WriteAt([]byte("T"), 0); err != nil {
		t.Error(err)
	}
	st, got, err := c.Read(used, 0, 100)
	must("READ", st, err)
	if string(got) != "Text and more" {
		t.Errorf("READ gives %q", got)
	}
	st, err = c.Getattr(held)
	must("GETATTR", st, err)
	g.Close()
	stale("the file", held) // the server itself keeps one open for a while that was read

	// A handle survives what keeps the inode: a PUT onto one link, and the removal
	// of another link.
	if err := rest.Write("handles/replaced", "new"); err != nil {
		t.Fatal(err)
	}
	if st, got, err := c.Read(replaced, 0, 100); status(st, err) != nfsclient.OK || string(got) != "new" {
		t.Errorf("READ of a replaced file: status %d, %q", st, got)
	}
	if err := os.Link(filepath.Join(mnt, "handles/linked"), filepath.Join(mnt, "handles/other")); err != nil {
		t.Fatal(err)
	}
	if err := rest.Write("handles/linked", "not written through"); err != nil {
		t.Fatal(err)
	}
	st, err = c.Getattr(linked)
	must("GETATTR of the other link", st, err)
	if err := os.Remove(filepath.Join(mnt, "handles/other")); err != nil {
		t.Fatal(err)
	}
	stale("the link", linked)
	checkClean(t, s)
}

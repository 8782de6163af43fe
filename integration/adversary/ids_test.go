package adversary

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
	"ogw/nfsserver/xdr"
)

// noID is what chown(2) has for "leave as it is".
const noID = 1<<32 - 1

// TestNFSClaimedIDs: who claims the ends of the range of uids and gids is that user, or
// the anonymous one where it is no ID: neither root, nor the owner of others' files,
// nor of files that no kernel can show.
func TestNFSClaimedIDs(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{NFS: `
[[gateway.export]]
path = "/open"
squash = "none"
`})
	s.OGW("bucket", "add", "open")
	root := dialNFS(t, s, victim)
	dir := root.mount("/open")
	root.chmod(dir, 0o777)
	st, roots, err := root.Create(dir, "roots")
	root.must("CREATE", st, err)
	root.chmod(roots, 0o600)
	mnt := s.Mount()
	for claimed, want := range map[uint32]uint32{noID: 65534, noID - 1: noID - 1, 1 << 31: 1 << 31, 1<<31 - 1: 1<<31 - 1} {
		c := dialNFS(t, s, victim)
		c.Cred.UID, c.Cred.GID, c.Cred.Groups = claimed, claimed, []uint32{claimed}
		name := fmt.Sprint("of", claimed)
		st, fh, err := c.Create(dir, name)
		c.must("CREATE", st, err)
		st, _, err = c.Read(roots, 0, 10)
		c.want(name+" reads what is root's", nfsclient.Acces, st, err)
		// To give oneself's file to root, and root's to oneself.
		st, err = c.chown(fh, 0)
		c.want(name+" gives away", nfsclient.Perm, st, err)
		if claimed != noID {
			st, err = c.chown(roots, claimed)
			c.want(name+" takes", nfsclient.Perm, st, err)
		}
		info, err := os.Stat(filepath.Join(mnt, "open", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sys().(*syscall.Stat_t); got.Uid != want || got.Gid != want {
			t.Errorf("uid %d made a file of %d:%d", claimed, got.Uid, got.Gid)
		}
	}
	// Of root, the ID that is none changes nothing.
	st, err = root.chown(roots, noID)
	root.must("SETATTR", st, err)
	if info, err := os.Stat(filepath.Join(mnt, "open/roots")); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("root's file: %v %v", info, err)
	}
}

// chown gives what a handle names an owner.
func (c *nfsClient) chown(fh []byte, uid uint32) (uint32, error) {
	var w xdr.Writer
	w.Opaque(fh)
	words(&w, 0, 1, uid, 0, 0, 0, 0, 0) // mode, uid, gid, size, atime, mtime, guard
	return c.try(setattrNumber, w.B)
}

// TestUserIDsAtTheEnds: users of the ends of the range, and beyond.
func TestUserIDsAtTheEnds(t *testing.T) {
	s := newServer(t, restUsers)
	for _, id := range []string{"4294967295", "4294967296", "-1", "-2", "65534", "18446744073709551615"} {
		if out, err := s.TryOGW("user", "add", "mallory", "--uid", id); err == nil {
			t.Errorf("uid %s: %s", id, out)
		}
		if id == "65534" {
			continue // a group may be nobody's
		}
		if out, err := s.TryOGW("user", "add", "mallory", "--gid", id); err == nil {
			t.Errorf("gid %s: %s", id, out)
		}
	}
	mnt := s.Mount()
	for _, uid := range []uint32{1 << 31, noID - 1} {
		name := fmt.Sprint("u", uid)
		p := newPerson(t, s, name, "--uid", fmt.Sprint(uid))
		p.withBucket(t, s, name)
		info, err := os.Stat(filepath.Join(mnt, name, "secret"))
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != uid {
			t.Errorf("an object of uid %d: %v %v", uid, info, err)
		}
	}
	newPerson(t, s, "bob").robs(t, s, fmt.Sprint("u", uint32(noID-1)))
}

// TestHeirs: of many who would inherit a uid, one does, and it is theirs alone until
// they are removed.
func TestHeirs(t *testing.T) {
	s := newServer(t, restUsers)
	alice := newPerson(t, s, "alice")
	alice.withBucket(t, s, "hers")
	s.OGW("user", "remove", "alice")
	uid := fmt.Sprint(alice.uid)
	var heirs atomic.Int32
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			out, err := s.TryOGW("user", "add", fmt.Sprint("heir", i), "--uid", uid, "--inherit")
			switch {
			case err == nil:
				heirs.Add(1)
			case !strings.Contains(out, "is that of user"):
				t.Errorf("%v %s", err, out)
			}
		})
	}
	wg.Wait()
	if n := heirs.Load(); n != 1 {
		t.Errorf("%d users have uid %s", n, uid)
	}
	if out, err := s.TryOGW("user", "add", "late", "--uid", uid, "--inherit"); err == nil {
		t.Errorf("a second heir: %s", out)
	}
	list := s.OGW("user", "list")
	for line := range strings.Lines(list) {
		if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, "heir") {
			s.OGW("user", "remove", name)
		}
	}
	last := newPerson(t, s, "last", "--uid", uid, "--inherit")
	if got := must(t, "the last heir reads")(last.s3(t, s, "GET", "/hers/secret", "")); got != "of alice" {
		t.Errorf("%q", got)
	}
}

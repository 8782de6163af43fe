package adversary

import (
	"bytes"
	"net"
	"testing"

	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
)

// Addresses of two clients on this machine.
const (
	attacker = "127.0.0.1"
	victim   = "127.0.0.2"
)

// exports are those of the server: the attacker may mount /photos and, to read
// only, /readonly; the victim all, at /private by an export of its own.
const exports = `
[[gateway.export]]
path = "/photos"
clients = ["127.0.0.1"]
squash = "none"
[[gateway.export]]
path = "/readonly"
clients = ["127.0.0.1"]
read_only = true
squash = "none"
[[gateway.export]]
path = "/private"
clients = ["127.0.0.2"]
squash = "none"
[[gateway.export]]
path = "/"
clients = ["127.0.0.2"]
squash = "none"
`

// exportServer has buckets of these names, and a secret in /private.
func exportServer(t *testing.T) (s *testenv.Server, mine, theirs *nfsClient) {
	t.Helper()
	s = newServer(t, testenv.ServerOptions{NFS: exports})
	for _, name := range []string{"photos", "readonly", "private"} {
		s.OGW("bucket", "add", name)
	}
	mine, theirs = dialNFS(t, s, attacker), dialNFS(t, s, victim)
	private := theirs.mount("/private")
	st, _, err := theirs.Create(private, "secret")
	theirs.must("CREATE", st, err)
	return s, mine, theirs
}

// TestNFSMountThroughLink: a symbolic link in an export, made by its client,
// leads no mount out of it.
func TestNFSMountThroughLink(t *testing.T) {
	_, c, _ := exportServer(t)
	photos := c.mount("/photos")
	for name, target := range map[string]string{"x": "/", "up": "../../..", "aside": "../private", "straight": "/private"} {
		st, _, err := c.Symlink(photos, name, target)
		c.must("SYMLINK "+name, st, err)
		st, fh, err := c.Mnt("/photos/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if st == nfsclient.OK && !bytes.Equal(fh, photos) {
			t.Errorf("MNT /photos/%s (-> %s) gives another handle than that of /photos", name, target)
			if st, _, _ := c.Lookup(fh, "private"); st == nfsclient.OK {
				t.Error("from which LOOKUP private succeeds")
			}
		}
	}
	// Links that stay inside go on working.
	st, in, err := c.Mkdir(photos, "in")
	c.must("MKDIR", st, err)
	st, _, err = c.Symlink(photos, "link", "in")
	c.must("SYMLINK", st, err)
	if got := c.mount("/photos/link"); !bytes.Equal(got, in) {
		t.Error("MNT /photos/link does not lead to /photos/in")
	}
}

// TestNFSBucketMadeAnew: when the bucket of an export was deleted and made
// again, ".." twice leads no further than once.
func TestNFSBucketMadeAnew(t *testing.T) {
	s, c, _ := exportServer(t)
	old := c.mount("/photos")
	st, _, err := c.Lookup(old, "..") // the server learns the root
	c.must("LOOKUP ..", st, err)
	s.OGW("bucket", "remove", "photos")
	s.OGW("bucket", "add", "photos")
	s.AWS("s3api", "put-object", "--bucket", "photos", "--key", "sub/x")
	at := c.mount("/photos/sub")
	for range 3 {
		if st, fh, err := c.Lookup(at, ".."); err != nil {
			t.Fatal(err)
		} else if st == nfsclient.OK {
			at = fh
		}
		if st, _, _ := c.Lookup(at, "private"); st == nfsclient.OK {
			t.Fatal("LOOKUP .. leads to a directory in which private is")
		}
		if _, list, err := c.ReaddirPlus(at); err != nil || list["private"] != nil {
			t.Fatalf("READDIRPLUS shows the root: %v", err)
		}
	}
	if !bytes.Equal(at, c.mount("/photos")) {
		t.Error("LOOKUP .. did not end at the export's root")
	}
	st, err = c.Getattr(old)
	c.want("the handle of the bucket that was deleted", nfsclient.Stale, st, err)
}

// TestNFSMovedOut: what is moved out of an export is out of its clients' reach.
func TestNFSMovedOut(t *testing.T) {
	_, c, other := exportServer(t)
	photos, root := c.mount("/photos"), other.mount("/")
	st, dir, err := c.Mkdir(photos, "dir")
	c.must("MKDIR", st, err)
	st, file, err := c.Create(dir, "file")
	c.must("CREATE", st, err)
	theirs := other.lookup(root, "photos")
	st, err = other.Rename(theirs, "dir", other.lookup(root, "private"), "taken")
	other.must("RENAME", st, err)
	for name, fh := range map[string][]byte{"directory": dir, "file": file} {
		st, err = c.Getattr(fh)
		c.want("GETATTR of the "+name, nfsclient.Stale, st, err)
	}
	st, _, err = c.Lookup(dir, "..")
	c.want("LOOKUP .. of the directory", nfsclient.Stale, st, err)
	st, err = c.Write(file, 0, []byte("mine"))
	c.want("WRITE to the file", nfsclient.Stale, st, err)
	st, err = c.Rename(dir, "file", photos, "back")
	c.want("RENAME back", nfsclient.Stale, st, err)
	st, err = other.Getattr(other.lookup(root, "private"))
	other.must("the whole for who may have it", st, err)
}

// TestNFSHandlesOfOthers: a handle has the rights of the export that gave it,
// whoever shows it.
func TestNFSHandlesOfOthers(t *testing.T) {
	_, c, other := exportServer(t)
	photos, private := c.mount("/photos"), other.mount("/private")
	secret := other.lookup(private, "secret")
	for name, fh := range map[string][]byte{"directory": private, "file": secret} {
		st, err := c.Getattr(fh)
		c.want("GETATTR of another's "+name, nfsclient.Acces, st, err)
	}
	st, _, err := c.Read(secret, 0, 100)
	c.want("READ", nfsclient.Acces, st, err)
	st, err = c.Write(secret, 0, []byte("mine"))
	c.want("WRITE", nfsclient.Acces, st, err)
	st, err = c.Rename(private, "secret", photos, "stolen")
	c.want("RENAME into what is mine", nfsclient.Acces, st, err)
	root := other.mount("/")
	st, err = other.Rename(private, "secret", root, "elsewhere")
	other.want("RENAME between two exports", nfsclient.XDev, st, err)

	st, file, err := other.Create(other.lookup(root, "readonly"), "file")
	other.must("CREATE", st, err)
	st, err = other.Write(file, 0, []byte("theirs"))
	other.must("WRITE", st, err)
	readonly := c.mount("/readonly")
	mine := c.lookup(readonly, "file")
	st, err = c.Write(mine, 0, []byte("mine"))
	c.want("WRITE through a read-only export", nfsclient.ROFS, st, err)
	st, _, err = c.Create(readonly, "new")
	c.want("CREATE through a read-only export", nfsclient.ROFS, st, err)
	st, data, err := c.Read(mine, 0, 100)
	if c.must("READ", st, err); string(data) != "theirs" {
		t.Errorf("the file holds %q", data)
	}
}

// TestNFSAnyPort: a program of any user of a machine is not that machine.
func TestNFSAnyPort(t *testing.T) {
	s, c, _ := exportServer(t)
	photos := c.mount("/photos")
	nc, err := net.Dial("tcp", s.NFS)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	anybody := &nfsClient{t, nfsclient.NewConn(nc)}
	st, _, err := anybody.Mnt("/photos")
	anybody.want("MNT from any port", nfsclient.Acces, st, err)
	st, err = anybody.Getattr(photos)
	anybody.want("GETATTR from any port", nfsclient.Acces, st, err)
	const nlm, nlmFreeAll, nsm, smNotify = 100021, 23, 100024, 6
	name := []byte{0, 0, 0, 4, 't', 'e', 's', 't', 0, 0, 0, 3}
	if _, err := anybody.Call(nlm, 4, nlmFreeAll, name); err == nil {
		t.Error("FREE_ALL from any port is taken")
	}
	if _, err := anybody.Call(nsm, 1, smNotify, name); err == nil {
		t.Error("SM_NOTIFY from any port is taken")
	}
}

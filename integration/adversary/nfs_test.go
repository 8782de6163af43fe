package adversary

import (
	"os"
	"testing"

	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
)

// nfsClient is somebody at an address who speaks NFS by hand.
type nfsClient struct {
	t *testing.T
	*nfsclient.Conn
}

// dialNFS connects from an address of this machine, as its root does.
func dialNFS(t *testing.T, s *testenv.Server, from string) *nfsClient {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: servers take calls from reserved ports")
	}
	c, err := nfsclient.Dial(from, s.NFS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Net.Close() })
	return &nfsClient{t, c}
}

// must fails the test unless a call got its answer, and that is OK.
func (c *nfsClient) must(what string, st uint32, err error) {
	c.t.Helper()
	if c.want(what, nfsclient.OK, st, err); c.t.Failed() {
		c.t.FailNow()
	}
}

func (c *nfsClient) want(what string, want, st uint32, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
	if st != want {
		c.t.Errorf("%s: status %d, want %d", what, st, want)
	}
}

func (c *nfsClient) mount(path string) []byte {
	c.t.Helper()
	st, fh, err := c.Mnt(path)
	c.must("MNT "+path, st, err)
	return fh
}

func (c *nfsClient) lookup(dir []byte, name string) []byte {
	c.t.Helper()
	st, fh, err := c.Lookup(dir, name)
	c.must("LOOKUP "+name, st, err)
	return fh
}

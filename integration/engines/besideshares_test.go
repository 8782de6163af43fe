package engines

import (
	"context"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
	"ogw/nfsserver/nlm"
	"ogw/nfsserver/nsm"
	"ogw/nfsserver/xdr"
)

// Procedures and statuses of NLM and NSM as they stand on the wire.
const (
	nlmShare, nlmUnshare, nlmFreeAll, nsmNotify = 20, 21, 23, 6

	nlmGranted, nlmDenied, nlmGrace = 0, 1, 4
)

// What a share reservation is for, or denies.
const (
	shareReads  = 1
	shareWrites = 2
	shareBoth   = shareReads | shareWrites
)

// sharer is a client machine that speaks NLM with gateways, all of which have one address, as one
// that moves.
type sharer struct {
	t    *testing.T
	addr string
	name string
	fh   []byte
}

// newSharer returns one at an address, and a file that it is to reserve.
func newSharer(t *testing.T, s *testenv.Server, addr, path string) *sharer {
	t.Helper()
	x := &sharer{t: t, addr: addr, name: "host-" + addr}
	dir, name, _ := strings.Cut(path, "/")
	c := x.dial(s)
	defer c.Net.Close()
	top, err := topHandle(c, dir)
	if err != nil {
		t.Fatal(err)
	}
	st, fh, err := c.Lookup(top, name)
	if err = statusErr(st, err); err != nil {
		t.Fatal(err)
	}
	x.fh = fh
	return x
}

func (x *sharer) dial(s *testenv.Server) *nfsclient.Conn {
	x.t.Helper()
	c, err := nfsclient.Dial(x.addr, s.NFS)
	if err != nil {
		x.t.Fatal(err)
	}
	return c
}

// call makes a call by a connection of its own.
func (x *sharer) call(s *testenv.Server, prog, vers, proc uint32, args []byte) *xdr.Reader {
	x.t.Helper()
	c := x.dial(s)
	defer c.Net.Close()
	r, err := c.Call(prog, vers, proc, args)
	if err != nil {
		x.t.Fatal(err)
	}
	return r
}

func (x *sharer) reserve(s *testenv.Server, proc, access, deny uint32, reclaim bool) uint32 {
	x.t.Helper()
	var w xdr.Writer
	w.Opaque([]byte("cookie"))
	w.String(x.name)
	w.Opaque(x.fh)
	w.String("program")
	w.Uint32(deny)
	w.Uint32(access)
	w.Bool(reclaim)
	r := x.call(s, nlm.ProgramNumber, nlm.Version, proc, w.B)
	r.Opaque(100)
	return r.Uint32()
}

// shares makes SHARE, and unshares UNSHARE.
func (x *sharer) shares(what string, s *testenv.Server, access, deny, want uint32) {
	x.t.Helper()
	if got := x.reserve(s, nlmShare, access, deny, false); got != want {
		x.t.Errorf("%s: SHARE: status %d, want %d", what, got, want)
	}
}

func (x *sharer) unshares(s *testenv.Server) {
	x.t.Helper()
	if got := x.reserve(s, nlmUnshare, 0, 0, false); got != nlmGranted {
		x.t.Errorf("UNSHARE: status %d", got)
	}
}

// says sends FREE_ALL, or the notice of a reboot, of a host of that name.
func (x *sharer) says(s *testenv.Server, prog, vers, proc uint32, name string, state uint32) {
	x.t.Helper()
	var w xdr.Writer
	w.String(name)
	w.Uint32(state)
	x.call(s, prog, vers, proc, w.B)
}

// settled is SHARE at a gateway that may be new: until it knows that all others know share
// reservations, a client is to ask again.
func (x *sharer) settled(s *testenv.Server, access, deny uint32) (got uint32) {
	x.t.Helper()
	waitFor(x.t, func() bool {
		got = x.reserve(s, nlmShare, access, deny, false)
		return got != nlmGrace
	})
	return got
}

// TestManyGatewaysShares has NFS clients reserve a file at two gateways, of which one is killed.
func TestManyGatewaysShares(t *testing.T) { onMetadata(t, testManyGatewaysShares) }

func testManyGatewaysShares(t *testing.T, m *shared) {
	m.manyGateways()
	a := m.gateway(nil)
	b := m.gateway(a)
	b.KeyID, b.Secret = a.KeyID, a.Secret
	if err := s3Client(t, a).MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := put(s3Client(t, a), "file", small); err != nil {
		t.Fatal(err)
	}
	x, y := newSharer(t, a, "127.0.0.5", "bkt/file"), newSharer(t, b, "127.0.0.6", "bkt/file")
	if one, two := x.settled(a, 0, 0), y.settled(b, 0, 0); one != nlmGranted || two != nlmGranted {
		t.Fatalf("SHARE: status %d, %d", one, two)
	}
	y.unshares(b)

	x.shares("first", a, shareReads, shareWrites, nlmGranted)
	x.shares("the same again", b, shareReads, shareWrites, nlmGranted)
	y.shares("what is denied", b, shareWrites, 0, nlmDenied)
	y.shares("denying what is done", a, 0, shareReads, nlmDenied)
	y.shares("beside it", b, shareReads, 0, nlmGranted)
	x.shares("more than is free", b, shareBoth, shareBoth, nlmDenied)
	for _, s := range []*testenv.Server{a, b} {
		out := s.OGW("lock", "list", "bkt/file")
		if !strings.Contains(out, "read, deny write") || !strings.Contains(out, "read, deny none") || strings.Count(out, "share") != 2 {
			t.Errorf("listed:\n%s", out)
		}
	}
	y.unshares(a)
	y.unshares(a)
	y.says(a, nlm.ProgramNumber, nlm.Version, nlmFreeAll, x.name, 0)
	y.says(a, nsm.ProgramNumber, nsm.Version, nsmNotify, x.name, 5)
	y.shares("another's UNSHARE and notices", a, shareWrites, 0, nlmDenied)

	a.Kill()
	y.shares("of a gateway that was killed", b, shareWrites, 0, nlmDenied)
	waitFor(t, func() bool { return strings.Contains(b.Log(), "is put out") })
	y.shares("of one that was put out", b, shareWrites, 0, nlmDenied)
	if got := x.reserve(b, nlmShare, shareReads, shareWrites, true); got != nlmGranted {
		t.Errorf("reclaimed where the address moved: status %d", got)
	}
	if got := y.reserve(b, nlmShare, shareWrites, 0, true); got != nlmDenied {
		t.Errorf("reclaiming what another denies: status %d", got)
	}
	a.Start()
	if got := y.settled(a, shareWrites, 0); got != nlmDenied {
		t.Errorf("at a new one: status %d", got)
	}

	x.says(a, nsm.ProgramNumber, nsm.Version, nsmNotify, x.name, 5)
	y.shares("of a client that rebooted", b, shareWrites, shareBoth, nlmGranted)
	y.says(a, nlm.ProgramNumber, nlm.Version, nlmFreeAll, y.name, 0)
	x.shares("after FREE_ALL", b, shareBoth, shareBoth, nlmGranted)
	if out := a.OGW("lock", "free", "--client", x.name); !strings.Contains(out, "0 locks and 1 share reservation ") {
		t.Errorf("freed:\n%s", out)
	}
	y.shares("freed by the operator", b, shareBoth, shareBoth, nlmGranted)
	y.unshares(b)
	if out := a.OGW("lock", "list"); strings.Contains(out, "share") {
		t.Errorf("left:\n%s", out)
	}
	a.OGW("check")
	if t.Failed() {
		t.Logf("a:\n%s\nb:\n%s", a.Log(), b.Log())
	}
}

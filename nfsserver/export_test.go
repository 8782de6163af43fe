package nfsserver

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"ogw/nfsserver/rpc"
	"ogw/vfs"
	"ogw/vfs/clients/guess"
)

func mustTable(t *testing.T, list ...Export) *exportTable {
	t.Helper()
	table, err := newExportTable(list)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestFindExport(t *testing.T) {
	now := time.Now()
	lan := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	table := mustTable(t,
		Export{Path: "/"},
		Export{Path: "/lan", Networks: lan},
		Export{Path: "/link", Networks: []netip.Prefix{netip.MustParsePrefix("fe80::/10")}},
		Export{Path: "/old", Expires: now.Add(-time.Second), Secret: "the secret of old"},
		Export{Path: "/sec", Secret: "abc-0123456789abc"},
		Export{Path: "/sec", Secret: "def-0123456789abc"},
	)
	for _, c := range []struct {
		path, client string
		export, dir  string
		err          error
	}{
		{"/", "1.2.3.4", "/", "/", nil},
		{"/any/dir/", "1.2.3.4", "/", "/any/dir", nil},
		{"/lan/x", "10.1.1.1", "/lan", "/lan/x", nil},
		{"/lan/x", "1.2.3.4", "/", "/lan/x", nil}, // through the wider export
		{"/lanx", "10.1.1.1", "/", "/lanx", nil},
		{"/link", "fe80::1%lo", "/link", "/link", nil},
		{"/sec@abc-0123456789abc", "1.2.3.4", "/sec", "/sec", nil},
		{"/sec/sub@def-0123456789abc", "1.2.3.4", "/sec", "/sec/sub", nil},
		{"/a@b", "1.2.3.4", "/", "/a@b", nil}, // a directory of that name
		{"/../..", "1.2.3.4", "/", "/", nil},
		{"", "1.2.3.4", "/", "/", nil},
	} {
		x, dir, err := table.find(c.path, netip.AddrPortFrom(netip.MustParseAddr(c.client), 1023), now)
		if !errors.Is(err, c.err) || err == nil && (x.Path != c.export || dir != c.dir) {
			t.Errorf("%s for %s: %v %q %v", c.path, c.client, x, dir, err)
		}
	}
	table = mustTable(t, Export{Path: "/lan", Networks: lan}, Export{Path: "/sec", Secret: "abc-0123456789abc"},
		Export{Path: "/old", Expires: now.Add(-time.Second)})
	for _, c := range []struct {
		path string
		want error
		say  string
	}{
		{"/lan", ErrAcces, "in no network of export /lan"},
		{"/sec", ErrNoEnt, "export /sec needs its secret"},
		{"/sec@abd-0123456789abc", ErrNoEnt, "wrong secret for export /sec"},
		{"/old", ErrAcces, "export /old expired at 20"},
		{"/", ErrNoEnt, "no export has this path"},
		{"/none@abc-0123456789abc", ErrNoEnt, "no export has this path"},
		{"/lan/../sec", ErrNoEnt, "export /sec needs its secret"},
	} {
		_, _, err := table.find(c.path, netip.MustParseAddrPort("1.2.3.4:700"), now)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) || statusOf(err) != c.want {
			t.Errorf("%s: %v, want %v: %s", c.path, err, c.want, c.say)
		}
		if err != nil && (strings.Contains(err.Error(), "abd-0123456789abc") || strings.Contains(err.Error(), "abc-0123456789abc")) {
			t.Errorf("%s: %v holds a secret", c.path, err)
		}
	}
	if !table.allows(netip.MustParseAddr("1.2.3.4")) || mustTable(t, Export{Path: "/", Networks: lan}).allows(netip.MustParseAddr("1.2.3.4")) {
		t.Error("who may connect")
	}
}

func TestBadExports(t *testing.T) {
	for _, list := range [][]Export{
		{{Path: "relative"}},
		{{Path: "/", Squash: "some"}},
		{{Path: "/", Secret: "a/b-0123456789abc"}},
		{{Path: "/", Secret: "0123456789abcde"}},
		{{Path: "/a"}, {Path: "/a/"}},
		{{Path: "/", AnonUID: new(uint32(vfs.NoID))}},
		{{Path: "/", AnonGID: new(uint32(vfs.NoID))}},
	} {
		if _, err := newExportTable(list); err == nil {
			t.Errorf("%v is accepted", list)
		}
	}
}

func TestSquash(t *testing.T) {
	id := func(v uint32) *uint32 { return &v }
	unix := func(uid, gid uint32, groups ...uint32) rpc.Cred {
		return rpc.Cred{Flavor: rpc.AuthUnix, UID: uid, GID: gid, GIDs: groups}
	}
	for _, c := range []struct {
		name   string
		export Export
		from   rpc.Cred
		want   vfs.Cred
	}{
		{"root becomes nobody", Export{}, unix(0, 0, 0, 5), *vfs.NewCred(65534, 65534)},
		{"users stay", Export{}, unix(1000, 1000, 4, 5), *vfs.NewCred(1000, 1000, 4, 5)},
		{"no user has group 0", Export{}, unix(1000, 0, 0, 5), *vfs.NewCred(1000, 65534, 65534, 5)},
		{"all", Export{Squash: SquashAll, AnonUID: id(7), AnonGID: id(8)}, unix(1000, 1000, 5), *vfs.NewCred(7, 8)},
		{"none", Export{Squash: SquashNone}, unix(0, 0), *vfs.NewCred(0, 0)},
		{"nobody's uid", Export{Squash: SquashNone}, unix(vfs.NoID, 0, 0), *vfs.NewCred(65534, 65534)},
		{"nobody's uid where there is another nobody", Export{AnonUID: id(7), AnonGID: id(8)}, unix(vfs.NoID, 5), *vfs.NewCred(7, 8)},
		{"nobody's groups", Export{Squash: SquashNone}, unix(0, vfs.NoID, vfs.NoID, 0), *vfs.NewCred(0, 65534, 65534, 0)},
		{"the largest", Export{}, unix(vfs.NoID-1, 1<<31, vfs.NoID-1), *vfs.NewCred(vfs.NoID-1, 1<<31, vfs.NoID-1)},
		{"without credentials", Export{Squash: SquashNone}, rpc.Cred{}, *vfs.NewCred(65534, 65534)},
	} {
		c.export.Path = "/"
		var got vfs.Cred
		mustTable(t, c.export).list[0].cred(&got, &c.from)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Secrets cannot be tried at the speed of the machine, whatever directory below
// the export is named with them.
func TestGuessedSecrets(t *testing.T) {
	const secret = "0123456789abcdef"
	table := mustTable(t, Export{Path: "/"}, Export{Path: "/sec", Secret: secret}, Export{Path: "/sec/in", Secret: secret[1:] + "x"})
	for _, c := range []struct {
		path, account string
		right         bool
	}{
		{"/sec", "", false},
		{"/sec@", "", false},
		{"/else@" + secret, "", false},
		{"/sec@" + secret, "/sec", true},
		{"/sec/dir@" + secret, "/sec", true},
		{"/sec/in@" + secret, "/sec/in", true},
		{"/sec/in@wrong", "/sec/in", false},
		{"/x/../sec@wrong", "/sec", false},
	} {
		if account, right := table.tried(c.path); account != c.account || right != c.right {
			t.Errorf("%s: %q %v", c.path, account, right)
		}
	}

	s := &Server{guesses: guess.New()}
	s.exports.Store(table)
	mallory, alice := netip.MustParseAddrPort("192.0.2.66:700"), netip.MustParseAddrPort("192.0.2.1:700")
	looked := 0
	for i := range 300 {
		_, _, err := s.findExport(fmt.Sprintf("/sec/d%d@guess%d", i, i), mallory)
		if !errors.Is(err, guess.ErrThrottled) {
			looked++
		} else if statusOf(err) != ErrAcces {
			t.Fatal(err)
		}
	}
	if looked > 100 {
		t.Errorf("%d of 300 guesses were looked at", looked)
	}
	if _, _, err := s.findExport("/sec@"+secret, mallory); !errors.Is(err, guess.ErrThrottled) {
		t.Error("a guess in the pause is looked at:", err)
	}
	if _, _, err := s.findExport("/else", mallory); err != nil {
		t.Error("what needs no secret:", err)
	}
	if _, _, err := s.findExport("/sec@"+secret, alice); err != nil {
		t.Error("another address:", err)
	}
}

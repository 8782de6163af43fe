package record

import (
	"errors"
	"slices"
	"testing"

	"ogw/vfs/internal/fserr"
)

func TestGrantsAllow(t *testing.T) {
	t.Parallel()
	g := Grants{
		{Grantee: GranteeEverybody, Permission: PermRead},
		{Grantee: GranteeAuthenticated, Permission: PermWrite},
		{Grantee: GranteeUser, User: "bob", Permission: PermReadACP},
		{Grantee: GranteeUser, User: "carol", Permission: PermFullControl},
		{Grantee: 9, User: "bob", Permission: PermWriteACP}, // of a later program
		{Grantee: GranteeUser, User: "", Permission: PermFullControl},
		{Grantee: GranteeOwner, Permission: PermFullControl}, {Grantee: GranteeOwner}, // ownership gives, not this
	}
	for _, c := range []struct {
		who  UserID
		want Permission
	}{
		{"", PermRead}, {"dave", PermRead | PermWrite}, {"bob", PermRead | PermWrite | PermReadACP}, {"carol", PermFullControl},
	} {
		for p := Permission(1); p <= PermFullControl; p++ {
			if got, want := g.Allow(c.who, p), p&c.want == p; got != want {
				t.Errorf("%q asks %#x: %v", c.who, p, got)
			}
		}
	}
	if Grants(nil).Allow("bob", PermRead) {
		t.Error("no grants allow")
	}
}

func TestGrantsStored(t *testing.T) {
	t.Parallel()
	for _, g := range []Grants{nil, {{Grantee: GranteeEverybody, Permission: PermRead}},
		{{Grantee: GranteeUser, User: "AIDAX", Permission: PermFullControl}, {Grantee: 9, User: "x", Permission: 0x40}}} {
		got, err := DecodeGrants(EncodeGrants(g))
		if err != nil || !slices.Equal(got, g) {
			t.Errorf("%v: %v %v", g, got, err)
		}
	}
	whole := EncodeGrants(Grants{{Grantee: GranteeUser, User: "AIDAX", Permission: PermRead}})
	for cut := 1; cut < len(whole); cut++ {
		if _, err := DecodeGrants(whole[:cut]); !errors.Is(err, fserr.ErrCorrupt) {
			t.Errorf("%d bytes: %v", cut, err)
		}
	}
	if _, err := DecodeGrants([]byte{2, 0}); !errors.Is(err, fserr.ErrCorrupt) {
		t.Errorf("later version: %v", err)
	}
}

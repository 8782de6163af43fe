package vfs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
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
		got, err := decodeGrants(g.encode())
		if err != nil || !slices.Equal(got, g) {
			t.Errorf("%v: %v %v", g, got, err)
		}
	}
	whole := Grants{{Grantee: GranteeUser, User: "AIDAX", Permission: PermRead}}.encode()
	for cut := 1; cut < len(whole); cut++ {
		if _, err := decodeGrants(whole[:cut]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes: %v", cut, err)
		}
	}
	if _, err := decodeGrants([]byte{2, 0}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("later version: %v", err)
	}
}

func TestGrantsOfObjectsAndBuckets(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		ctx := t.Context()
		bucketFS(t, fs)
		read := Grants{{Grantee: GranteeEverybody, Permission: PermRead}}
		if err := fs.SetBucketGrants(ctx, "bucket", read); err != nil {
			t.Fatal(err)
		}
		if _, g, err := fs.BucketGrants(ctx, "bucket"); err != nil || !slices.Equal(g, read) {
			t.Errorf("bucket: %v %v", g, err)
		}
		want(t, fs.SetBucketGrants(ctx, "bucket", nil), nil)
		if _, g, err := fs.BucketGrants(ctx, "bucket"); err != nil || g != nil {
			t.Errorf("bucket without: %v %v", g, err)
		}
		of := func(key string) Grants {
			info, err := fs.HeadObject(ctx, "bucket", key, GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return info.Meta.Grants
		}
		if _, err := fs.PutObject(ctx, "bucket", "k", strings.NewReader("x"), PutOptions{Size: 1, Meta: ObjectMeta{Grants: read}}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(of("k"), read) {
			t.Errorf("put: %v", of("k"))
		}
		// Neither a copy nor an overwrite takes them along.
		if _, err := fs.CopyObject(ctx, "bucket", "k", "bucket", "copy", CopyOptions{}); err != nil || of("copy") != nil {
			t.Errorf("copy: %v %v", of("copy"), err)
		}
		put(t, fs, "k", "y")
		if of("k") != nil {
			t.Errorf("overwritten: %v", of("k"))
		}
		want(t, fs.SetObjectGrants(ctx, "bucket", "k", read), nil)
		if !slices.Equal(of("k"), read) {
			t.Errorf("set: %v", of("k"))
		}
		u, err := fs.CreateUpload(ctx, "bucket", "up", PutOptions{Meta: ObjectMeta{Grants: read}}, "", false)
		if err != nil {
			t.Fatal(err)
		}
		part, err := fs.PutPart(ctx, "bucket", "up", u.ID, 1, strings.NewReader("part"), PutOptions{Size: 4})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fs.CompleteUpload(ctx, "bucket", "up", u.ID, []CompletePart{{Number: 1, ETag: part.ETag}}, Preconditions{}, nil); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(of("up"), read) {
			t.Errorf("upload: %v", of("up"))
		}
		most := append(slices.Repeat(read, MaxGrants), Grant{Grantee: GranteeOwner})
		want(t, fs.SetObjectGrants(ctx, "bucket", "k", most), nil)
		if !slices.Equal(of("k"), most) {
			t.Error("the owner's entry is not kept")
		}
		for _, bad := range []Grants{
			{{Grantee: GranteeUser, Permission: PermRead}}, {{Grantee: GranteeEverybody, User: "x", Permission: PermRead}},
			{{Grantee: GranteeEverybody}}, {{Grantee: GranteeEverybody, Permission: PermRead | PermWrite}}, {{Permission: PermRead}},
			slices.Repeat(read, MaxGrants+1), append(slices.Repeat(read, MaxGrants+1), Grant{Grantee: GranteeOwner}),
			{{Grantee: GranteeOwner, User: "x"}}, {{Grantee: GranteeOwner, User: "x", Permission: PermRead}}, {{Grantee: 5, Permission: PermRead}},
		} {
			name := fmt.Sprintf("%d grants, first %v", len(bad), bad[0])
			if err := fs.SetBucketGrants(ctx, "bucket", bad); !errors.Is(err, ErrInvalid) {
				t.Errorf("bucket, %s: %v", name, err)
			}
			if err := fs.SetObjectGrants(ctx, "bucket", "k", bad); !errors.Is(err, ErrInvalid) {
				t.Errorf("object, %s: %v", name, err)
			}
			if _, err := fs.PutObject(ctx, "bucket", "k", strings.NewReader("x"), PutOptions{Size: 1, Meta: ObjectMeta{Grants: bad}}); !errors.Is(err, ErrInvalid) {
				t.Errorf("put, %s: %v", name, err)
			}
		}
	})
}

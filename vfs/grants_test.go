package vfs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

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
			info, err := fs.HeadObject(ctx, ObjectName{"bucket", key}, GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return info.Meta.Grants
		}
		if _, err := fs.PutObject(ctx, ObjectName{"bucket", "k"}, strings.NewReader("x"), PutOptions{Size: 1, Meta: ObjectMeta{Grants: read}}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(of("k"), read) {
			t.Errorf("put: %v", of("k"))
		}
		// Neither a copy nor an overwrite takes them along.
		if _, err := fs.CopyObject(ctx, ObjectName{"bucket", "k"}, ObjectName{"bucket", "copy"}, CopyOptions{}); err != nil || of("copy") != nil {
			t.Errorf("copy: %v %v", of("copy"), err)
		}
		put(t, fs, "k", "y")
		if of("k") != nil {
			t.Errorf("overwritten: %v", of("k"))
		}
		want(t, fs.SetObjectGrants(ctx, ObjectName{"bucket", "k"}, read), nil)
		if !slices.Equal(of("k"), read) {
			t.Errorf("set: %v", of("k"))
		}
		u, err := fs.CreateUpload(ctx, ObjectName{"bucket", "up"}, PutOptions{Meta: ObjectMeta{Grants: read}}, "", false)
		if err != nil {
			t.Fatal(err)
		}
		part, err := fs.PutPart(ctx, ObjectName{"bucket", "up"}.Upload(u.ID), 1, strings.NewReader("part"), PutOptions{Size: 4})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fs.CompleteUpload(ctx, ObjectName{"bucket", "up"}.Upload(u.ID), CompleteOptions{Parts: []CompletePart{{Number: 1, ETag: part.ETag}}}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(of("up"), read) {
			t.Errorf("upload: %v", of("up"))
		}
		most := append(slices.Repeat(read, MaxGrants), Grant{Grantee: GranteeOwner})
		want(t, fs.SetObjectGrants(ctx, ObjectName{"bucket", "k"}, most), nil)
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
			if err := fs.SetObjectGrants(ctx, ObjectName{"bucket", "k"}, bad); !errors.Is(err, ErrInvalid) {
				t.Errorf("object, %s: %v", name, err)
			}
			if _, err := fs.PutObject(ctx, ObjectName{"bucket", "k"}, strings.NewReader("x"), PutOptions{Size: 1, Meta: ObjectMeta{Grants: bad}}); !errors.Is(err, ErrInvalid) {
				t.Errorf("put, %s: %v", name, err)
			}
		}
	})
}

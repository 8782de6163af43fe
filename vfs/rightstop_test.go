package vfs

import (
	"errors"
	"strings"
	"testing"

	"ogw/cluster/mem"
	"ogw/vfs/internal/rights"
)

// TestRightsAtTheTop: keys that begin at the root, as the REST door uses them,
// where grants give nothing and local accounts go by the root's mode.
func TestRightsAtTheTop(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	mustFile(t, fs, RootIno, "file")
	other := mustMkdir(t, fs, RootIno, "No Bucket")
	mustFile(t, fs, other, "file")
	_, err := fs.CreateBucketWith(bg, "hers", NewCred(aliceUID, aliceUID),
		BucketOptions{Grants: Grants{{Grantee: GranteeEverybody, Permission: PermFullControl}}})
	want(t, err, nil)
	for name, s := range modelSubjects {
		ctx := WithSubject(bg, s)
		put := func(key string) error {
			_, err := fs.PutObject(ctx, ObjectName{"", key}, strings.NewReader("x"), PutOptions{Size: 1})
			return err
		}
		remove := func(key string) error {
			_, err := fs.DeleteObject(ctx, ObjectName{"", key}, DeleteOptions{})
			return err
		}
		if rights.MayAll(s) || s.Local && s.UID == 0 {
			continue
		}
		for act, err := range map[string]error{
			"writes /file": put("file"), "deletes /file": remove("file"), "makes /new": put("new"),
			"writes below no bucket": put("No Bucket/file"), "makes below no bucket": put("No Bucket/new"),
			"deletes below no bucket": remove("No Bucket/file"),
		} {
			if !errors.Is(err, ErrAccess) {
				t.Errorf("%s %s: %v", name, act, err)
			}
		}
		// The bucket's own key is its owner's, whatever was granted.
		if name != "alice" {
			if err := remove("hers/"); !errors.Is(err, ErrAccess) {
				t.Errorf("%s deletes the bucket: %v", name, err)
			}
			if err := put("hers/"); !errors.Is(err, ErrAccess) {
				t.Errorf("%s writes the bucket's own content: %v", name, err)
			}
		}
		// A bucket that a PUT implies: any user's, and a local account's if the
		// root's mode lets it.
		err := put("of-" + strings.ReplaceAll(name, " ", "-") + "/key")
		if refused := rights.Anonymous(s) || s.Local; refused != errors.Is(err, ErrAccess) {
			t.Errorf("%s makes a bucket: %v", name, err)
		}
		if _, err := fs.ListObjects(ctx, "", ListOptions{MaxKeys: 10}); s.Local == errors.Is(err, ErrAccess) {
			t.Errorf("%s lists the root: %v", name, err)
		}
	}
}

package vfs

import (
	"context"
	"strings"
	"testing"

	"ogw/cluster/mem"
)

// TestOverwriteTakesNoMore: who overwrites owns, and gets neither a program
// with setuid nor what the file is under its other names.
func TestOverwriteTakesNoMore(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	alice := NewCred(aliceUID, aliceUID)
	all := Grants{{Grantee: GranteeEverybody, Permission: PermFullControl}}
	for _, name := range []string{"open", "closed"} {
		_, err := fs.CreateBucketWith(bg, name, alice, BucketOptions{})
		want(t, err, nil)
	}
	want(t, fs.SetBucketGrants(bg, "open", all), nil)
	open, closed := mustLookup(t, fs, RootIno, "open").Ino, mustLookup(t, fs, RootIno, "closed").Ino
	put := func(key string) Ino {
		_, err := fs.PutObject(bg, ObjectName{"open", key}, strings.NewReader("of alice"), PutOptions{Size: 8, Owner: alice, Meta: ObjectMeta{Grants: all}})
		want(t, err, nil)
		return mustLookup(t, fs, open, key).Ino
	}
	bob := WithSubject(bg, modelSubjects["bob"])
	onto := func(key string) {
		_, err := fs.CopyObject(bob, ObjectName{"open", key}, ObjectName{"open", key}, CopyOptions{ReplaceMeta: true})
		want(t, err, nil)
	}

	program := put("program")
	mode := uint32(0o6777)
	_, err := fs.SetAttr(bg, Root, program, SetAttr{Mode: &mode})
	want(t, err, nil)
	onto("program")
	if a := mustLookup(t, fs, open, "program"); a.UID != bobUID || a.Mode&(ModeSetUID|ModeSetGID) != 0 {
		t.Errorf("a copy onto itself: owner %d, mode %o", a.UID, a.Mode)
	}

	linked := put("linked")
	_, err = fs.Link(bg, Root, linked, closed, "kept")
	want(t, err, nil)
	onto("linked")
	if a := mustLookup(t, fs, closed, "kept"); a.UID != aliceUID || a.Ino != linked {
		t.Errorf("the other name: %+v", a)
	}
	if a := mustLookup(t, fs, open, "linked"); a.UID != bobUID || a.Ino == linked {
		t.Errorf("the name that was copied onto itself: %+v", a)
	}
	info, err := fs.HeadObject(bg, ObjectName{"closed", "kept"}, GetOptions{})
	want(t, err, nil)
	if len(info.Meta.Grants) != len(all) {
		t.Errorf("grants of the other name: %+v", info.Meta.Grants)
	}
}

// TestCopyIntoItsBucket: a copy goes into the bucket that it was given, though
// another has its name by now, also for who may write everywhere.
func TestCopyIntoItsBucket(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	bucketFS(t, fs)
	put(t, fs, "source", "x")
	for name, ctx := range map[string]context.Context{"administrator": WithSubject(bg, &Subject{Admin: true}), "program": bg} {
		_, err := fs.CreateBucket(bg, name, Root)
		want(t, err, nil)
		info, err := fs.Authorize(ctx, ActWriteObject, ObjectName{name, ""})
		if err != nil || info.Ino == 0 {
			t.Fatalf("%s: %+v %v", name, info, err)
		}
		o := CopyOptions{Bucket: info.Ino}
		_, err = fs.CopyObject(ctx, ObjectName{"bucket", "source"}, ObjectName{name, "k"}, o)
		want(t, err, nil)
		_, err = fs.DeleteObject(ctx, ObjectName{name, "k"}, DeleteOptions{})
		want(t, err, nil)
		want(t, fs.DeleteBucket(bg, name), nil)
		_, err = fs.CreateBucket(bg, name, NewCred(aliceUID, 0))
		want(t, err, nil)
		_, err = fs.CopyObject(ctx, ObjectName{"bucket", "source"}, ObjectName{name, "k"}, o)
		wantErr(t, err, ErrNoSuchBucket)
	}
}

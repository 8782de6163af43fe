package vfs

import (
	"errors"
	"strings"
	"testing"
)

func as(uid uint32) *Subject { return &Subject{User: UserID("u"), UID: uid, GID: uid} }

// A name in a bucket of one's own gives nobody rights to another's file.
func TestLinkIntoOwnBucket(t *testing.T) {
	fs := openTest(t, openLocal(t))
	alice, bob := NewCred(aliceUID, aliceUID), NewCred(bobUID, bobUID)
	_, err := fs.CreateBucket(bg, "alices", alice)
	want(t, err, nil)
	own, err := fs.CreateBucket(bg, "bobs", bob)
	want(t, err, nil)
	_, err = fs.PutObject(bg, ObjectName{"alices", "open"}, strings.NewReader("text"), PutOptions{Size: -1, Owner: alice})
	want(t, err, nil)
	dir := mustLookup(t, fs, RootIno, "alices").Ino
	ino := mustLookup(t, fs, dir, "open").Ino
	_, err = fs.Link(bg, bob, ino, own.Ino, "mine")
	want(t, err, ErrPerm)
	// One that another made there, as root or by a rename, still is alice's.
	_, err = fs.Link(bg, Root, ino, own.Ino, "mine")
	want(t, err, nil)
	meta := func(uid uint32) error {
		return fs.SetObjectGrants(WithSubject(bg, as(uid)), ObjectName{"bobs", "mine"}, nil)
	}
	want(t, meta(bobUID), ErrAccess)
	_, err = fs.Link(bg, alice, ino, dir, "second")
	want(t, err, nil)
}

// A directory whose mode somebody chose does not go with its last object, and
// its mark and attributes do not go by a right to its entry alone.
func TestChosenDirectoryStays(t *testing.T) {
	fs := openTest(t, openLocal(t))
	alice := NewCred(aliceUID, aliceUID)
	b, err := fs.CreateBucketWith(bg, "bucket", alice, BucketOptions{Grants: Grants{{Grantee: GranteeEverybody, Permission: PermWrite}}})
	want(t, err, nil)
	put := func(key string) {
		t.Helper()
		_, err := fs.PutObject(bg, ObjectName{"bucket", key}, strings.NewReader("text"), PutOptions{Size: -1, Owner: alice})
		want(t, err, nil)
	}
	put("private/x")
	private := mustLookup(t, fs, b.Ino, "private").Ino
	mode := uint32(0o700)
	_, err = fs.SetAttr(bg, alice, private, SetAttr{Mode: &mode})
	want(t, err, nil)
	_, err = fs.DeleteObject(bg, ObjectName{"bucket", "private/x"}, DeleteOptions{})
	want(t, err, nil)
	if a := mustLookup(t, fs, b.Ino, "private"); a.Ino != private || a.Mode&0o777 != 0o700 {
		t.Errorf("the directory is %+v", a)
	}
	put("private/x")
	_, err = fs.DeleteObject(WithSubject(bg, as(bobUID)), ObjectName{"bucket", "private/"}, DeleteOptions{})
	want(t, err, ErrAccess)
}

// Who may write but not read learns nothing by conditions.
func TestConditionsTellNothing(t *testing.T) {
	fs := openTest(t, openLocal(t))
	alice := NewCred(aliceUID, aliceUID)
	_, err := fs.CreateBucketWith(bg, "bucket", alice, BucketOptions{Grants: Grants{{Grantee: GranteeEverybody, Permission: PermWrite}}})
	want(t, err, nil)
	info, err := fs.PutObject(bg, ObjectName{"bucket", "key"}, strings.NewReader("text"), PutOptions{Size: -1, Owner: alice})
	want(t, err, nil)
	put := func(key string, c Preconditions) error {
		_, err := fs.PutObject(WithSubject(bg, as(bobUID)), ObjectName{"bucket", key}, strings.NewReader("text"),
			PutOptions{Size: -1, Cond: c, MD5: make([]byte, 16), Owner: NewCred(bobUID, 0)})
		return err
	}
	for name, c := range map[string]Preconditions{
		"right ETag": {IfMatch: []ETag{info.ETag}}, "wrong ETag": {IfMatch: []ETag{"0"}}, "not this ETag": {IfNoneMatch: []ETag{info.ETag}},
	} {
		if err := put("key", c); !errors.Is(err, ErrAccess) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := put("none", Preconditions{IfMatch: []ETag{"0"}}); !errors.Is(err, ErrAccess) {
		t.Errorf("a missing key: %v", err)
	}
	want(t, put("none", Preconditions{IfNoneMatch: []ETag{"*"}}), ErrBadDigest)
	want(t, put("key", Preconditions{IfNoneMatch: []ETag{"*"}}), ErrPrecondition)
}

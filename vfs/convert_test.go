package vfs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
	"ogw/vfs/users"
)

// users1 are the users of a store of format 1: two share a uid.
var users1 = []users.User{
	{Name: "ann", UID: 10001, GID: 1, Keys: []users.AccessKey{{ID: "AKANN", Secret: "secret-ann", Created: 1}}},
	{Name: "bob", UID: 10001, GID: 1, Keys: []users.AccessKey{{ID: "AKBOB", Secret: "secret-bob", Created: 2}, {ID: "AKBOB2", Secret: "secret-bob2", Created: 3}}},
	{Name: "root", Admin: true, Keys: []users.AccessKey{{ID: "AKROOT", Secret: "secret-root", Created: 4}}},
}

const acl1Text = `{"grants":[{"user":"ann","permission":"READ"},{"user":"gone","permission":"FULL_CONTROL"},` +
	`{"group":"http://acs.amazonaws.com/groups/global/AllUsers","permission":"WRITE"},{"group":"of others","permission":"READ"}]}`

// makeFormat1 makes c a store as programs of format 1 left it, with files of
// uids.
func makeFormat1(t *testing.T, c *cluster.Cluster, uids ...uint32) {
	t.Helper()
	fs, err := Open(bg, c, Config{NoBackground: true})
	want(t, err, nil)
	bucketFS(t, fs)
	want(t, fs.SetBucketAttr(bg, "bucket", record.AclAttr1, []byte(acl1Text)), nil)
	legacy := ObjectMeta{Headers: map[string]string{record.AclHeader1: acl1Text, "Cache-Control": "none"}}
	for _, key := range []string{"a", "b", "c"} {
		_, err = fs.PutObject(bg, ObjectName{"bucket", key}, strings.NewReader("x"), PutOptions{Size: 1, Meta: legacy, Owner: NewCred(20000, 0)})
		want(t, err, nil)
	}
	for _, uid := range uids {
		_, err = fs.PutObject(bg, ObjectName{"bucket", fmt.Sprint("of ", uid)}, strings.NewReader("x"), PutOptions{Size: 1, Owner: NewCred(uid, 0)})
		want(t, err, nil)
	}
	put(t, fs, "plain", "x")
	want(t, fs.changeObject(bg, ActWriteObject, ObjectName{"bucket", "plain"}, func(_ *rights.Judge, n *record.Inode) error {
		n.Object.Headers = map[string]string{record.AclHeader1: "no JSON"}
		return nil
	}), nil)
	_, err = fs.CreateUpload(bg, ObjectName{"bucket", "up"}, PutOptions{Meta: legacy}, "", false)
	want(t, err, nil)
	want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error {
		super := fs.super
		super.Version = 1
		want(t, tx.Set(record.SuperKey(), super.Encode()), nil)
		for _, u := range users1 {
			e := record.Encoder{B: []byte{record.UserVersion1}}
			e.Uint(uint64(u.UID))
			e.Uint(uint64(u.GID))
			e.Bool(u.Admin)
			e.Uint(uint64(len(u.Keys)))
			for _, k := range u.Keys {
				e.Str(k.ID)
				e.Str(k.Secret)
				e.Int(k.Created)
				want(t, tx.Set(record.AccessIDKey(k.ID), []byte(u.Name)), nil)
			}
			want(t, tx.Set(record.UserNameKey(u.Name), e.B), nil)
		}
		return tx.Set(record.UserNameKey("damaged"), []byte{record.UserVersion1, 0xff})
	}), nil)
	want(t, fs.Close(bg), nil)
}

// checkFormat2 wants everything of makeFormat1 to be there, by ID.
func checkFormat2(t *testing.T, fs *FS) {
	t.Helper()
	for _, u := range users1 {
		got, err := fs.Users().ByName(bg, u.Name)
		if err != nil || !record.LooksLikeUserID(string(got.ID)) || got.UID != u.UID || got.GID != u.GID || got.Admin != u.Admin ||
			got.Founder != u.Admin || !slices.Equal(got.Keys, u.Keys) {
			t.Errorf("%+v %v", got, err)
		}
		for _, k := range u.Keys {
			if holder, key, err := fs.Users().ByKey(bg, k.ID); err != nil || holder.ID != got.ID || key != k {
				t.Errorf("%s: %+v %+v %v", k.ID, holder, key, err)
			}
		}
	}
	ann, err := fs.Users().ByUID(bg, 10001)
	if err != nil || ann.Name != "ann" {
		t.Error(ann, err)
	}
	grants := Grants{{Grantee: GranteeUser, User: ann.ID, Permission: PermRead}, {Grantee: GranteeEverybody, Permission: PermWrite}}
	if _, g, err := fs.BucketGrants(bg, "bucket"); err != nil || !slices.Equal(g, grants) {
		t.Error("bucket", g, err)
	}
	if _, v, err := fs.BucketAttr(bg, "bucket", record.AclAttr1); v != nil || err != nil {
		t.Errorf("%q %v", v, err)
	}
	for _, key := range []string{"a", "b", "c"} {
		info, err := fs.HeadObject(bg, ObjectName{"bucket", key}, GetOptions{})
		if err != nil || !slices.Equal(info.Meta.Grants, grants) || len(info.Meta.Headers) != 1 {
			t.Error(key, info, err)
		}
	}
	info, err := fs.HeadObject(bg, ObjectName{"bucket", "plain"}, GetOptions{})
	if err != nil || info.Meta.Grants != nil || len(info.Meta.Headers) != 0 {
		t.Error(info, err)
	}
	ups, err := fs.ListUploads(bg, "bucket", ListUploadsOptions{MaxUploads: 10})
	if err != nil || len(ups.Uploads) != 1 || !slices.Equal(ups.Uploads[0].Meta.Grants, grants) {
		t.Error(ups, err)
	}
	// The uid of a user whom format 1 forgot is not given to another.
	eve, err := fs.Users().Make(bg, users.User{Name: "eve"}, users.Options{FreeUID: true})
	if err != nil || eve.UID != 20001 {
		t.Error(eve, err)
	}
}

func TestConvertFormat1(t *testing.T) {
	for _, e := range engines {
		if e.name == "worst" {
			continue // TestConvertInterrupted
		}
		t.Run(e.name, func(t *testing.T) {
			c := e.open(t)
			makeFormat1(t, c)
			fs := openTest(t, c)
			checkFormat2(t, fs)
			// A name that had no user then grants whoever takes it nothing.
			gone, err := fs.Users().Make(bg, users.User{Name: "gone"}, users.Options{FreeUID: true})
			want(t, err, nil)
			info, err := fs.HeadObject(bg, ObjectName{"bucket", "a"}, GetOptions{})
			if err != nil || info.Meta.Grants.Allow(gone.ID, PermRead) {
				t.Error(info.Meta.Grants, err)
			}
		})
	}
}

// TestConvertInterrupted ends the process at each commit of the conversion,
// before and after it happened.
func TestConvertInterrupted(t *testing.T) {
	cut := errors.New("the process ends")
	for _, op := range []mem.Op{mem.OpCommit, mem.OpCommitted} {
		steps := 0
		for n := 1; ; n++ {
			disk := mem.NewDisk()
			makeFormat1(t, mem.New(mem.Options{Disk: disk}))
			faults := &mem.Faults{}
			faults.FailFrom(n, cut, op)
			fs, err := Open(bg, mem.New(mem.Options{Disk: disk, Faults: faults, Limits: cluster.Limits{Ops: 128}}), Config{NoBackground: true})
			if err == nil {
				faults.Clear()
				want(t, fs.Close(bg), nil)
				break
			}
			wantErr(t, err, cut)
			steps++
			disk.PowerCut()
			t.Run(fmt.Sprintf("%s %d", op, n), func(t *testing.T) {
				checkFormat2(t, openTest(t, mem.New(mem.Options{Disk: disk})))
			})
		}
		if steps < 10 {
			t.Errorf("%s: only %d steps", op, steps)
		}
	}
}

// TestFormatIsNewer: a program refuses a store that a later one made.
func TestFormatIsNewer(t *testing.T) {
	c := mem.New(mem.Options{})
	fs, err := Open(bg, c, Config{NoBackground: true})
	want(t, err, nil)
	want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error {
		super := fs.super
		super.Version = FormatVersion + 1
		return tx.Set(record.SuperKey(), super.Encode())
	}), nil)
	want(t, fs.Close(bg), nil)
	_, err = Open(bg, c, Config{NoBackground: true})
	wantErr(t, err, cluster.ErrFormat)
}

// TestHugeUIDs: neither a user nor a file of a huge uid ends the uids that are
// given.
func TestHugeUIDs(t *testing.T) {
	c := mem.New(mem.Options{})
	makeFormat1(t, c, record.EndUIDFloor-2, record.EndUIDFloor, 1<<31-1, 1<<31, 1<<32-2)
	fs := openTest(t, c)
	for i, uid := range []uint32{record.EndUIDFloor - 1, 1<<31 - 1, 1<<32 - 2} {
		want(t, fs.Users().Add(bg, users.User{Name: fmt.Sprint("huge", i), UID: uid}), nil)
	}
	for i := range uint32(3) {
		u, err := fs.Users().Make(bg, users.User{Name: fmt.Sprint("next", i)}, users.Options{FreeUID: true})
		if err != nil || u.UID != record.EndUIDFloor+i {
			t.Errorf("%+v %v", u, err)
		}
	}
}

// TestSharedUID: of two users who have one uid, as in stores of format 1, the one
// who stays keeps it, whoever goes first.
func TestSharedUID(t *testing.T) {
	for _, gone := range []string{"ann", "bob"} {
		for _, left := range []bool{false, true} { // the index, by an earlier program
			c := mem.New(mem.Options{})
			makeFormat1(t, c)
			fs := openTest(t, c)
			old, err := fs.Users().ByName(bg, gone)
			want(t, err, nil)
			want(t, fs.Users().Remove(bg, gone), nil)
			stays := map[string]string{"ann": "bob", "bob": "ann"}[gone]
			if left {
				want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error { return tx.Set(record.UIDKey(10001), []byte(old.ID)) }), nil)
			} else if u, err := fs.Users().ByUID(bg, 10001); err != nil || u.Name != stays {
				t.Errorf("%s went: %+v %v", gone, u, err)
			}
			_, err = fs.Users().Make(bg, users.User{Name: "heir", UID: 10001}, users.Options{Inherit: true})
			wantErr(t, err, ErrUserExists)
			want(t, fs.Users().Remove(bg, stays), nil)
			heir, err := fs.Users().Make(bg, users.User{Name: "heir", UID: 10001}, users.Options{Inherit: true})
			want(t, err, nil)
			if u, err := fs.Users().ByUID(bg, 10001); err != nil || u.ID != heir.ID {
				t.Errorf("%+v %v", u, err)
			}
			mustBeClean(t, fs)
		}
	}
}

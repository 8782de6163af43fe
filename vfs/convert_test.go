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
)

// users1 are the users of a store of format 1: two share a uid.
var users1 = []User{
	{Name: "ann", UID: 10001, GID: 1, Keys: []AccessKey{{"AKANN", "secret-ann", 1}}},
	{Name: "bob", UID: 10001, GID: 1, Keys: []AccessKey{{"AKBOB", "secret-bob", 2}, {"AKBOB2", "secret-bob2", 3}}},
	{Name: "root", Admin: true, Keys: []AccessKey{{"AKROOT", "secret-root", 4}}},
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
		_, err = fs.PutObject(bg, "bucket", key, strings.NewReader("x"), PutOptions{Size: 1, Meta: legacy, Owner: &Cred{UID: 20000}})
		want(t, err, nil)
	}
	for _, uid := range uids {
		_, err = fs.PutObject(bg, "bucket", fmt.Sprint("of ", uid), strings.NewReader("x"), PutOptions{Size: 1, Owner: &Cred{UID: uid}})
		want(t, err, nil)
	}
	put(t, fs, "plain", "x")
	want(t, fs.SetObjectHeader(bg, "bucket", "plain", record.AclHeader1, "no JSON"), nil)
	_, err = fs.CreateUpload(bg, "bucket", "up", PutOptions{Meta: legacy}, "", false)
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
				want(t, tx.Set(record.AccessKey(k.ID), []byte(u.Name)), nil)
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
		got, err := fs.GetUser(bg, u.Name)
		if err != nil || !looksLikeUserID(string(got.ID)) || got.UID != u.UID || got.GID != u.GID || got.Admin != u.Admin ||
			got.Founder != u.Admin || !slices.Equal(got.Keys, u.Keys) {
			t.Errorf("%+v %v", got, err)
		}
		for _, k := range u.Keys {
			if holder, key, err := fs.UserByKey(bg, k.ID); err != nil || holder.ID != got.ID || key != k {
				t.Errorf("%s: %+v %+v %v", k.ID, holder, key, err)
			}
		}
	}
	ann, err := fs.UserByUID(bg, 10001)
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
		info, err := fs.HeadObject(bg, "bucket", key, GetOptions{})
		if err != nil || !slices.Equal(info.Meta.Grants, grants) || len(info.Meta.Headers) != 1 {
			t.Error(key, info, err)
		}
	}
	info, err := fs.HeadObject(bg, "bucket", "plain", GetOptions{})
	if err != nil || info.Meta.Grants != nil || len(info.Meta.Headers) != 0 {
		t.Error(info, err)
	}
	ups, err := fs.ListUploads(bg, "bucket", "", "", "", "", 10)
	if err != nil || len(ups.Uploads) != 1 || !slices.Equal(ups.Uploads[0].Meta.Grants, grants) {
		t.Error(ups, err)
	}
	// The uid of a user whom format 1 forgot is not given to another.
	eve, err := fs.MakeUser(bg, User{Name: "eve"}, UserOptions{FreeUID: true})
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
			gone, err := fs.MakeUser(bg, User{Name: "gone"}, UserOptions{FreeUID: true})
			want(t, err, nil)
			info, err := fs.HeadObject(bg, "bucket", "a", GetOptions{})
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

package vfs

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

func TestUsers(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		u := User{Name: "u", UID: 7, GID: 8, Keys: []AccessKey{{"AK1", "s1", 1}, {"AK2", "s2", 2}}}
		want(t, fs.AddUser(bg, u), nil)
		wantErr(t, fs.AddUser(bg, u), ErrUserExists)
		wantErr(t, fs.AddUser(bg, User{Name: "v", UID: 8, Keys: []AccessKey{{"AK2", "x", 0}}}), ErrUserExists)
		wantErr(t, fs.AddUser(bg, User{Name: "v", UID: 8, Keys: []AccessKey{{"AK3", "x", 0}, {"AK3", "y", 0}}}), ErrUserExists)
		wantErr(t, fs.AddUser(bg, User{Name: "v", UID: 7}), ErrUserExists)
		wantErr(t, fs.AddUser(bg, User{}), ErrInvalid)
		wantErr(t, fs.AddUser(bg, User{Name: "v", UID: NobodyUID}), ErrInvalid)
		wantErr(t, fs.AddUser(bg, User{Name: string(newUserID()), UID: 8}), ErrInvalid)
		want(t, fs.AddUser(bg, User{Name: "root", Admin: true, Founder: true}), nil)
		for range 2 { // once from the store, once from the cache
			got, key, err := fs.UserByKey(bg, "AK2")
			if err != nil || got.Name != "u" || got.UID != 7 || key.Secret != "s2" || len(got.Keys) != 0 || !looksLikeUserID(string(got.ID)) {
				t.Errorf("%+v %+v %v", got, key, err)
			}
		}
		_, _, err := fs.UserByKey(bg, "AK3")
		wantErr(t, err, ErrNoSuchUser)
		want(t, fs.UpdateUser(bg, "u", func(u *User) error {
			u.Keys = []AccessKey{{"AK2", "rotated", 3}, {"AK3", "s3", 4}}
			return nil
		}), nil)
		wantErr(t, fs.UpdateUser(bg, "u", func(u *User) error { u.UID = 9; return nil }), ErrInvalid)
		if _, key, err := fs.UserByKey(bg, "AK2"); err != nil || key.Secret != "rotated" {
			t.Error(key, err)
		}
		_, _, err = fs.UserByKey(bg, "AK1")
		wantErr(t, err, ErrNoSuchUser)
		if got, err := fs.UserByUID(bg, 7); err != nil || got.Name != "u" {
			t.Error(got, err)
		}
		_, err = fs.UserByUID(bg, 99)
		wantErr(t, err, ErrNoSuchUser)
		list, err := fs.ListUsers(bg)
		if err != nil || len(list) != 2 || list[0].Name != "root" || list[1].Keys[1].ID != "AK3" {
			t.Error(list, err)
		}
		if f, err := fs.Founder(bg); err != nil || f.Name != "root" || !f.Admin {
			t.Error(f, err)
		}
		want(t, fs.RemoveUser(bg, "u"), nil)
		wantErr(t, fs.RemoveUser(bg, "u"), ErrNoSuchUser)
		_, _, err = fs.UserByKey(bg, "AK2")
		wantErr(t, err, ErrNoSuchUser)
		want(t, fs.RemoveUser(bg, "root"), nil)
		_, err = fs.Founder(bg)
		wantErr(t, err, ErrNoSuchUser)
		mustBeClean(t, fs)
	})
}

// TestIdentitiesStay: what a user had goes to nobody by the name or the uid.
func TestIdentitiesStay(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		ann, err := fs.MakeUser(bg, User{Name: "ann"}, UserOptions{FreeUID: true})
		want(t, err, nil)
		if ann.UID != FirstUID || ann.GID != FirstUID || ann.Created == 0 {
			t.Errorf("%+v", ann)
		}
		renamed, err := fs.RenameUser(bg, "ann", "anna")
		if err != nil || renamed.ID != ann.ID || renamed.Name != "anna" {
			t.Error(renamed, err)
		}
		_, err = fs.GetUser(bg, "ann")
		wantErr(t, err, ErrNoSuchUser)
		_, err = fs.RenameUser(bg, "ann", "x")
		wantErr(t, err, ErrNoSuchUser)
		// The name is free, and only the name.
		second, err := fs.MakeUser(bg, User{Name: "ann"}, UserOptions{FreeUID: true})
		want(t, err, nil)
		if second.ID == ann.ID || second.UID == ann.UID {
			t.Errorf("%+v has what %+v had", second, ann)
		}
		_, err = fs.RenameUser(bg, "ann", "anna")
		wantErr(t, err, ErrUserExists)
		for _, bad := range []string{"", string(ann.ID)} {
			_, err = fs.RenameUser(bg, "ann", bad)
			wantErr(t, err, ErrInvalid)
		}

		want(t, fs.RemoveUser(bg, "anna"), nil)
		_, err = fs.UserByID(bg, ann.ID)
		wantErr(t, err, ErrNoSuchUser)
		_, err = fs.UserByUID(bg, ann.UID)
		wantErr(t, err, ErrNoSuchUser)
		third, err := fs.MakeUser(bg, User{Name: "anna"}, UserOptions{FreeUID: true})
		want(t, err, nil)
		if third.UID == ann.UID || third.ID == ann.ID {
			t.Errorf("%+v has what %+v had", third, ann)
		}
		wantErr(t, fs.AddUser(bg, User{Name: "heir", UID: ann.UID}), ErrUIDTaken)
		_, err = fs.MakeUser(bg, User{Name: "heir", UID: second.UID}, UserOptions{Inherit: true})
		wantErr(t, err, ErrUserExists)
		heir, err := fs.MakeUser(bg, User{Name: "heir", UID: ann.UID}, UserOptions{Inherit: true})
		want(t, err, nil)
		if got, err := fs.UserByUID(bg, ann.UID); err != nil || got.ID != heir.ID || heir.ID == ann.ID {
			t.Error(got, err)
		}
	})
}

func TestFreeUID(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	next := func() uint32 {
		t.Helper()
		var uid uint32
		want(t, fs.view(bg, func(r cluster.Reader) (err error) {
			uid, err = freeUID(r)
			return err
		}), nil)
		return uid
	}
	take := func(uid uint32) {
		t.Helper()
		want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error { return tx.Set(record.UIDKey(uid), []byte("x")) }), nil)
	}
	for _, c := range []struct{ take, next uint32 }{
		{5, FirstUID}, {FirstUID + 1, FirstUID}, {FirstUID, FirstUID + 2}, {endUID - 1, FirstUID + 2},
	} {
		take(c.take)
		if got := next(); got != c.next {
			t.Errorf("after %d: %d, want %d", c.take, got, c.next)
		}
	}
	floor := func(n uint64) {
		want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error { return record.SetCounter(tx, record.CounterUID, n) }), nil)
	}
	if floor(NobodyUID); next() != NobodyUID+1 {
		t.Error("nobody's uid is given")
	}
	take(NobodyUID)
	take(NobodyUID + 1)
	if next() != NobodyUID+2 {
		t.Error("taken", next())
	}
	// What an earlier program noted of a huge uid leaves half of the range.
	for _, n := range []uint64{endUID - 1, endUID, 1<<32 - 1, 1 << 32} {
		if floor(n); next() != endFloor {
			t.Errorf("above %d: %d", n, next())
		}
	}
	take(endFloor)
	if next() != endFloor+1 {
		t.Error("taken", next())
	}
}

// TestHugeUIDs: neither a user nor a file of a huge uid ends the uids that are
// given.
func TestHugeUIDs(t *testing.T) {
	c := mem.New(mem.Options{})
	makeFormat1(t, c, endFloor-2, endFloor, endUID-1, endUID, 1<<32-2)
	fs := openTest(t, c)
	for i, uid := range []uint32{endFloor - 1, endUID - 1, 1<<32 - 2} {
		want(t, fs.AddUser(bg, User{Name: fmt.Sprint("huge", i), UID: uid}), nil)
	}
	for i := range uint32(3) {
		u, err := fs.MakeUser(bg, User{Name: fmt.Sprint("next", i)}, UserOptions{FreeUID: true})
		if err != nil || u.UID != endFloor+i {
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
			old, err := fs.GetUser(bg, gone)
			want(t, err, nil)
			want(t, fs.RemoveUser(bg, gone), nil)
			stays := map[string]string{"ann": "bob", "bob": "ann"}[gone]
			if left {
				want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error { return tx.Set(record.UIDKey(10001), []byte(old.ID)) }), nil)
			} else if u, err := fs.UserByUID(bg, 10001); err != nil || u.Name != stays {
				t.Errorf("%s went: %+v %v", gone, u, err)
			}
			_, err = fs.MakeUser(bg, User{Name: "heir", UID: 10001}, UserOptions{Inherit: true})
			wantErr(t, err, ErrUserExists)
			want(t, fs.RemoveUser(bg, stays), nil)
			heir, err := fs.MakeUser(bg, User{Name: "heir", UID: 10001}, UserOptions{Inherit: true})
			want(t, err, nil)
			if u, err := fs.UserByUID(bg, 10001); err != nil || u.ID != heir.ID {
				t.Errorf("%+v %v", u, err)
			}
		}
	}
}

func TestUserRecord(t *testing.T) {
	u := User{ID: "AIDAX", Name: "n", UID: 1, GID: 2, Admin: true, Founder: true, Created: 3, removed: 4,
		Keys: []AccessKey{{"k", "s", 5}, {"l", "t", 6}}}
	e := record.Encoder{B: nil}
	e.Field(99, []byte("of a later program"))
	u.later = e.B
	got, err := decodeUser(u.ID, u.encode(nil), nil)
	if err != nil || !reflect.DeepEqual(got, u) {
		t.Errorf("%+v %v", got, err)
	}
	for cut := range u.encode(nil) {
		if got, err := decodeUser(u.ID, u.encode(nil)[:cut], nil); err == nil && reflect.DeepEqual(got, u) {
			t.Errorf("%d bytes are enough", cut)
		}
	}
}

func TestSettings(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	own := errors.New("own")
	if v, err := fs.Setting(bg, "s"); v != nil || err != nil {
		t.Error(v, err)
	}
	want(t, fs.UpdateSetting(bg, "s", func(old []byte) ([]byte, error) { return append(old, 'x'), nil }), nil)
	want(t, fs.UpdateSetting(bg, "s", func(old []byte) ([]byte, error) { return append(old, 'y'), nil }), nil)
	wantErr(t, fs.UpdateSetting(bg, "s", func(old []byte) ([]byte, error) { return nil, own }), own)
	if v, err := fs.Setting(bg, "s"); string(v) != "xy" || err != nil {
		t.Error(v, err)
	}
	want(t, fs.UpdateSetting(bg, "s", func(old []byte) ([]byte, error) { return nil, nil }), nil)
	wantErr(t, fs.UpdateSetting(bg, "", nil), ErrInvalid)
	dumpEmpty(t, fs)
}

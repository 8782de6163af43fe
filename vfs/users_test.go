package vfs

import (
	"errors"
	"testing"

	"ogw/cluster/mem"
)

func TestUsers(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		u := User{Name: "u", UID: 7, GID: 8, Keys: []AccessKey{{"AK1", "s1", 1}, {"AK2", "s2", 2}}}
		want(t, fs.AddUser(bg, u), nil)
		wantErr(t, fs.AddUser(bg, u), ErrUserExists)
		wantErr(t, fs.AddUser(bg, User{Name: "v", Keys: []AccessKey{{"AK2", "x", 0}}}), ErrUserExists)
		wantErr(t, fs.AddUser(bg, User{Name: "v", Keys: []AccessKey{{"AK3", "x", 0}, {"AK3", "y", 0}}}), ErrUserExists)
		wantErr(t, fs.AddUser(bg, User{}), ErrInvalid)
		want(t, fs.AddUser(bg, User{Name: "root", Admin: true, UID: 7}), nil)
		for range 2 { // once from the store, once from the cache
			got, key, err := fs.UserByKey(bg, "AK2")
			if err != nil || got.Name != "u" || got.UID != 7 || key.Secret != "s2" || len(got.Keys) != 2 {
				t.Errorf("%+v %+v %v", got, key, err)
			}
		}
		_, _, err := fs.UserByKey(bg, "AK3")
		wantErr(t, err, ErrNoSuchUser)
		want(t, fs.UpdateUser(bg, "u", func(u *User) error {
			u.Keys = []AccessKey{{"AK2", "rotated", 3}, {"AK3", "s3", 4}}
			return nil
		}), nil)
		if _, key, err := fs.UserByKey(bg, "AK2"); err != nil || key.Secret != "rotated" {
			t.Error(key, err)
		}
		_, _, err = fs.UserByKey(bg, "AK1")
		wantErr(t, err, ErrNoSuchUser)
		if got, err := fs.UserByUID(bg, 7); err != nil || got.Name != "root" || !got.Admin {
			t.Error(got, err)
		}
		_, err = fs.UserByUID(bg, 99)
		wantErr(t, err, ErrNoSuchUser)
		list, err := fs.ListUsers(bg)
		if err != nil || len(list) != 2 || list[0].Name != "root" || list[1].Keys[1].ID != "AK3" {
			t.Error(list, err)
		}
		want(t, fs.RemoveUser(bg, "u"), nil)
		wantErr(t, fs.RemoveUser(bg, "u"), ErrNoSuchUser)
		_, _, err = fs.UserByKey(bg, "AK2")
		wantErr(t, err, ErrNoSuchUser)
		want(t, fs.RemoveUser(bg, "root"), nil)
		dumpEmpty(t, fs)
	})
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

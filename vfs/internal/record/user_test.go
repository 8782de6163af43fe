package record

import (
	"bytes"
	"encoding/base64"
	"errors"
	"reflect"
	"testing"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/seal"
)

func TestUserRecord(t *testing.T) {
	u := User{ID: "AIDAX", Name: "n", UID: 1, GID: 2, Admin: true, Founder: true, Created: 3, removed: 4,
		Keys: []AccessKey{{"k", "s", 5}, {"l", "t", 6}}}
	e := Encoder{B: nil}
	e.Field(99, []byte("of a later program"))
	u.later = e.B
	got, err := DecodeUser(u.ID, u.Encode(nil), nil)
	if err != nil || !reflect.DeepEqual(got, u) {
		t.Errorf("%+v %v", got, err)
	}
	for cut := range u.Encode(nil) {
		if got, err := DecodeUser(u.ID, u.Encode(nil)[:cut], nil); err == nil && reflect.DeepEqual(got, u) {
			t.Errorf("%d bytes are enough", cut)
		}
	}
}

// TestSealedSecretElsewhere: a sealed secret is good for one access key of one
// user.
func TestSealedSecretElsewhere(t *testing.T) {
	keys, err := seal.Parse(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, seal.KeyBytes)))
	if err != nil {
		t.Fatal(err)
	}
	eve := User{ID: "eve", Name: "eve", UID: 1, Keys: []AccessKey{{ID: "AKEVE", Secret: "known-to-eve"}}}
	known := string(StoredSecrets(eve.Encode(keys))[0].Bytes)
	for _, c := range []struct {
		user UserID
		key  string
		want error
	}{{"eve", "AKEVE", nil}, {"root", "AKEVE", fserr.ErrCorrupt}, {"eve", "AKROOT", fserr.ErrCorrupt}} {
		forged := User{ID: c.user, sealed: map[string]string{c.key: known}, Keys: []AccessKey{{ID: c.key}}}
		if u, err := DecodeUser(c.user, forged.Encode(nil), keys); !errors.Is(err, c.want) {
			t.Errorf("%s %s: %+v %v", c.user, c.key, u, err)
		}
	}
}

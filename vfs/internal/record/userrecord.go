package record

import (
	"encoding/binary"
	"errors"
	"fmt"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/seal"
)

const (
	// userVersion is the version of the record; 1 is that of stores of format
	// 1 (DecodeUser1).
	userVersion = 2
	// kindUser is the kind of identity that the record is of. Groups and roles
	// would be further kinds in the same table, since grants name any of them.
	kindUser = 1
)

// The fields of a user record. A number is never used again; a program keeps
// fields that it does not know.
const (
	fieldName    = 1
	fieldUID     = 2
	fieldGID     = 3
	fieldFlags   = 4
	fieldCreated = 5 // Unix nanoseconds
	fieldRemoved = 6 // Unix nanoseconds
	fieldKey     = 7 // one for each access key
)

// The bits of fieldFlags.
const (
	userAdmin = 1 << iota
	userFounder
)

// The forms of a stored secret.
const (
	secretClear  = 0 // as it is
	secretSealed = 1 // see package seal
)

// sealContext is what a secret is sealed for: one user's access key.
func (u *User) sealContext(key string) string { return "user " + string(u.ID) + " key " + key }

// Encode returns the stored form; the ID is in the key. Layout: version byte,
// kind byte, and fields up to the end: each its number, the length of its
// value, and the value. Numbers are uvarints.
//
// Secrets are sealed with keys, if there are any.
func (u *User) Encode(keys *seal.Keyring) []byte {
	flags := uint64(0)
	if u.Admin {
		flags |= userAdmin
	}
	if u.Founder {
		flags |= userFounder
	}
	e := Encoder{B: []byte{userVersion, kindUser}}
	e.Field(fieldName, []byte(u.Name))
	for _, f := range [...]struct{ number, value uint64 }{
		{fieldUID, uint64(u.UID)}, {fieldGID, uint64(u.GID)}, {fieldFlags, flags},
		{fieldCreated, uint64(u.Created)}, {fieldRemoved, uint64(u.removed)},
	} {
		if f.value != 0 {
			e.Field(f.number, binary.AppendUvarint(nil, f.value))
		}
	}
	for i := range u.Keys {
		e.Field(fieldKey, u.encodeKey(&u.Keys[i], keys))
	}
	e.B = append(e.B, u.later...)
	return e.B
}

// encodeKey returns the stored form: ID, the form of the secret, the secret,
// and the creation.
func (u *User) encodeKey(k *AccessKey, keys *seal.Keyring) []byte {
	var e Encoder
	e.Str(k.ID)
	switch sealed := u.sealed[k.ID]; {
	case k.Secret == "" && sealed != "":
		e.Byte(secretSealed)
		e.Str(sealed)
	case keys != nil:
		e.Byte(secretSealed)
		e.Bytes(keys.Seal([]byte(k.Secret), u.sealContext(k.ID)))
	default:
		e.Byte(secretClear)
		e.Str(k.Secret)
	}
	e.Int(k.Created)
	return e.B
}

// decodeKey adds a key. A secret that keys cannot open is locked.
func (u *User) decodeKey(b []byte, keys *seal.Keyring) error {
	d := Decoder{B: b, What: "access key"}
	k := AccessKey{ID: d.Str()}
	form, stored := d.Byte(), d.Bytes()
	k.Created = d.Int()
	if form > secretSealed {
		d.Fail()
	}
	if err := d.End(); err != nil {
		return err
	}
	if form == secretClear {
		k.Secret = string(stored)
	} else {
		secret, err := keys.Open(stored, u.sealContext(k.ID))
		switch {
		case errors.Is(err, seal.ErrUnknownKey):
			if u.sealed == nil {
				u.sealed = make(map[string]string)
			}
			u.sealed[k.ID] = string(stored)
		case err != nil:
			return fmt.Errorf("%w: secret of access key %q: %w", fserr.ErrCorrupt, k.ID, err)
		}
		k.Secret = string(secret)
	}
	u.Keys = append(u.Keys, k)
	return nil
}

// DecodeUser reads what Encode wrote. It keeps no part of b.
func DecodeUser(id UserID, b []byte, keys *seal.Keyring) (User, error) {
	d := Decoder{B: b, What: "user"}
	u := User{ID: id}
	if version, kind := d.Byte(), d.Byte(); version != userVersion || kind != kindUser {
		return u, fmt.Errorf("%w: user %s has format %d, kind %d", fserr.ErrCorrupt, id, version, kind)
	}
	for len(d.B) > 0 {
		number, value := d.Uint(), d.Bytes()
		if d.Err != nil {
			break
		}
		if err := u.decodeField(number, value, keys); err != nil {
			return u, err
		}
	}
	return u, d.End()
}

func (u *User) decodeField(number uint64, value []byte, keys *seal.Keyring) error {
	d := Decoder{B: value, What: "user"}
	switch number {
	case fieldName:
		u.Name = string(value)
		return nil
	case fieldUID:
		u.UID = uint32(d.Uint())
	case fieldGID:
		u.GID = uint32(d.Uint())
	case fieldFlags:
		flags := d.Uint()
		u.Admin, u.Founder = flags&userAdmin != 0, flags&userFounder != 0
	case fieldCreated:
		u.Created = int64(d.Uint())
	case fieldRemoved:
		u.removed = int64(d.Uint())
	case fieldKey:
		return u.decodeKey(value, keys)
	default:
		e := Encoder{B: u.later}
		e.Field(number, value)
		u.later = e.B
		return nil
	}
	return d.End()
}

// StoredSecret is the secret of an access key in the form that it is stored
// in.
type StoredSecret struct {
	Key    string // the access key's ID
	Sealed bool
	Bytes  []byte
}

// StoredSecrets returns those of a user record that DecodeUser read.
func StoredSecrets(b []byte) (list []StoredSecret) {
	for d := (Decoder{B: b[2:], What: "user"}); len(d.B) > 0; {
		number, value := d.Uint(), d.Bytes()
		if number == fieldKey && d.Err == nil {
			k := Decoder{B: value, What: "access key"}
			list = append(list, StoredSecret{k.Str(), k.Byte() == secretSealed, k.Bytes()})
		}
	}
	return list
}

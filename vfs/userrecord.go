package vfs

import (
	"encoding/binary"
	"fmt"
)

const (
	// userVersion is the version of the record; 1 is that of stores of format
	// 1 (userv1.go).
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

// secretClear is the form of a secret that is stored as it is.
const secretClear = 0

// encode returns the stored form; the ID is in the key. Layout: version byte,
// kind byte, and fields up to the end: each its number, the length of its
// value, and the value. Numbers are uvarints.
func (u *User) encode() []byte {
	flags := uint64(0)
	if u.Admin {
		flags |= userAdmin
	}
	if u.Founder {
		flags |= userFounder
	}
	e := encoder{b: []byte{userVersion, kindUser}}
	e.field(fieldName, []byte(u.Name))
	for _, f := range [...]struct{ number, value uint64 }{
		{fieldUID, uint64(u.UID)}, {fieldGID, uint64(u.GID)}, {fieldFlags, flags},
		{fieldCreated, uint64(u.Created)}, {fieldRemoved, uint64(u.removed)},
	} {
		if f.value != 0 {
			e.field(f.number, binary.AppendUvarint(nil, f.value))
		}
	}
	for i := range u.Keys {
		e.field(fieldKey, u.Keys[i].encode())
	}
	e.b = append(e.b, u.later...)
	return e.b
}

func (e *encoder) field(number uint64, value []byte) {
	e.uint(number)
	e.bytes(value)
}

// encode returns the stored form: ID, the form of the secret, the secret, and
// the creation.
func (k *AccessKey) encode() []byte {
	var e encoder
	e.str(k.ID)
	e.byte(secretClear)
	e.str(k.Secret)
	e.int(k.Created)
	return e.b
}

func decodeAccessKey(b []byte) (AccessKey, error) {
	d := decoder{b: b, what: "access key"}
	k := AccessKey{ID: d.str()}
	if form := d.byte(); form != secretClear {
		d.fail()
	}
	k.Secret, k.Created = d.str(), d.int()
	return k, d.end()
}

func decodeUser(id UserID, b []byte) (User, error) {
	d := decoder{b: b, what: "user"}
	u := User{ID: id}
	if version, kind := d.byte(), d.byte(); version != userVersion || kind != kindUser {
		return u, fmt.Errorf("%w: user %s has format %d, kind %d", ErrCorrupt, id, version, kind)
	}
	for len(d.b) > 0 {
		number, value := d.uint(), d.bytes()
		if d.err != nil {
			break
		}
		if err := u.decodeField(number, value); err != nil {
			return u, err
		}
	}
	return u, d.end()
}

func (u *User) decodeField(number uint64, value []byte) error {
	d := decoder{b: value, what: "user"}
	switch number {
	case fieldName:
		u.Name = string(value)
		return nil
	case fieldUID:
		u.UID = uint32(d.uint())
	case fieldGID:
		u.GID = uint32(d.uint())
	case fieldFlags:
		flags := d.uint()
		u.Admin, u.Founder = flags&userAdmin != 0, flags&userFounder != 0
	case fieldCreated:
		u.Created = int64(d.uint())
	case fieldRemoved:
		u.removed = int64(d.uint())
	case fieldKey:
		k, err := decodeAccessKey(value)
		u.Keys = append(u.Keys, k)
		return err
	default:
		e := encoder{b: u.later}
		e.field(number, value)
		u.later = e.b
		return nil
	}
	return d.end()
}

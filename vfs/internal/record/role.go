package record

import (
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
)

// Role is what key 'a' holds: an identity without keys, which others assume for a
// time. What its sessions make is owned by its uid, which nobody else gets.
//
// Value: version byte; name; path; description; creation; uid; longest session in
// seconds; the text of the trust policy, which names identities by ID.
type Role struct {
	ID          string
	Name        string
	Path        string // "/" or "/a/b/"
	Description string
	Created     int64 // Unix nanoseconds
	UID         uint32
	MaxSession  int // seconds
	Trust       []byte
}

const roleVersion = 1

// Encode returns the stored form; the ID is in the key.
func (x *Role) Encode() []byte {
	var e Encoder
	e.Byte(roleVersion)
	e.Str(x.Name)
	e.Str(x.Path)
	e.Str(x.Description)
	e.Int(x.Created)
	e.Uint(uint64(x.UID))
	e.Uint(uint64(x.MaxSession))
	e.Bytes(x.Trust)
	return e.B
}

// DecodeRole reads what Encode wrote. It keeps no part of v.
func DecodeRole(id string, v []byte) (x Role, err error) {
	d := Decoder{B: v, What: "role"}
	if version := d.Byte(); version != roleVersion {
		return x, fmt.Errorf("%w: role has format %d", fserr.ErrCorrupt, version)
	}
	x = Role{ID: id, Name: d.Str(), Path: d.Str(), Description: d.Str(), Created: d.Int(), UID: uint32(d.Uint()),
		MaxSession: int(d.Uint()), Trust: slices.Clone(d.Bytes())}
	return x, d.End()
}

// GetRole reads a role, nil if there is none.
func GetRole(r cluster.Reader, id string) (*Role, error) {
	v, err := r.Get(RoleKey(id))
	if err != nil || v == nil {
		return nil, err
	}
	x, err := DecodeRole(id, v)
	return &x, err
}

// Provider is what key 'w' holds: who signs web identities, by the URL in the key
// ("https://" left out).
//
// Value: version byte; creation; the audiences; the SHA-1 fingerprints of
// certificates, in hexadecimal.
type Provider struct {
	URL         string
	Created     int64 // Unix nanoseconds
	Audiences   []string
	Thumbprints []string
}

const providerVersion = 1

// Encode returns the stored form; the URL is in the key.
func (x *Provider) Encode() []byte {
	var e Encoder
	e.Byte(providerVersion)
	e.Int(x.Created)
	e.strs(x.Audiences)
	e.strs(x.Thumbprints)
	return e.B
}

// DecodeProvider reads what Encode wrote.
func DecodeProvider(url string, v []byte) (x Provider, err error) {
	d := Decoder{B: v, What: "identity provider"}
	if version := d.Byte(); version != providerVersion {
		return x, fmt.Errorf("%w: identity provider has format %d", fserr.ErrCorrupt, version)
	}
	x = Provider{URL: url, Created: d.Int(), Audiences: d.strs(), Thumbprints: d.strs()}
	return x, d.End()
}

package record

import (
	"fmt"
	"slices"

	"ogw/vfs/internal/fserr"
)

// ManagedPolicy is what key 'P' holds: a policy with a name of its own, which
// identities are attached to.
//
// Value: version byte; name; path; description; creation; last change; number of the
// version in force; number that the next one gets; the versions, each its number,
// creation and text.
type ManagedPolicy struct {
	ID          string
	Name        string
	Path        string // "/" or "/a/b/"
	Description string
	Created     int64 // Unix nanoseconds
	Updated     int64 // Unix nanoseconds
	Default     int   // number of the version in force
	Next        int   // a number is never given twice
	Versions    []PolicyVersion
}

// PolicyVersion is one text of a managed policy, which never changes.
type PolicyVersion struct {
	Number  int
	Created int64 // Unix nanoseconds
	Text    []byte
}

const managedPolicyVersion = 1

// Version returns the version of a number, nil if there is none.
func (p *ManagedPolicy) Version(number int) *PolicyVersion {
	i := slices.IndexFunc(p.Versions, func(v PolicyVersion) bool { return v.Number == number })
	if i < 0 {
		return nil
	}
	return &p.Versions[i]
}

// Encode returns the stored form; the ID is in the key.
func (p *ManagedPolicy) Encode() []byte {
	var e Encoder
	e.Byte(managedPolicyVersion)
	e.Str(p.Name)
	e.Str(p.Path)
	e.Str(p.Description)
	e.Int(p.Created)
	e.Int(p.Updated)
	e.Uint(uint64(p.Default))
	e.Uint(uint64(p.Next))
	e.Uint(uint64(len(p.Versions)))
	for _, v := range p.Versions {
		e.Uint(uint64(v.Number))
		e.Int(v.Created)
		e.Bytes(v.Text)
	}
	return e.B
}

// DecodeManagedPolicy reads what Encode wrote. It keeps no part of v.
func DecodeManagedPolicy(id string, v []byte) (p ManagedPolicy, err error) {
	d := Decoder{B: v, What: "managed policy"}
	if version := d.Byte(); version != managedPolicyVersion {
		return p, fmt.Errorf("%w: managed policy has format %d", fserr.ErrCorrupt, version)
	}
	p = ManagedPolicy{ID: id, Name: d.Str(), Path: d.Str(), Description: d.Str(), Created: d.Int(), Updated: d.Int(),
		Default: int(d.Uint()), Next: int(d.Uint())}
	for range d.Count() {
		p.Versions = append(p.Versions, PolicyVersion{int(d.Uint()), d.Int(), slices.Clone(d.Bytes())})
	}
	if d.Err == nil && p.Version(p.Default) == nil {
		d.Fail()
	}
	return p, d.End()
}

package record

import (
	"crypto/rand"
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
)

// Permissions is what key 'A' holds: the policies of an identity, which is a user,
// a group or a role. An identity without any has no record.
//
// Value: version byte; the inline policies, each its name and its text; the IDs of the
// managed policies; the ID of the permission boundary, "" for none; the IDs of the
// groups that the identity is in.
type Permissions struct {
	Inline   []InlinePolicy // in order of their names
	Attached []string       // IDs of managed policies, in order
	Boundary string         // ID of a managed policy
	Groups   []string       // IDs, in order
}

// InlinePolicy is a policy that is a part of its identity.
type InlinePolicy struct {
	Name string
	Text []byte
}

const permissionsVersion = 1

// Empty reports whether there is nothing to be kept.
func (p *Permissions) Empty() bool {
	return len(p.Inline) == 0 && len(p.Attached) == 0 && p.Boundary == "" && len(p.Groups) == 0
}

// Encode returns the stored form.
func (p *Permissions) Encode() []byte {
	var e Encoder
	e.Byte(permissionsVersion)
	e.Uint(uint64(len(p.Inline)))
	for _, in := range p.Inline {
		e.Str(in.Name)
		e.Bytes(in.Text)
	}
	e.strs(p.Attached)
	e.Str(p.Boundary)
	e.strs(p.Groups)
	return e.B
}

// GetPermissions reads those of an identity; it has none without a record.
func GetPermissions(r cluster.Reader, id string) (p Permissions, err error) {
	v, err := r.Get(PermissionsKey(id))
	if err != nil || v == nil {
		return p, err
	}
	return DecodePermissions(v)
}

// DecodePermissions reads what Encode wrote. It keeps no part of v.
func DecodePermissions(v []byte) (p Permissions, err error) {
	d := Decoder{B: v, What: "permissions"}
	if version := d.Byte(); version != permissionsVersion {
		return p, fmt.Errorf("%w: permissions have format %d", fserr.ErrCorrupt, version)
	}
	for range d.Count() {
		p.Inline = append(p.Inline, InlinePolicy{d.Str(), slices.Clone(d.Bytes())})
	}
	p.Attached = d.strs()
	p.Boundary = d.Str()
	p.Groups = d.strs()
	return p, d.End()
}

// revisionBytes is the length of a revision: random, so that none comes twice.
const revisionBytes = 16

// NewRevision returns what key 'R' holds, which each change of a policy of
// identities, of a group or of a membership replaces. What was read of these holds
// while the revision does. Without one there are no such policies.
func NewRevision() []byte {
	b := make([]byte, revisionBytes)
	rand.Read(b)
	return b
}

// The kinds of identities and policies, whose IDs begin with letters of IAM's.
const (
	GroupKind  = "AGPA"
	PolicyKind = "ANPA"
	RoleKind   = "AROA"
)

// NewID returns an ID of a kind that nothing has.
func NewID(kind string) string { return kind + randomID() }

func (e *Encoder) strs(list []string) {
	e.Uint(uint64(len(list)))
	for _, s := range list {
		e.Str(s)
	}
}

func (d *Decoder) strs() (list []string) {
	for range d.Count() {
		list = append(list, d.Str())
	}
	return list
}

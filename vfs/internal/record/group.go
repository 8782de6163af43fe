package record

import (
	"fmt"

	"ogw/vfs/internal/fserr"
)

// Group is what key 'G' holds: a group of users.
//
// Value: version byte; name; path; creation.
type Group struct {
	ID      string
	Name    string
	Path    string // "/" or "/a/b/"
	Created int64  // Unix nanoseconds
}

const groupVersion = 1

// Encode returns the stored form; the ID is in the key.
func (g *Group) Encode() []byte {
	var e Encoder
	e.Byte(groupVersion)
	e.Str(g.Name)
	e.Str(g.Path)
	e.Int(g.Created)
	return e.B
}

// DecodeGroup reads what Encode wrote.
func DecodeGroup(id string, v []byte) (g Group, err error) {
	d := Decoder{B: v, What: "group"}
	if version := d.Byte(); version != groupVersion {
		return g, fmt.Errorf("%w: group has format %d", fserr.ErrCorrupt, version)
	}
	g = Group{id, d.Str(), d.Str(), d.Int()}
	return g, d.End()
}

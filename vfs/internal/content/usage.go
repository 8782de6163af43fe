package content

import (
	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"
)

// usage counts the bytes that extents store. References go over the holes of their
// source, so that its extents are looked at, as far as a transaction has room.
type usage struct {
	r     cluster.Reader
	left  int  // extents that may be looked at
	dense bool // no extent goes over holes: all its bytes are stored
}

func newUsage(r cluster.Reader, limit int) *usage { return &usage{r: r, left: limit} }

// of returns how many bytes of e are stored, and how many more may be.
func (u *usage) of(e *record.Extent) (stored, unsure int64, err error) {
	switch {
	case e.Kind != record.ExtentRef || u.dense:
		return e.Len, 0, nil
	case u.left <= 0:
		return 0, e.Len, nil
	}
	end := e.SrcOff + e.Len
	list, more, err := extents.Load(u.r, e.Src, e.SrcOff, end, u.left)
	if err != nil {
		return 0, 0, err
	}
	u.left -= len(list)
	for i := range list {
		stored += list[i].Clip(e.SrcOff, end).Len
	}
	if more {
		unsure = max(0, end-list[len(list)-1].End())
	}
	return stored, unsure, nil
}

// ofAll returns how many bytes the extents of a list store, or more, but not more than
// most, where there was no room to look: what is used must not look like nothing where
// something is stored, since programs take such a file for one hole.
func (u *usage) ofAll(list []record.Extent, most int64) (int64, error) {
	var stored, unsure int64
	for i := range list {
		n, more, err := u.of(&list[i])
		if err != nil {
			return 0, err
		}
		stored, unsure = stored+n, unsure+more
	}
	return stored + max(0, min(unsure, most-stored)), nil
}

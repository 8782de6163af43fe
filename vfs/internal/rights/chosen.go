package rights

import (
	"ogw/vfs/internal/record"
)

// chosen reports whether somebody chose n's mode.
func (u *Rules) chosen(n *record.Inode) bool {
	switch {
	case n.Has(record.FlagChosen):
		return true
	case n.Has(record.FlagUnchosen):
		return false
	}
	usual := u.FileMode
	if n.IsDir() {
		usual = u.DirMode
	}
	return usual&^n.Mode&0o777 != 0 || n.Has(record.FlagACL)
}

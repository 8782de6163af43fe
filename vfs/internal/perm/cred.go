package perm

import (
	"slices"

	"ogw/vfs/internal/record"
)

// NobodyUID owns what anonymous requests make (Linux's overflow uid). No user
// has it.
const NobodyUID = record.NobodyUID

// Cred is the caller, at the POSIX doors. The zero value is nobody, and so is nil:
// modes give it what they give to others, and it owns nothing. So a door that
// forgets to say who the caller is gives nothing away.
type Cred struct {
	kind   credKind
	uid    uint32
	gid    uint32
	groups []uint32 // supplementary
	// Umask is applied to the mode of what is made, unless a default ACL of
	// the directory takes its place.
	Umask uint32
}

type credKind uint8

const (
	credNobody  credKind = iota
	credUser             // modes and ACLs are checked; uid 0 is the superuser
	credChecked          // the caller did that
)

// Root is the superuser.
var Root = NewCred(0, 0)

// NewCred returns the credential of a user, with supplementary groups, which are
// kept. The uid 0 is the superuser.
func NewCred(uid, gid uint32, groups ...uint32) *Cred {
	return &Cred{kind: credUser, uid: uid, gid: gid, groups: groups}
}

// CheckedCred returns that of a caller whose permissions were checked already (by
// the kernel, under FUSE's default_permissions): uid and gid then only own what is
// made.
func CheckedCred(uid, gid uint32) *Cred {
	return &Cred{kind: credChecked, uid: uid, gid: gid}
}

// Checked returns a CheckedCred of the same user.
func (c *Cred) Checked() *Cred { return CheckedCred(c.UID(), c.GID()) }

// UID returns the user, NobodyUID for nobody.
func (c *Cred) UID() uint32 {
	if c.nobody() {
		return NobodyUID
	}
	return c.uid
}

// GID returns the first group, NobodyUID for nobody.
func (c *Cred) GID() uint32 {
	if c.nobody() {
		return NobodyUID
	}
	return c.gid
}

// Groups returns the supplementary groups. They must not be changed.
func (c *Cred) Groups() []uint32 {
	if c.nobody() {
		return nil
	}
	return c.groups
}

func (c *Cred) nobody() bool { return c == nil || c.kind == credNobody }

// EffectiveUmask returns the bits that a mode of what c makes must not have.
func (c *Cred) EffectiveUmask() uint32 {
	if c == nil {
		return 0
	}
	return c.Umask & 0o777
}

// Superuser reports whether c is the superuser, and not only one who acts for a
// caller that checked.
func (c *Cred) Superuser() bool { return c.UID() == 0 }

// Rooted reports whether c passes permission checks: the superuser, or a
// caller that checked already.
func (c *Cred) Rooted() bool { return c.Unchecked() || c.Superuser() }

// Unchecked reports whether nothing at all is to be checked.
func (c *Cred) Unchecked() bool { return c != nil && c.kind == credChecked }

func (c *Cred) InGroup(gid uint32) bool {
	return !c.nobody() && (c.gid == gid || slices.Contains(c.groups, gid))
}

// Is reports whether c is the user of a uid, who owns what has it.
func (c *Cred) Is(uid uint32) bool { return !c.nobody() && c.uid == uid }

// Owns reports whether c may do what only the owner of n may.
func (c *Cred) Owns(n *record.Inode) bool { return c.Rooted() || c.Is(n.UID) }

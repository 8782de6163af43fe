package record

import (
	"fmt"
	"slices"

	"ogw/vfs/internal/fserr"
)

// Grants are the rights to a bucket or an object that its owner gave to
// others: the access control list of the object doors. POSIX ACLs are another
// thing. None means private. A list that is stored or returned is
// never changed in place.
type Grants []Grant

// Grant gives a grantee one permission.
type Grant struct {
	Grantee Grantee
	// User is set for GranteeUser only.
	User       UserID
	Permission Permission
}

// UserID identifies a user for good: it is never given twice, whatever
// becomes of the name. The ID "" is nobody: anonymous requests have it.
type UserID string

// Grantee is the kind of who gets a permission. The numbers are stored.
type Grantee uint8

const (
	GranteeUser          Grantee = 1 // one user
	GranteeEverybody     Grantee = 2 // anonymous requests too
	GranteeAuthenticated Grantee = 3 // every user
	// GranteeOwner is whoever owns the thing, who has all rights without that. An
	// entry shows that the list says of the owner what was asked for; one without
	// permissions that it is nothing. Without any, the owner has full control.
	GranteeOwner Grantee = 4
)

// Permission is a set of rights to a bucket or an object; a Grant holds one,
// or PermFullControl. The bits are stored.
type Permission uint8

const (
	PermRead     Permission = 1 << iota // a bucket: list; an object: read
	PermWrite                           // a bucket: make, overwrite and delete objects
	PermReadACP                         // read the grants
	PermWriteACP                        // change the grants

	// PermFullControl is every permission.
	PermFullControl = PermRead | PermWrite | PermReadACP | PermWriteACP
)

// MaxGrants bounds one list (S3's own limit), beside an entry without permissions; encoded they take 5 KiB, a
// small part of what a transaction of any engine takes.
const MaxGrants = 100

// maxUserIDBytes bounds a user ID; ogw's own have 21 bytes.
const maxUserIDBytes = 64

// grantsVersion is the first byte of the stored form.
const grantsVersion = 1

// Allow reports whether who has all of want; "" is anonymous.
func (g Grants) Allow(who UserID, want Permission) bool {
	var have Permission
	for i := range g {
		if g[i].reaches(who) {
			have |= g[i].Permission
		}
	}
	return have&want == want
}

// AllowUser is Allow by grants to who alone: what everybody, or every user, was
// granted does not count.
func (g Grants) AllowUser(who UserID, want Permission) bool {
	var have Permission
	for i := range g {
		if g[i].Grantee == GranteeUser && g[i].reaches(who) {
			have |= g[i].Permission
		}
	}
	return have&want == want
}

// Public reports whether everybody, or every user, was granted something.
func (g Grants) Public() bool {
	return slices.ContainsFunc(g, func(g Grant) bool { return g.Grantee == GranteeEverybody || g.Grantee == GranteeAuthenticated })
}

// reaches reports whether the grant is for who. Kinds that this program does
// not know reach nobody.
func (g *Grant) reaches(who UserID) bool {
	switch g.Grantee {
	case GranteeEverybody:
		return true
	case GranteeAuthenticated:
		return who != ""
	case GranteeUser:
		return who != "" && g.User == who
	}
	return false
}

func ValidateGrants(g Grants) error {
	if len(g) > MaxGrants+1 || len(g) > MaxGrants && !silentOwner(g) {
		return fmt.Errorf("%d grants, at most %d are allowed: %w", len(g), MaxGrants, fserr.ErrInvalid)
	}
	for i := range g {
		if err := ValidateGrant(&g[i]); err != nil {
			return err
		}
	}
	return nil
}

// silentOwner reports whether the list says that the owner was granted nothing.
func silentOwner(g Grants) bool {
	return slices.ContainsFunc(g, func(g Grant) bool { return g.Grantee == GranteeOwner && g.Permission == 0 })
}

func ValidateGrant(g *Grant) error {
	if g.Grantee == GranteeOwner && g.User == "" && g.Permission == 0 {
		return nil
	}
	switch g.Permission {
	case PermRead, PermWrite, PermReadACP, PermWriteACP, PermFullControl:
	default:
		return fmt.Errorf("permission %#x: %w", uint8(g.Permission), fserr.ErrInvalid)
	}
	named := g.Grantee == GranteeUser
	if g.Grantee < GranteeUser || g.Grantee > GranteeOwner || named != (g.User != "") || len(g.User) > maxUserIDBytes {
		return fmt.Errorf("grantee %d %q: %w", g.Grantee, g.User, fserr.ErrInvalid)
	}
	return nil
}

// EncodeGrants returns the stored form, nil for no grants. Layout: version byte, the
// number of grants, and for each the bytes grantee and permission and the ID,
// empty where the kind has none. Accounts, groups and roles are further kinds
// with an ID.
func EncodeGrants(g Grants) []byte {
	if len(g) == 0 {
		return nil
	}
	var e Encoder
	e.Byte(grantsVersion)
	e.Uint(uint64(len(g)))
	for i := range g {
		e.Byte(byte(g[i].Grantee))
		e.Byte(byte(g[i].Permission))
		e.Str(string(g[i].User))
	}
	return e.B
}

func DecodeGrants(b []byte) (Grants, error) {
	if len(b) == 0 {
		return nil, nil
	}
	d := Decoder{B: b, What: "grants"}
	if v := d.Byte(); v != grantsVersion {
		return nil, fmt.Errorf("%w: grants have format %d", fserr.ErrCorrupt, v)
	}
	n := d.Count()
	g := make(Grants, 0, min(n, MaxGrants))
	for i := 0; i < n && d.Err == nil; i++ {
		g = append(g, Grant{Grantee: Grantee(d.Byte()), Permission: Permission(d.Byte()), User: UserID(d.Str())})
	}
	return g, d.End()
}

// SetGrants replaces the grants of an inode; the caller stores it.
func (n *Inode) SetGrants(g Grants) {
	n.Grants = slices.Clone(g)
	n.Set(FlagGrants, len(g) > 0)
}

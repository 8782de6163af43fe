package users

import (
	"fmt"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// Three indexes lead to the record of a user, which is keyed by ID:
//
//	'u' name        the name of now; goes with it
//	'I' uid         stays when the user goes, until another inherits the uid; of
//	                several users who have it (format 1), one who is there
//	'k' access key
//
// and the counter "uid" holds the first uid that no user can have had, of
// those that were removed before records stayed (package format).

// byID reads the record of a user that was not removed.
func (g *Registry) byID(r cluster.Reader, id ID) (User, error) {
	u, err := g.read(r, id)
	if err == nil && u.Removed() {
		err = noUser(nil, "user %s", id)
	}
	return u, err
}

func (g *Registry) read(r cluster.Reader, id ID) (User, error) {
	b, err := r.Get(record.UserKey(id))
	if err != nil || b == nil {
		return User{}, noUser(err, "user %s", id)
	}
	return record.DecodeUser(id, b, g.keys)
}

func (g *Registry) keyHolder(r cluster.Reader, keyID string) (User, error) {
	id, err := r.Get(record.AccessIDKey(keyID))
	if err != nil || id == nil {
		return User{}, noUser(err, "access key %q", keyID)
	}
	return g.byID(r, ID(id))
}

func (g *Registry) byName(r cluster.Reader, name string) (User, error) {
	id, err := r.Get(record.UserNameKey(name))
	if err != nil || id == nil {
		return User{}, noUser(err, "user %q", name)
	}
	return g.byID(r, ID(id))
}

// Named returns the user who has a name in a snapshot; ErrNoSuchUser.
func (g *Registry) Named(r cluster.Reader, name string) (User, error) { return g.byName(r, name) }

// WithID returns the user with an ID in a snapshot; ErrNoSuchUser.
func (g *Registry) WithID(r cluster.Reader, id ID) (User, error) { return g.byID(r, id) }

// noUser returns err, or fserr.ErrNoSuchUser about what was asked for.
func noUser(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), fserr.ErrNoSuchUser)
}

func nameFree(r cluster.Reader, name string) error {
	id, err := r.Get(record.UserNameKey(name))
	if err == nil && id != nil {
		err = fmt.Errorf("user %q: %w", name, fserr.ErrUserExists)
	}
	return err
}

// uidFree reports who has or had uid as an error, unless that user was removed
// and inherit is set.
func (g *Registry) uidFree(r cluster.Reader, uid uint32, inherit bool) error {
	id, err := r.Get(record.UIDKey(uid))
	if err != nil || id == nil {
		return err
	}
	if strings.HasPrefix(string(id), record.RoleKind) {
		return roleUIDFree(r, uid, string(id), inherit)
	}
	u, err := g.read(r, ID(id))
	if err == nil && u.Removed() && inherit {
		// An earlier program may have left the index at the one who went.
		other, e := g.otherOfUID(r, uid, u.ID)
		if err = e; other != nil {
			u = *other
		}
	}
	switch {
	case err != nil:
		return err
	case !u.Removed():
		return fmt.Errorf("uid %d is that of user %q, who can have several access keys: %w", uid, u.Name, fserr.ErrUserExists)
	case !inherit:
		return fmt.Errorf("uid %d was that of removed user %q, and owns what that user left: %w", uid, u.Name, fserr.ErrUIDTaken)
	}
	return nil
}

// roleUIDFree is uidFree for the uid of a role.
func roleUIDFree(r cluster.Reader, uid uint32, id string, inherit bool) error {
	x, err := record.GetRole(r, id)
	switch {
	case err != nil:
		return err
	case x != nil:
		return fmt.Errorf("uid %d is that of role %q: %w", uid, x.Name, fserr.ErrUserExists)
	case !inherit:
		return fmt.Errorf("uid %d was that of a removed role, and owns what that left: %w", uid, fserr.ErrUIDTaken)
	}
	return nil
}

// RoleUID gives a role a uid that nobody has or had.
func (g *Registry) RoleUID(t cluster.Txn, id string) (uint32, error) {
	uid, err := freeUID(t)
	if err != nil {
		return 0, err
	}
	return uid, t.Set(record.UIDKey(uid), []byte(id))
}

// otherOfUID returns a user who has uid beside the one of an ID, nil if there is
// none: in stores of format 1 several could have one. It looks at all users.
func (g *Registry) otherOfUID(r cluster.Reader, uid uint32, but ID) (other *User, err error) {
	err = g.Each(r, func(u User) error {
		if u.UID != uid || u.ID == but {
			return nil
		}
		other = &u
		return cluster.ErrStop
	})
	return other, err
}

// Each calls fn for every user who was not removed.
func (g *Registry) Each(r cluster.Reader, fn func(User) error) error {
	prefix := record.UserKey("")
	return r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
		u, err := record.DecodeUser(ID(k[len(prefix):]), v, g.keys)
		if err != nil || u.Removed() {
			return err
		}
		return fn(u)
	})
}

// freeUID returns the first uid from FirstUID up to endUID that no user has or
// had. Where removed users of format 1 may have had some, it begins above them,
// at record.EndUIDFloor at the most.
func freeUID(r cluster.Reader) (uint32, error) {
	floor, err := record.Counter(r, record.CounterUID)
	if err != nil {
		return 0, err
	}
	next := uint32(max(min(floor, record.EndUIDFloor), FirstUID))
	err = r.Scan(record.UIDKey(next), record.UIDKey(endUID), cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
		taken := record.ParseUIDKey(k)
		if next == record.NobodyUID {
			next++
		}
		if taken > next {
			return cluster.ErrStop
		}
		next = taken + 1
		return nil
	})
	if next == record.NobodyUID {
		next++
	}
	if err == nil && next >= endUID {
		err = fmt.Errorf("no uid from %d to %d is free: %w", FirstUID, endUID-1, fserr.ErrUIDTaken)
	}
	return next, err
}

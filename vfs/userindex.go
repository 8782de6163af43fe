package vfs

import (
	"fmt"
	"slices"

	"ogw/cluster"
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
// those that were removed before records stayed (convert.go).

// userByID reads the record of a user that was not removed.
func (fs *FS) userByID(r cluster.Reader, id UserID) (User, error) {
	u, err := fs.userRecord(r, id)
	if err == nil && u.removed != 0 {
		err = noUser(nil, "user %s", id)
	}
	return u, err
}

func (fs *FS) userRecord(r cluster.Reader, id UserID) (User, error) {
	b, err := r.Get(record.UserKey(id))
	if err != nil || b == nil {
		return User{}, noUser(err, "user %s", id)
	}
	return decodeUser(id, slices.Clone(b), fs.cfg.Keys) // others may hold what the store returned
}

func (fs *FS) userByName(r cluster.Reader, name string) (User, error) {
	id, err := r.Get(record.UserNameKey(name))
	if err != nil || id == nil {
		return User{}, noUser(err, "user %q", name)
	}
	return fs.userByID(r, UserID(id))
}

// noUser returns err, or ErrNoSuchUser about what was asked for.
func noUser(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrNoSuchUser)
}

func nameFree(r cluster.Reader, name string) error {
	id, err := r.Get(record.UserNameKey(name))
	if err == nil && id != nil {
		err = fmt.Errorf("user %q: %w", name, ErrUserExists)
	}
	return err
}

// uidFree reports who has or had uid as an error, unless that user was removed
// and inherit is set.
func (fs *FS) uidFree(r cluster.Reader, uid uint32, inherit bool) error {
	id, err := r.Get(record.UIDKey(uid))
	if err != nil || id == nil {
		return err
	}
	u, err := fs.userRecord(r, UserID(id))
	if err == nil && u.removed != 0 && inherit {
		// An earlier program may have left the index at the one who went.
		other, e := fs.otherOfUID(r, uid, u.ID)
		if err = e; other != nil {
			u = *other
		}
	}
	switch {
	case err != nil:
		return err
	case u.removed == 0:
		return fmt.Errorf("uid %d is that of user %q, who can have several access keys: %w", uid, u.Name, ErrUserExists)
	case !inherit:
		return fmt.Errorf("uid %d was that of removed user %q, and owns what that user left: %w", uid, u.Name, ErrUIDTaken)
	}
	return nil
}

// otherOfUID returns a user who has uid beside the one of an ID, nil if there is
// none: in stores of format 1 several could have one. It looks at all users.
func (fs *FS) otherOfUID(r cluster.Reader, uid uint32, but UserID) (other *User, err error) {
	err = fs.eachUser(r, func(u User) error {
		if u.UID != uid || u.ID == but {
			return nil
		}
		other = &u
		return cluster.ErrStop
	})
	return other, err
}

// eachUser calls fn for every user who was not removed.
func (fs *FS) eachUser(r cluster.Reader, fn func(User) error) error {
	prefix := record.UserKey("")
	return r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
		u, err := decodeUser(UserID(k[len(prefix):]), slices.Clone(v), fs.cfg.Keys)
		if err != nil || u.removed != 0 {
			return err
		}
		return fn(u)
	})
}

// freeUID returns the first uid from FirstUID up to endUID that no user has or
// had. Where removed users of format 1 may have had some, it begins above them,
// at endFloor at the most.
func freeUID(r cluster.Reader) (uint32, error) {
	floor, err := record.Counter(r, record.CounterUID)
	if err != nil {
		return 0, err
	}
	next := uint32(max(min(floor, endFloor), FirstUID))
	err = r.Scan(record.UIDKey(next), record.UIDKey(endUID), cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
		taken := record.ParseUIDKey(k)
		if next == NobodyUID {
			next++
		}
		if taken > next {
			return cluster.ErrStop
		}
		next = taken + 1
		return nil
	})
	if next == NobodyUID {
		next++
	}
	if err == nil && next >= endUID {
		err = fmt.Errorf("no uid from %d to %d is free: %w", FirstUID, endUID-1, ErrUIDTaken)
	}
	return next, err
}

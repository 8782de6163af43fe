package vfs

import (
	"context"
	"fmt"
	"slices"

	"ogw/cluster"
)

// User is an identity of the S3 and REST doors.
type User struct {
	Name  string
	UID   uint32
	GID   uint32
	Admin bool // may do everything, and owns what has no owner
	Keys  []AccessKey
}

// AccessKey is one pair of credentials of a user.
type AccessKey struct {
	ID      string
	Secret  string
	Created int64 // Unix nanoseconds
}

const (
	maxUserNameBytes  = 255
	maxAccessKeyBytes = 255
	// maxUserKeys bounds the access keys of one user, so that a change of
	// them all fits one transaction of any engine.
	maxUserKeys = 32
)

const userVersion = 1

// encode returns the stored form. Layout: version byte, uvarints uid and gid,
// a byte for admin, the number of keys, and for each its ID, its secret and
// its creation. The name is in the key.
func (u *User) encode() []byte {
	var e encoder
	e.byte(userVersion)
	e.uint(uint64(u.UID))
	e.uint(uint64(u.GID))
	e.bool(u.Admin)
	e.uint(uint64(len(u.Keys)))
	for _, k := range u.Keys {
		e.str(k.ID)
		e.str(k.Secret)
		e.int(k.Created)
	}
	return e.b
}

func decodeUser(name string, b []byte) (User, error) {
	d := decoder{b: b, what: "user"}
	if v := d.byte(); v != userVersion {
		return User{}, fmt.Errorf("%w: user %q has format %d", ErrCorrupt, name, v)
	}
	u := User{Name: name, UID: uint32(d.uint()), GID: uint32(d.uint()), Admin: d.byte() != 0}
	n := d.count()
	for i := 0; i < n && d.err == nil; i++ {
		u.Keys = append(u.Keys, AccessKey{d.str(), d.str(), d.int()})
	}
	return u, d.end()
}

func (u *User) validate() error {
	if u.Name == "" || len(u.Name) > maxUserNameBytes {
		return fmt.Errorf("user name of %d bytes, 1 to %d are allowed: %w", len(u.Name), maxUserNameBytes, ErrInvalid)
	}
	if len(u.Keys) > maxUserKeys {
		return fmt.Errorf("user %q with %d access keys, at most %d are allowed: %w", u.Name, len(u.Keys), maxUserKeys, ErrInvalid)
	}
	for i, k := range u.Keys {
		if k.ID == "" || len(k.ID) > maxAccessKeyBytes || len(k.Secret) > maxAccessKeyBytes {
			return fmt.Errorf("access key %q of user %q: ID and secret have 1 to %d bytes: %w", k.ID, u.Name, maxAccessKeyBytes, ErrInvalid)
		}
		if slices.ContainsFunc(u.Keys[:i], func(o AccessKey) bool { return o.ID == k.ID }) {
			return fmt.Errorf("access key %q twice: %w", k.ID, ErrUserExists)
		}
	}
	return nil
}

// AddUser stores a new user; ErrUserExists, also for a key ID in use.
func (fs *FS) AddUser(ctx context.Context, u User) error {
	if err := u.validate(); err != nil {
		return err
	}
	defer fs.users.invalidate()
	return fs.update(ctx, func(t cluster.Txn, _ *op) error {
		old, err := t.Get(userKey(u.Name))
		if err != nil {
			return err
		}
		if old != nil {
			return fmt.Errorf("user %q: %w", u.Name, ErrUserExists)
		}
		return putUser(t, nil, &u)
	})
}

// putUser stores u in place of old (nil: new) and moves the access keys.
func putUser(t cluster.Txn, old, u *User) error {
	if old != nil {
		for _, k := range old.Keys {
			if !u.hasKey(k.ID) {
				if err := t.Delete(accessKey(k.ID)); err != nil {
					return err
				}
			}
		}
	}
	for _, k := range u.Keys {
		holder, err := t.Get(accessKey(k.ID))
		if err != nil {
			return err
		}
		if holder != nil && string(holder) != u.Name {
			return fmt.Errorf("access key %q: %w", k.ID, ErrUserExists)
		}
		if holder == nil {
			if err := t.Set(accessKey(k.ID), []byte(u.Name)); err != nil {
				return err
			}
		}
	}
	return t.Set(userKey(u.Name), u.encode())
}

func (u *User) hasKey(id string) bool {
	return slices.ContainsFunc(u.Keys, func(k AccessKey) bool { return k.ID == id })
}

// GetUser returns a user; ErrNoSuchUser.
func (fs *FS) GetUser(ctx context.Context, name string) (User, error) {
	var u User
	err := fs.view(ctx, func(r cluster.Reader) (err error) {
		u, err = getUser(r, name)
		return err
	})
	return u, err
}

func getUser(r cluster.Reader, name string) (User, error) {
	b, err := r.Get(userKey(name))
	if err != nil {
		return User{}, err
	}
	if b == nil {
		return User{}, fmt.Errorf("user %q: %w", name, ErrNoSuchUser)
	}
	return decodeUser(name, b)
}

// UserByUID returns the first user (by name) with that uid; ErrNoSuchUser.
func (fs *FS) UserByUID(ctx context.Context, uid uint32) (User, error) {
	found := User{}
	err := fs.eachUser(ctx, func(u User) error {
		if u.UID != uid {
			return nil
		}
		found = u
		return cluster.ErrStop
	})
	if err == nil && found.Name == "" {
		err = fmt.Errorf("uid %d: %w", uid, ErrNoSuchUser)
	}
	return found, err
}

// UpdateUser changes a user under a transaction (key rotation, uid, gid). The
// name stays. change may be called several times.
func (fs *FS) UpdateUser(ctx context.Context, name string, change func(*User) error) error {
	defer fs.users.invalidate()
	return fs.update(ctx, func(t cluster.Txn, _ *op) error {
		old, err := getUser(t, name)
		if err != nil {
			return err
		}
		u := old
		u.Keys = slices.Clone(old.Keys)
		if err := change(&u); err != nil {
			return err
		}
		u.Name = name
		if err := u.validate(); err != nil {
			return err
		}
		return putUser(t, &old, &u)
	})
}

// RemoveUser removes a user and the keys; ErrNoSuchUser.
func (fs *FS) RemoveUser(ctx context.Context, name string) error {
	defer fs.users.invalidate()
	return fs.update(ctx, func(t cluster.Txn, _ *op) error {
		u, err := getUser(t, name)
		if err != nil {
			return err
		}
		for _, k := range u.Keys {
			if err := t.Delete(accessKey(k.ID)); err != nil {
				return err
			}
		}
		return t.Delete(userKey(name))
	})
}

// ListUsers returns all users in order of their names.
func (fs *FS) ListUsers(ctx context.Context) ([]User, error) {
	var users []User
	err := fs.eachUser(ctx, func(u User) error {
		users = append(users, u)
		return nil
	})
	return users, err
}

func (fs *FS) eachUser(ctx context.Context, fn func(User) error) error {
	return fs.view(ctx, func(r cluster.Reader) error {
		prefix := userKey("")
		return r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
			u, err := decodeUser(string(k[len(prefix):]), slices.Clone(v))
			if err != nil {
				return err
			}
			return fn(u)
		})
	})
}

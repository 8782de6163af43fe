package vfs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// UserOptions of MakeUser.
type UserOptions struct {
	// FreeUID takes a uid that no user has or had, and a gid of that number,
	// in place of the user's.
	FreeUID bool
	// GID, if set, is the gid after all.
	GID *uint32
	// Inherit takes the uid although it was that of a removed user, with the
	// files and buckets that are still owned by it. Grants do not pass: they
	// hold the ID.
	Inherit bool
}

// AddUser stores a new user with the uid that it names; see MakeUser.
func (fs *FS) AddUser(ctx context.Context, u User) error {
	_, err := fs.MakeUser(ctx, u, UserOptions{})
	return err
}

// MakeUser stores a new user and returns it with its ID. ErrUserExists, also
// for a key ID in use and for a uid of another user; ErrUIDTaken for that of
// a removed user.
func (fs *FS) MakeUser(ctx context.Context, u User, o UserOptions) (User, error) {
	if err := u.validate(); err != nil {
		return User{}, err
	}
	// Older stores may have such users: they can go on changing their keys.
	if !o.FreeUID && (u.UID == NobodyUID || u.UID == noUID) {
		return User{}, fmt.Errorf("uid %d is nobody's: %w", u.UID, ErrInvalid)
	}
	u.Keys = slices.Clone(u.Keys)
	defer fs.users.invalidate()
	err := fs.update(ctx, func(t cluster.Txn, op *op) error {
		u.ID, u.Created = newUserID(), op.nowNS
		if o.FreeUID {
			uid, err := freeUID(t)
			if err != nil {
				return err
			}
			u.UID, u.GID = uid, uid
		} else if err := fs.uidFree(t, u.UID, o.Inherit); err != nil {
			return err
		}
		if o.GID != nil {
			u.GID = *o.GID
		}
		if err := nameFree(t, u.Name); err != nil {
			return err
		}
		if err := t.Set(record.UserNameKey(u.Name), []byte(u.ID)); err != nil {
			return err
		}
		if err := t.Set(record.UIDKey(u.UID), []byte(u.ID)); err != nil {
			return err
		}
		return fs.putUser(t, nil, &u)
	})
	return u, err
}

// putUser stores u in place of old (nil: new) and moves the access keys.
func (fs *FS) putUser(t cluster.Txn, old, u *User) error {
	if old != nil {
		for _, k := range old.Keys {
			if !u.hasKey(k.ID) {
				if err := t.Delete(record.AccessKey(k.ID)); err != nil {
					return err
				}
			}
		}
	}
	for _, k := range u.Keys {
		holder, err := t.Get(record.AccessKey(k.ID))
		if err != nil {
			return err
		}
		if holder != nil && UserID(holder) != u.ID {
			return fmt.Errorf("access key %q: %w", k.ID, ErrUserExists)
		}
		if holder == nil {
			if err := t.Set(record.AccessKey(k.ID), []byte(u.ID)); err != nil {
				return err
			}
		}
	}
	if err := fs.noteClear(t, len(u.Keys)); err != nil {
		return err
	}
	return t.Set(record.UserKey(u.ID), u.encode(fs.cfg.Keys))
}

// GetUser returns the user who has a name now; ErrNoSuchUser.
func (fs *FS) GetUser(ctx context.Context, name string) (User, error) {
	return fs.readUser(ctx, func(r cluster.Reader) (User, error) { return fs.userByName(r, name) })
}

// UserByID returns a user; ErrNoSuchUser, also for one that was removed.
func (fs *FS) UserByID(ctx context.Context, id UserID) (User, error) {
	return fs.readUser(ctx, func(r cluster.Reader) (User, error) { return fs.userByID(r, id) })
}

// UserByUID returns the user who has a uid; ErrNoSuchUser.
func (fs *FS) UserByUID(ctx context.Context, uid uint32) (User, error) {
	return fs.readUser(ctx, func(r cluster.Reader) (User, error) {
		id, err := r.Get(record.UIDKey(uid))
		if err != nil || id == nil {
			return User{}, noUser(err, "uid %d", uid)
		}
		return fs.userByID(r, UserID(id))
	})
}

// Founder returns the user that came with the store; ErrNoSuchUser if that
// was removed.
func (fs *FS) Founder(ctx context.Context) (User, error) {
	users, err := fs.ListUsers(ctx)
	i := slices.IndexFunc(users, func(u User) bool { return u.Founder })
	if err != nil || i < 0 {
		return User{}, noUser(err, "the user that came with the store")
	}
	return users[i], nil
}

func (fs *FS) readUser(ctx context.Context, read func(r cluster.Reader) (User, error)) (User, error) {
	var u User
	err := fs.view(ctx, func(r cluster.Reader) (err error) {
		u, err = read(r)
		return err
	})
	return u, err
}

// UpdateUser changes a user under a transaction (key rotation, gid). ID, name
// and uid stay (RenameUser changes names). change may be called several times.
func (fs *FS) UpdateUser(ctx context.Context, name string, change func(*User) error) error {
	defer fs.users.invalidate()
	return fs.update(ctx, func(t cluster.Txn, _ *op) error {
		old, err := fs.userByName(t, name)
		if err != nil {
			return err
		}
		u := old
		u.Keys = slices.Clone(old.Keys)
		if err := change(&u); err != nil {
			return err
		}
		if u.UID != old.UID {
			return fmt.Errorf("user %q: a uid owns files and stays: %w", name, ErrInvalid)
		}
		u.ID, u.Name = old.ID, old.Name
		if err := u.validate(); err != nil {
			return err
		}
		return fs.putUser(t, &old, &u)
	})
}

// RenameUser gives a user another name. Owners, grants and keys stay. The old
// name is free, and whoever takes it gets nothing with it; ErrNoSuchUser,
// ErrUserExists.
func (fs *FS) RenameUser(ctx context.Context, from, to string) (User, error) {
	if err := validUserName(to); err != nil {
		return User{}, err
	}
	defer fs.users.invalidate()
	var u User
	err := fs.update(ctx, func(t cluster.Txn, _ *op) (err error) {
		if u, err = fs.userByName(t, from); err != nil {
			return err
		}
		if err := nameFree(t, to); err != nil {
			return err
		}
		if err := t.Delete(record.UserNameKey(from)); err != nil {
			return err
		}
		if err := t.Set(record.UserNameKey(to), []byte(u.ID)); err != nil {
			return err
		}
		u.Name = to
		return fs.putUser(t, &u, &u)
	})
	return u, err
}

// RemoveUser removes a user and the keys; ErrNoSuchUser. ID and uid stay
// taken: files, buckets and grants may still name them. A uid that another user
// has, too, stands for that one from then on.
func (fs *FS) RemoveUser(ctx context.Context, name string) error {
	defer fs.users.invalidate()
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		old, err := fs.userByName(t, name)
		if err != nil {
			return err
		}
		gone := old
		gone.Keys, gone.Admin, gone.Founder, gone.removed = nil, false, false, o.nowNS
		if err := t.Delete(record.UserNameKey(name)); err != nil {
			return err
		}
		if err := fs.handOnUID(t, &old); err != nil {
			return err
		}
		return fs.putUser(t, &old, &gone)
	})
}

// handOnUID makes the uid of a user who goes stand for another who has it, if
// there is one.
func (fs *FS) handOnUID(t cluster.Txn, gone *User) error {
	id, err := t.Get(record.UIDKey(gone.UID))
	if err != nil || UserID(id) != gone.ID {
		return err
	}
	other, err := fs.otherOfUID(t, gone.UID, gone.ID)
	if err != nil || other == nil {
		return err
	}
	return t.Set(record.UIDKey(gone.UID), []byte(other.ID))
}

// ListUsers returns all users in order of their names.
func (fs *FS) ListUsers(ctx context.Context) ([]User, error) {
	var users []User
	err := fs.view(ctx, func(r cluster.Reader) error {
		users = nil
		return fs.eachUser(r, func(u User) error {
			users = append(users, u)
			return nil
		})
	})
	slices.SortFunc(users, func(a, b User) int { return cmp.Compare(a.Name, b.Name) })
	return users, err
}

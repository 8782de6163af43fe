package users

import (
	"context"
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/secrets"
	"ogw/vfs/seal"
)

// Store runs transactions of the namespace. It maps errors to those of package
// vfs.
type Store interface {
	// View runs fn on one consistent snapshot.
	View(ctx context.Context, fn func(r cluster.Reader) error) error
	// Update runs fn in a serializable transaction, again after a conflict;
	// nowNS are Unix nanoseconds.
	Update(ctx context.Context, fn func(t cluster.Txn, nowNS int64) error) error
}

// Registry is the users of one namespace. It is safe for concurrent use.
type Registry struct {
	store  Store
	keys   *seal.Keyring
	shared bool
	cache  cache
	// removed is notified of each user who is removed, in the transaction.
	removed func(t cluster.Txn, id ID) error
	// founderKeys is called after the keys of the founder changed.
	founderKeys func()
}

// New returns the users in a store. Secrets are sealed with keys, if there are
// any. shared reports whether other processes change the store.
func New(store Store, keys *seal.Keyring, shared bool) *Registry {
	return &Registry{store: store, keys: keys, shared: shared}
}

// OnRemove has fn called with each user who is removed, in the transaction. It is called
// before the registry is used.
func (g *Registry) OnRemove(fn func(t cluster.Txn, id ID) error) { g.removed = fn }

// OnFounderKeys has fn called after each change of the keys of the user that came with
// the store, by this process, before the change is acknowledged; also after one of which
// nobody knows whether it was stored. It is called before the registry is used.
func (g *Registry) OnFounderKeys(fn func()) { g.founderKeys = fn }

// guardKey is the key of what Guarded notes in a context.
type guardKey struct{}

// Guard returns an error in a transaction that must not be run.
type Guard func(ctx context.Context, r cluster.Reader) error

// Guarded returns a context whose changes and reads of users ask guard first, in the
// transaction or snapshot in which they act.
func Guarded(ctx context.Context, guard Guard) context.Context {
	return context.WithValue(ctx, guardKey{}, guard)
}

func guarded(ctx context.Context, r cluster.Reader) error {
	if guard, ok := ctx.Value(guardKey{}).(Guard); ok {
		return guard(ctx, r)
	}
	return nil
}

// Options of Make.
type Options struct {
	// FreeUID takes a uid that no user has or had, and a gid of that number,
	// in place of the user's.
	FreeUID bool
	// GID, if set, is the gid after all.
	GID *uint32
	// Inherit takes the uid although it was that of a removed user, with the
	// files and buckets that are still owned by it. Grants do not pass: they
	// hold the ID.
	Inherit bool
	// Also, if set, runs in the transaction that makes the user.
	Also func(t cluster.Txn, u *User) error
}

// Add stores a new user with the uid that it names; see Make.
func (g *Registry) Add(ctx context.Context, u User) error {
	_, err := g.Make(ctx, u, Options{})
	return err
}

// Make stores a new user and returns it with its ID. ErrUserExists, also
// for a key ID in use and for a uid of another user; ErrUIDTaken for that of
// a removed user.
func (g *Registry) Make(ctx context.Context, u User, o Options) (User, error) {
	if err := validate(&u); err != nil {
		return User{}, err
	}
	// Older stores may have such users: they can go on changing their keys.
	if !o.FreeUID && (u.UID == record.NobodyUID || u.UID == noUID) {
		return User{}, fmt.Errorf("uid %d is nobody's: %w", u.UID, fserr.ErrInvalid)
	}
	u.Keys = slices.Clone(u.Keys)
	err := g.update(ctx, func(t *edit, nowNS int64) error {
		u.ID, u.Created = record.NewUserID(), nowNS
		if err := g.takeUID(t, &u, o); err != nil {
			return err
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
		if o.Also != nil {
			if err := o.Also(t.Txn, &u); err != nil {
				return err
			}
		}
		return g.put(t, nil, &u)
	})
	return u, err
}

// takeUID sets the uid and gid of a new user.
func (g *Registry) takeUID(t cluster.Txn, u *User, o Options) error {
	if o.FreeUID {
		uid, err := freeUID(t)
		if err != nil {
			return err
		}
		u.UID, u.GID = uid, uid
	} else if err := g.uidFree(t, u.UID, o.Inherit); err != nil {
		return err
	}
	if o.GID != nil {
		u.GID = *o.GID
	}
	if u.GID == noUID {
		return fmt.Errorf("gid %d is no group: %w", u.GID, fserr.ErrInvalid)
	}
	return nil
}

// put stores u in place of old (nil: new) and moves the access keys.
func (g *Registry) put(t *edit, old, u *User) error {
	if old != nil {
		for _, k := range old.Keys {
			if !u.HasKey(k.ID) {
				if err := t.Delete(record.AccessIDKey(k.ID)); err != nil {
					return err
				}
			}
		}
	}
	for _, k := range u.Keys {
		holder, err := t.Get(record.AccessIDKey(k.ID))
		if err != nil {
			return err
		}
		if holder != nil && ID(holder) != u.ID {
			return fmt.Errorf("access key %q: %w", k.ID, fserr.ErrUserExists)
		}
		if holder == nil {
			if err := t.Set(record.AccessIDKey(k.ID), []byte(u.ID)); err != nil {
				return err
			}
		}
	}
	if err := secrets.NoteClear(t, g.keys, len(u.Keys)); err != nil {
		return err
	}
	t.founderKeys = !slices.Equal(keysOfFounder(old), keysOfFounder(u))
	return t.Set(record.UserKey(u.ID), u.Encode(g.keys))
}

// keysOfFounder are the keys of u, if u (nil: nobody) came with the store.
func keysOfFounder(u *User) []AccessKey {
	if u == nil || !u.Founder {
		return nil
	}
	return u.Keys
}

// Update changes a user under a transaction (key rotation, gid). ID, name
// and uid stay (Rename changes names). change may be called several times.
func (g *Registry) Update(ctx context.Context, name string, change func(*User) error) error {
	return g.update(ctx, func(t *edit, _ int64) error {
		old, err := g.byName(t, name)
		if err != nil {
			return err
		}
		u := old
		u.Keys = slices.Clone(old.Keys)
		if err := change(&u); err != nil {
			return err
		}
		if u.UID != old.UID {
			return fmt.Errorf("user %q: a uid owns files and stays: %w", name, fserr.ErrInvalid)
		}
		u.ID, u.Name = old.ID, old.Name
		if err := validate(&u); err != nil {
			return err
		}
		return g.put(t, &old, &u)
	})
}

// Rename gives a user another name. Owners, grants and keys stay. The old
// name is free, and whoever takes it gets nothing with it; ErrNoSuchUser,
// ErrUserExists.
func (g *Registry) Rename(ctx context.Context, from, to string) (User, error) {
	if err := validName(to); err != nil {
		return User{}, err
	}
	var u User
	err := g.update(ctx, func(t *edit, _ int64) (err error) {
		if u, err = g.byName(t, from); err != nil {
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
		return g.put(t, &u, &u)
	})
	return u, err
}

// Remove removes a user and the keys; ErrNoSuchUser. ID and uid stay
// taken: files, buckets and grants may still name them. A uid that another user
// has, too, stands for that one from then on.
func (g *Registry) Remove(ctx context.Context, name string) error {
	return g.update(ctx, func(t *edit, nowNS int64) error {
		old, err := g.byName(t, name)
		if err != nil {
			return err
		}
		gone := old
		gone.Remove(nowNS)
		if err := t.Delete(record.UserNameKey(name)); err != nil {
			return err
		}
		if err := g.handOnUID(t, &old); err != nil {
			return err
		}
		if g.removed != nil {
			if err := g.removed(t.Txn, old.ID); err != nil {
				return err
			}
		}
		return g.put(t, &old, &gone)
	})
}

// handOnUID makes the uid of a user who goes stand for another who has it, if
// there is one.
func (g *Registry) handOnUID(t cluster.Txn, gone *User) error {
	id, err := t.Get(record.UIDKey(gone.UID))
	if err != nil || ID(id) != gone.ID {
		return err
	}
	other, err := g.otherOfUID(t, gone.UID, gone.ID)
	if err != nil || other == nil {
		return err
	}
	return t.Set(record.UIDKey(gone.UID), []byte(other.ID))
}

// edit is one run of a transaction that changes users.
type edit struct {
	cluster.Txn
	founderKeys bool // it changes the keys of the founder
}

// update changes users, has what the cache knows of them read again, and tells of the
// keys of the founder.
func (g *Registry) update(ctx context.Context, fn func(t *edit, nowNS int64) error) error {
	var last edit
	err := g.commit(ctx, &last, fn)
	if last.founderKeys && g.founderKeys != nil {
		g.founderKeys()
	}
	return err
}

// commit is update without telling; last is the run that counts.
func (g *Registry) commit(ctx context.Context, last *edit, fn func(t *edit, nowNS int64) error) error {
	defer g.cache.invalidate()
	return g.store.Update(ctx, func(t cluster.Txn, nowNS int64) error {
		*last = edit{Txn: t}
		if err := guarded(ctx, t); err != nil {
			return err
		}
		return fn(last, nowNS)
	})
}

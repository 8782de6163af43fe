package users

import (
	"cmp"
	"context"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// ByName returns the user who has a name now; ErrNoSuchUser.
func (g *Registry) ByName(ctx context.Context, name string) (User, error) {
	return g.find(ctx, func(r cluster.Reader) (User, error) { return g.byName(r, name) })
}

// ByID returns a user; ErrNoSuchUser, also for one that was removed.
func (g *Registry) ByID(ctx context.Context, id ID) (User, error) {
	return g.find(ctx, func(r cluster.Reader) (User, error) { return g.byID(r, id) })
}

// ByUID returns the user who has a uid; ErrNoSuchUser.
func (g *Registry) ByUID(ctx context.Context, uid uint32) (User, error) {
	return g.find(ctx, func(r cluster.Reader) (User, error) {
		id, err := r.Get(record.UIDKey(uid))
		if err != nil || id == nil {
			return User{}, noUser(err, "uid %d", uid)
		}
		return g.byID(r, ID(id))
	})
}

// Founder returns the user that came with the store; ErrNoSuchUser if that
// was removed.
func (g *Registry) Founder(ctx context.Context) (User, error) {
	users, err := g.List(ctx)
	i := slices.IndexFunc(users, func(u User) bool { return u.Founder })
	if err != nil || i < 0 {
		return User{}, noUser(err, "the user that came with the store")
	}
	return users[i], nil
}

func (g *Registry) find(ctx context.Context, read func(r cluster.Reader) (User, error)) (User, error) {
	var u User
	err := g.store.View(ctx, func(r cluster.Reader) (err error) {
		if err := guarded(ctx, r); err != nil {
			return err
		}
		u, err = read(r)
		return err
	})
	return u, err
}

// List returns all users in order of their names.
func (g *Registry) List(ctx context.Context) ([]User, error) {
	var users []User
	err := g.store.View(ctx, func(r cluster.Reader) error {
		if err := guarded(ctx, r); err != nil {
			return err
		}
		users = nil
		return g.Each(r, func(u User) error {
			users = append(users, u)
			return nil
		})
	})
	slices.SortFunc(users, func(a, b User) int { return cmp.Compare(a.Name, b.Name) })
	return users, err
}

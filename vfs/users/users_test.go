package users

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local"
	"ogw/cluster/mem"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// store is a Store of nothing but users.
type store struct{ kv cluster.KV }

func (s store) View(ctx context.Context, fn func(cluster.Reader) error) error {
	return fserr.Map(s.kv.View(ctx, fn))
}

func (s store) Update(ctx context.Context, fn func(t cluster.Txn, nowNS int64) error) error {
	return fserr.Map(s.kv.Update(ctx, func(t cluster.Txn) error { return fn(t, time.Now().UnixNano()) }))
}

func openStore(t *testing.T, c *cluster.Cluster) store {
	t.Helper()
	t.Cleanup(func() { want(t, c.Close(), nil) })
	return store{c.KV}
}

// onEngines runs a test over every engine.
func onEngines(t *testing.T, test func(t *testing.T, g *Registry)) {
	for name, open := range map[string]func() (*cluster.Cluster, error){
		"mem":   func() (*cluster.Cluster, error) { return mem.New(mem.Options{}), nil },
		"worst": func() (*cluster.Cluster, error) { return mem.New(mem.Distributed(1)), nil },
		"local": func() (*cluster.Cluster, error) {
			return local.Open(bg, local.Options{Dir: t.TempDir(), CacheBytes: 8 << 20, SegmentBytes: 4 << 20})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := open()
			want(t, err, nil)
			test(t, New(openStore(t, c), nil, !c.Exclusive))
		})
	}
}

var bg = context.Background()

// want fails unless err is target (nil: no error).
func want(t testing.TB, err, target error) {
	t.Helper()
	if target == nil && err != nil || target != nil && !errors.Is(err, target) {
		t.Fatalf("error is %v, want %v", err, target)
	}
}

func TestUsers(t *testing.T) {
	onEngines(t, func(t *testing.T, g *Registry) {
		u := User{Name: "u", UID: 7, GID: 8, Keys: []AccessKey{{ID: "AK1", Secret: "s1", Created: 1}, {ID: "AK2", Secret: "s2", Created: 2}}}
		want(t, g.Add(bg, u), nil)
		want(t, g.Add(bg, u), fserr.ErrUserExists)
		want(t, g.Add(bg, User{Name: "v", UID: 8, Keys: []AccessKey{{ID: "AK2", Secret: "x"}}}), fserr.ErrUserExists)
		want(t, g.Add(bg, User{Name: "v", UID: 8, Keys: []AccessKey{{ID: "AK3", Secret: "x"}, {ID: "AK3", Secret: "y"}}}), fserr.ErrUserExists)
		want(t, g.Add(bg, User{Name: "v", UID: 7}), fserr.ErrUserExists)
		want(t, g.Add(bg, User{}), fserr.ErrInvalid)
		want(t, g.Add(bg, User{Name: "v", UID: record.NobodyUID}), fserr.ErrInvalid)
		want(t, g.Add(bg, User{Name: string(record.NewUserID()), UID: 8}), fserr.ErrInvalid)
		want(t, g.Add(bg, User{Name: "root", Admin: true, Founder: true}), nil)
		for range 2 { // once from the store, once from the cache
			got, key, err := g.ByKey(bg, "AK2")
			if err != nil || got.Name != "u" || got.UID != 7 || key.Secret != "s2" || len(got.Keys) != 0 || !record.LooksLikeUserID(string(got.ID)) {
				t.Errorf("%+v %+v %v", got, key, err)
			}
		}
		_, _, err := g.ByKey(bg, "AK3")
		want(t, err, fserr.ErrNoSuchUser)
		want(t, g.Update(bg, "u", func(u *User) error {
			u.Keys = []AccessKey{{ID: "AK2", Secret: "rotated", Created: 3}, {ID: "AK3", Secret: "s3", Created: 4}}
			return nil
		}), nil)
		want(t, g.Update(bg, "u", func(u *User) error { u.UID = 9; return nil }), fserr.ErrInvalid)
		if _, key, err := g.ByKey(bg, "AK2"); err != nil || key.Secret != "rotated" {
			t.Error(key, err)
		}
		_, _, err = g.ByKey(bg, "AK1")
		want(t, err, fserr.ErrNoSuchUser)
		if got, err := g.ByUID(bg, 7); err != nil || got.Name != "u" {
			t.Error(got, err)
		}
		_, err = g.ByUID(bg, 99)
		want(t, err, fserr.ErrNoSuchUser)
		list, err := g.List(bg)
		if err != nil || len(list) != 2 || list[0].Name != "root" || list[1].Keys[1].ID != "AK3" {
			t.Error(list, err)
		}
		if f, err := g.Founder(bg); err != nil || f.Name != "root" || !f.Admin {
			t.Error(f, err)
		}
		want(t, g.Remove(bg, "u"), nil)
		want(t, g.Remove(bg, "u"), fserr.ErrNoSuchUser)
		_, _, err = g.ByKey(bg, "AK2")
		want(t, err, fserr.ErrNoSuchUser)
		want(t, g.Remove(bg, "root"), nil)
		_, err = g.Founder(bg)
		want(t, err, fserr.ErrNoSuchUser)
	})
}

// TestOnFounderKeys: whatever changes the keys of the founder is told, after it is stored,
// and nothing else is.
func TestOnFounderKeys(t *testing.T) {
	onEngines(t, func(t *testing.T, g *Registry) {
		var told []int
		g.OnFounderKeys(func() {
			f, err := g.Founder(bg)
			if err != nil {
				want(t, err, fserr.ErrNoSuchUser)
			}
			told = append(told, len(f.Keys))
		})
		keys := func(name string, ids ...string) {
			want(t, g.Update(bg, name, func(u *User) error {
				u.Keys = nil
				for _, id := range ids {
					u.Keys = append(u.Keys, AccessKey{ID: id, Secret: "secret"})
				}
				return nil
			}), nil)
		}
		want(t, g.Add(bg, User{Name: "root", UID: 1, Founder: true, Admin: true, Keys: []AccessKey{{ID: "AK1", Secret: "s"}}}), nil)
		want(t, g.Add(bg, User{Name: "ann", UID: 2, Keys: []AccessKey{{ID: "AK2", Secret: "s"}}}), nil)
		keys("ann", "AK3")
		keys("root", "AK1", "AK4")
		_, err := g.Rename(bg, "root", "boss")
		want(t, err, nil)
		want(t, g.Update(bg, "boss", func(u *User) error { u.GID = 9; return nil }), nil)
		want(t, g.Update(bg, "boss", func(u *User) error {
			u.Keys = append(u.Keys, AccessKey{ID: "AK3", Secret: "s"})
			return nil
		}), fserr.ErrUserExists)
		keys("boss")
		keys("boss", "AK5")
		want(t, g.Remove(bg, "ann"), nil)
		want(t, g.Remove(bg, "boss"), nil)
		if !slices.Equal(told, []int{1, 2, 0, 1, 0}) {
			t.Errorf("told when there were %v keys", told)
		}
	})
}

// TestIdentitiesStay: what a user had goes to nobody by the name or the uid.
func TestIdentitiesStay(t *testing.T) {
	onEngines(t, func(t *testing.T, g *Registry) {
		ann, err := g.Make(bg, User{Name: "ann"}, Options{FreeUID: true})
		want(t, err, nil)
		if ann.UID != FirstUID || ann.GID != FirstUID || ann.Created == 0 {
			t.Errorf("%+v", ann)
		}
		renamed, err := g.Rename(bg, "ann", "anna")
		if err != nil || renamed.ID != ann.ID || renamed.Name != "anna" {
			t.Error(renamed, err)
		}
		_, err = g.ByName(bg, "ann")
		want(t, err, fserr.ErrNoSuchUser)
		_, err = g.Rename(bg, "ann", "x")
		want(t, err, fserr.ErrNoSuchUser)
		// The name is free, and only the name.
		second, err := g.Make(bg, User{Name: "ann"}, Options{FreeUID: true})
		want(t, err, nil)
		if second.ID == ann.ID || second.UID == ann.UID {
			t.Errorf("%+v has what %+v had", second, ann)
		}
		_, err = g.Rename(bg, "ann", "anna")
		want(t, err, fserr.ErrUserExists)
		for _, bad := range []string{"", string(ann.ID)} {
			_, err = g.Rename(bg, "ann", bad)
			want(t, err, fserr.ErrInvalid)
		}

		want(t, g.Remove(bg, "anna"), nil)
		_, err = g.ByID(bg, ann.ID)
		want(t, err, fserr.ErrNoSuchUser)
		_, err = g.ByUID(bg, ann.UID)
		want(t, err, fserr.ErrNoSuchUser)
		third, err := g.Make(bg, User{Name: "anna"}, Options{FreeUID: true})
		want(t, err, nil)
		if third.UID == ann.UID || third.ID == ann.ID {
			t.Errorf("%+v has what %+v had", third, ann)
		}
		want(t, g.Add(bg, User{Name: "heir", UID: ann.UID}), fserr.ErrUIDTaken)
		_, err = g.Make(bg, User{Name: "heir", UID: second.UID}, Options{Inherit: true})
		want(t, err, fserr.ErrUserExists)
		heir, err := g.Make(bg, User{Name: "heir", UID: ann.UID}, Options{Inherit: true})
		want(t, err, nil)
		if got, err := g.ByUID(bg, ann.UID); err != nil || got.ID != heir.ID || heir.ID == ann.ID {
			t.Error(got, err)
		}
	})
}

func TestFreeUID(t *testing.T) {
	s := openStore(t, mem.New(mem.Options{}))
	next := func() uint32 {
		t.Helper()
		var uid uint32
		want(t, s.View(bg, func(r cluster.Reader) (err error) {
			uid, err = freeUID(r)
			return err
		}), nil)
		return uid
	}
	take := func(uid uint32) {
		t.Helper()
		want(t, s.Update(bg, func(tx cluster.Txn, _ int64) error { return tx.Set(record.UIDKey(uid), []byte("x")) }), nil)
	}
	for _, c := range []struct{ take, next uint32 }{
		{5, FirstUID}, {FirstUID + 1, FirstUID}, {FirstUID, FirstUID + 2}, {endUID - 1, FirstUID + 2},
	} {
		take(c.take)
		if got := next(); got != c.next {
			t.Errorf("after %d: %d, want %d", c.take, got, c.next)
		}
	}
	floor := func(n uint64) {
		want(t, s.Update(bg, func(tx cluster.Txn, _ int64) error { return record.SetCounter(tx, record.CounterUID, n) }), nil)
	}
	if floor(record.NobodyUID); next() != record.NobodyUID+1 {
		t.Error("nobody's uid is given")
	}
	take(record.NobodyUID)
	take(record.NobodyUID + 1)
	if next() != record.NobodyUID+2 {
		t.Error("taken", next())
	}
	// What an earlier program noted of a huge uid leaves half of the range.
	for _, n := range []uint64{endUID - 1, endUID, 1<<32 - 1, 1 << 32} {
		if floor(n); next() != record.EndUIDFloor {
			t.Errorf("above %d: %d", n, next())
		}
	}
	take(record.EndUIDFloor)
	if next() != record.EndUIDFloor+1 {
		t.Error("taken", next())
	}
}

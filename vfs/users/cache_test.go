package users

import (
	"context"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/fserr"
)

// meeting is a Store that does something after each read, before it is answered.
type meeting struct {
	store
	then func()
}

func (m *meeting) View(ctx context.Context, fn func(cluster.Reader) error) error {
	err := m.store.View(ctx, fn)
	if then := m.then; then != nil {
		m.then = nil
		then()
	}
	return err
}

// oneUser is a registry of u with the key AK, over a store that meets what then does.
func oneUser(t testing.TB) (*Registry, *meeting) {
	m := &meeting{store: store{mem.New(mem.Options{}).KV}}
	g := New(m, nil, false)
	want(t, g.Add(bg, User{Name: "u", UID: 7, Keys: []AccessKey{{ID: "AK", Secret: "first"}}}), nil)
	return g, m
}

// Whatever happens to a user while a request reads who holds a key, the request after
// it sees it.
func TestChangesDuringLookup(t *testing.T) {
	rotate := func(g *Registry) error {
		return g.Update(bg, "u", func(u *User) error { u.Keys = []AccessKey{{ID: "AK", Secret: "second"}}; return nil })
	}
	demote := func(g *Registry) error {
		return g.Update(bg, "u", func(u *User) error { u.Admin = false; return nil })
	}
	for name, c := range map[string]struct {
		change func(*Registry) error
		secret string // "": the key is gone
	}{
		"rotated": {rotate, "second"},
		"demoted": {demote, "first"},
		"renamed": {func(g *Registry) error { _, err := g.Rename(bg, "u", "v"); return err }, "first"},
		"deactivated": {func(g *Registry) error {
			return g.Update(bg, "u", func(u *User) error { u.Keys = nil; return nil })
		}, ""},
		"removed": {func(g *Registry) error { return g.Remove(bg, "u") }, ""},
	} {
		g, m := oneUser(t)
		want(t, g.Update(bg, "u", func(u *User) error { u.Admin = true; return nil }), nil)
		m.then = func() { want(t, c.change(g), nil) }
		before, err := g.Holder(bg, "AK") // which changes after it was read
		want(t, err, nil)
		after, err := g.Holder(bg, "AK")
		if c.secret == "" {
			want(t, err, fserr.ErrNoSuchUser)
		} else if want(t, err, nil); after.Key.Secret != c.secret || after.User.Admin == (name == "demoted") || (after.User.Name == "v") != (name == "renamed") {
			t.Errorf("%s: %+v", name, after)
		}
		if before.Key.Secret != "first" || !before.User.Admin || before.User.Name != "u" {
			t.Errorf("%s: what was handed out is %+v now", name, before)
		}
	}
}

// A key that is known takes no memory to look up.
func TestHolderAllocations(t *testing.T) {
	g, _ := oneUser(t)
	if n := testing.AllocsPerRun(100, func() {
		_, err := g.Holder(bg, "AK")
		want(t, err, nil)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkHolder: a key that is known, as each signed request looks it up.
func BenchmarkHolder(b *testing.B) {
	g, _ := oneUser(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Holder(bg, "AK"); err != nil {
				b.Error(err)
			}
		}
	})
}

package iam

import (
	"errors"
	"sync"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/users"
)

// SetOf returns what the policies of a user or role say in a snapshot, nil if a user
// has none. ErrCorrupt, ErrNotExist for a role that was removed.
func (d *Directory) SetOf(r cluster.Reader, id users.ID) (*Set, error) {
	revision, err := r.Get(record.RevisionKey())
	if err != nil || revision == nil && !IsRole(string(id)) {
		return nil, err
	}
	s, ok := d.cache.get(revision, id)
	if ok {
		return s, nil
	}
	if s, err = load(r, string(id)); err != nil {
		return nil, err
	}
	if err := r.Settle(); err != nil { // the cache outlives a run of old reads
		return nil, err
	}
	d.cache.put(revision, id, s)
	return s, nil
}

// load reads and compiles the policies of a user and its groups, or of a role.
func load(r cluster.Reader, id string) (*Set, error) {
	own, err := record.GetPermissions(r, id)
	if err != nil {
		return nil, err
	}
	s, whose := new(Set), "the user"
	if IsRole(id) {
		x, err := roleByID(r, id)
		if err != nil {
			return nil, err
		}
		s.role, whose = &x, "role "+x.Name
	} else if own.Empty() {
		return nil, nil
	}
	if err := s.add(r, &own, whose); err != nil {
		return nil, err
	}
	for _, g := range own.Groups {
		p, err := record.GetPermissions(r, g)
		if err != nil {
			return nil, err
		}
		group, err := groupByID(r, g)
		if err != nil {
			return nil, err
		}
		if err := s.add(r, &p, "group "+group.Name); err != nil {
			return nil, err
		}
	}
	if own.Boundary != "" {
		if s.bound, err = s.managed(r, own.Boundary); err != nil {
			return nil, err
		}
	}
	if s.bound == nil && !s.Held() {
		return nil, nil
	}
	return s, nil
}

// everything is the set of an administrator where a session bounds it.
var everything = sync.OnceValue(func() *Set {
	doc, err := compile([]byte(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`))
	if err != nil {
		panic(err) // it is constant
	}
	return &Set{given: []source{{doc, "an administrator"}}}
})

// Limited returns a set within what the policies of a session allow; nil is that of a user
// without policies. ErrNotExist for a managed policy that was removed.
func (d *Directory) Limited(r cluster.Reader, set *Set, s *Session) (*Set, error) {
	federated := s.Federated()
	if len(s.compiled) == 0 && len(s.Managed) == 0 && !federated {
		return set, nil
	}
	if federated { // whatever the user may do: nothing, without policies of its own
		u, err := d.users.WithID(r, s.Who)
		switch {
		case err != nil:
			return nil, err
		case u.Admin:
			set = everything()
		case set == nil:
			set = new(Set)
		}
	}
	limited := *set
	limited.sessions = append([]source{}, s.compiled...)
	for _, id := range s.Managed {
		m, err := d.managedSet(r, id)
		if err != nil {
			return nil, err
		}
		limited.sessions = append(limited.sessions[:len(limited.sessions):len(limited.sessions)], m.given...)
	}
	return &limited, nil
}

// managedSet returns a managed policy, compiled once for each revision.
func (d *Directory) managedSet(r cluster.Reader, id string) (*Set, error) {
	revision, err := r.Get(record.RevisionKey())
	if err != nil {
		return nil, err
	}
	if s, ok := d.cache.get(revision, users.ID(id)); ok {
		return s, nil
	}
	if v, err := r.Get(record.ManagedPolicyKey(id)); err != nil || v == nil {
		return nil, errors.Join(err, fserr.ErrNotExist)
	}
	s := new(Set)
	doc, err := s.managed(r, id)
	if err != nil {
		return nil, err
	}
	s.given = []source{*doc}
	if err := r.Settle(); err != nil {
		return nil, err
	}
	d.cache.put(revision, users.ID(id), s)
	return s, nil
}

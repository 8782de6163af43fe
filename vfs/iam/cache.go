package iam

import (
	"fmt"
	"strings"
	"sync"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/users"
)

const (
	// cacheBytes bounds the compiled sets, by their texts: 8 MiB of text take about
	// 48 MiB compiled. Some 4,000 users with usual policies fit, and those of more
	// are read again.
	cacheBytes = 8 << 20
	// setBytes is what a set takes beside, an empty one too.
	setBytes = 256
)

// cache keeps the sets of one revision. The zero value is ready.
type cache struct {
	mu       sync.RWMutex
	revision string
	sets     map[users.ID]*Set // nil: neither policies nor a boundary
	bytes    int
}

// get returns the set of a user at a revision.
func (c *cache) get(revision []byte, id users.ID) (s *Set, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.revision != string(revision) {
		return nil, false
	}
	s, ok = c.sets[id]
	return s, ok
}

// put keeps a set; those of another revision go.
func (c *cache) put(revision []byte, id users.ID, s *Set) {
	cost := setBytes
	if s != nil {
		cost += s.bytes
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revision != string(revision) || c.sets == nil || c.bytes+cost > cacheBytes {
		c.revision, c.sets, c.bytes = string(revision), make(map[users.ID]*Set), 0
	}
	if _, ok := c.sets[id]; !ok {
		c.sets[users.ID(strings.Clone(string(id)))] = s
		c.bytes += cost
	}
}

// SetOf returns what the policies of a user say in a snapshot, nil if there are
// none. ErrCorrupt.
func (d *Directory) SetOf(r cluster.Reader, id users.ID) (*Set, error) {
	revision, err := r.Get(record.RevisionKey())
	if err != nil || revision == nil {
		return nil, err
	}
	s, ok := d.cache.get(revision, id)
	if ok {
		return s, nil
	}
	if s, err = load(r, string(id)); err != nil {
		return nil, err
	}
	d.cache.put(revision, id, s)
	return s, nil
}

// load reads and compiles the policies of a user and its groups.
func load(r cluster.Reader, id string) (*Set, error) {
	own, err := record.GetPermissions(r, id)
	if err != nil || own.Empty() {
		return nil, err
	}
	s := new(Set)
	if err := s.add(r, &own, "the user"); err != nil {
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

// add takes in the policies of an identity, which is named for messages.
func (s *Set) add(r cluster.Reader, p *record.Permissions, whose string) error {
	for _, in := range p.Inline {
		doc, err := s.compile("policy "+in.Name+" of "+whose, in.Text)
		if err != nil {
			return err
		}
		s.given = append(s.given, *doc)
	}
	for _, id := range p.Attached {
		doc, err := s.managed(r, id)
		if err != nil {
			return err
		}
		s.given = append(s.given, *doc)
	}
	return nil
}

func (s *Set) managed(r cluster.Reader, id string) (*source, error) {
	m, err := managedByID(r, id)
	if err != nil {
		return nil, err
	}
	return s.compile("policy "+m.Name, m.Version(m.Default).Text)
}

func (s *Set) compile(name string, text []byte) (*source, error) {
	doc, err := compile(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", fserr.ErrCorrupt, name, err)
	}
	s.bytes += len(text)
	return &source{doc, name}, nil
}

package sharedlocks

import (
	"fmt"
	"slices"

	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// deadlocks reports whether an owner whose range l waits here would wait for itself.
func (s *state) deadlocks(l *lock.Lock) (bool, error) { return s.Deadlocks(l, s.waitsOf) }

// waitsOf returns the files in which owners wait, through the store. What was read for one
// request is good for the next.
func (s *state) waitsOf(owners []lock.Owner) (list []*lock.File, err error) {
	if s.walked == nil {
		s.walked, s.files = make(map[lock.Owner][]uint64), map[uint64]*lock.File{s.ino: &s.File}
	}
	if err := s.walkOwners(owners); err != nil {
		return nil, err
	}
	list = append(list, &s.File) // who began to wait in this transaction
	var inos []uint64
	for _, o := range owners {
		inos = append(inos, s.walked[o]...)
	}
	slices.Sort(inos)
	inos = slices.Compact(inos)
	if err := s.walkFiles(inos); err != nil {
		return nil, err
	}
	for _, ino := range inos {
		if f := s.files[ino]; f != nil && ino != s.ino {
			list = append(list, f)
		}
	}
	return list, nil
}

// walkOwners learns where owners wait.
func (s *state) walkOwners(owners []lock.Owner) error {
	var asked []lock.Owner
	var keys [][]byte
	for _, o := range owners {
		if _, known := s.walked[o]; !known && len(s.walked)+len(asked) < maxWalk {
			asked, keys = append(asked, o), append(keys, record.WaitKey(o))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	values, err := s.r.GetMany(keys)
	if err != nil {
		return err
	}
	for i, v := range values {
		if s.walked[asked[i]], err = record.DecodeWaits(v); err != nil {
			return err
		}
	}
	return nil
}

// walkFiles reads the locks of files.
func (s *state) walkFiles(inos []uint64) error {
	var asked []uint64
	var keys [][]byte
	for _, ino := range inos {
		if _, known := s.files[ino]; !known && len(s.files)+len(asked) <= maxWalk {
			asked, keys = append(asked, ino), append(keys, record.LockKey(ino))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	values, err := s.r.GetMany(keys)
	if err != nil {
		return err
	}
	for i, v := range values {
		f, err := record.DecodeFileLocks(v)
		if err != nil {
			return fmt.Errorf("inode %d: %w", asked[i], err)
		}
		other := &state{FileLocks: f, r: s.r, there: s.there}
		if err := other.dropDead(""); err != nil {
			return err
		}
		for _, g := range s.going {
			f.Leave(g.client, g.keep)
		}
		s.files[asked[i]] = &f.File
	}
	return nil
}

package segment

// collectBelow is the share of live bytes, in percent, below which a segment is
// rewritten: at the worst the disk holds twice the data, and each byte freed costs
// at most one byte copied.
const collectBelow = 50

// Candidate is a segment that can be collected.
type Candidate struct {
	Number   uint64
	Live     int64
	Doubtful bool
}

// Collectable returns the segments that are dead, or mostly, and those that
// are to be emptied because the medium may be bad there.
func (s *Store) Collectable() (found []Candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.known {
		worth := g.doubtful || g.live*100 < g.total*collectBelow
		if g.sealed && g.pending == 0 && (g.live == 0 || worth && !g.damaged) {
			found = append(found, Candidate{g.number, g.live, g.doubtful})
		}
	}
	return found
}

// Doubt notes that damage was found in a segment, which takes no more records
// then; false if that is known.
func (s *Store) Doubt(number uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.known[number]
	if g == nil || g.doubtful {
		return false
	}
	g.doubtful = true
	if s.current == g {
		s.seal(g)
	}
	return true
}

// Figures are what is known of a segment.
type Figures struct {
	Live    int64 // bytes of records in the index
	Damaged bool  // holds what cannot be moved
}

// Figures returns those of a segment; false if there is none.
func (s *Store) Figures(number uint64) (Figures, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.known[number]
	if g == nil {
		return Figures{}, false
	}
	return Figures{Live: g.live, Damaged: g.damaged}, true
}

// MarkDamaged keeps a segment from being collected until nothing in it lives.
func (s *Store) MarkDamaged(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.known[number]; g != nil {
		g.damaged = true
	}
}

// Forget drops a dead segment; false if it is not dead.
func (s *Store) Forget(number uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.known[number]
	if g == nil || g.live != 0 || g.pending != 0 || !g.sealed {
		return false
	}
	delete(s.known, number)
	return true
}

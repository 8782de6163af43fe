package lock

// grant is what a remote client was granted, and had of the range before.
type grant struct {
	space  Space
	lock   Lock
	before []Lock
}

// undo has the owner hold what it held before. What it gave up or converted since stays so,
// and so does what it had stronger before: others may have been let in.
func (g *grant) undo(f *File) {
	l := &g.lock
	for _, h := range f.Owned(g.space, l) {
		if h.Type != l.Type || h.Era != l.Era {
			continue
		}
		f.Unset(g.space, l.Owner, h.Start, h.End)
		for _, b := range g.before {
			if !b.overlaps(&h) {
				continue
			}
			if !l.Type.covers(b.Type) {
				b.Type, b.Era = l.Type, l.Era
			}
			b.Start, b.End = max(b.Start, h.Start), min(b.End, h.End)
			f.Held[g.space] = set(f.Held[g.space], b)
		}
	}
}

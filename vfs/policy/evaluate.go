package policy

import "slices"

// Decide evaluates the statements that can be about the request. The statement that
// decided is returned by its number, the first one of several, -1 if none did.
func (d *Document) Decide(r *Request) (Effect, int) {
	best, by := None, -1
	w := d.outline.walk(r)
	for w.next(best, by) {
		if e := d.statements[w.n].applies(r, w.known); e > best || e == best && e != None && w.n < by {
			best, by = e, w.n
		}
	}
	return best, by
}

// applies returns the statement's effect on a request, None if it is not about that.
// With acts, it is known to be about the action.
func (s *statement) applies(r *Request, acts bool) Effect {
	if !acts && matchAny(s.actions, r.Action, nil) == s.notActions || !s.about(r) {
		return None
	}
	e := s.effect
	if s.who.given {
		reached := s.who.reach(&r.Principal)
		if reached == None {
			return None
		}
		if e == Allow {
			e = reached
		}
	}
	for i := range s.conditions {
		if !s.conditions[i].holds(r.Values) {
			return None
		}
	}
	return e
}

// about reports whether the statement's resources hold that of the request. A
// document of a role's trust has none.
func (s *statement) about(r *Request) bool {
	return s.resources == nil || matchAny(s.resources, r.Resource, r.Values) != s.notResources
}

// outlined is what the outline has of the statement.
func (s *statement) outlined() outlined {
	o := outlined{denies: s.effect == Deny, actions: s.s3, literals: []string{""}}
	if s.resources != nil && !s.notResources {
		o.literals = o.literals[:0]
		for i := range s.resources {
			o.literals = append(o.literals, s.resources[i].head)
		}
	}
	if s.who.given && !s.who.not && !s.who.anyone {
		o.names = s.who.names
	}
	return o
}

func matchAny(patterns []pattern, s string, v Values) bool {
	for i := range patterns {
		if patterns[i].match(s, v) {
			return true
		}
	}
	return false
}

// reach returns what the principals give the caller: Allow to who is named, AllowRole and
// AllowAccount to whose role or account is, and None to others.
func (w *principals) reach(p *Principal) Effect {
	switch {
	case w.not && (w.has(p.ID) || w.has(p.Name)):
		return None
	case w.not, w.anyone, w.has(p.Name), p.Name == "" && w.has(p.ID):
		return Allow
	case w.has(p.ID):
		return AllowRole
	case w.has(p.Account):
		return AllowAccount
	}
	return None
}

func (w *principals) has(name string) bool {
	if name == "" {
		return false
	}
	_, ok := slices.BinarySearch(w.names, name)
	return ok
}

package policy

import "strings"

// Request is what somebody asks for.
type Request struct {
	// Action such as "s3:GetObject".
	Action string
	// Resource is the ARN that the action is about, such as
	// "arn:aws:s3:::bucket/key".
	Resource string
	// Principal is who asks.
	Principal Principal
	// Values tell what condition keys are worth; nil: no key has a value.
	Values Values
}

// Principal is who asks, by the names that a document may use. The zero value is an
// anonymous request, which only "*" names.
type Principal struct {
	// ID is an ID that is never given twice: of the user, or of the role whose
	// session asks.
	ID string
	// Name names a session itself, "" for who is in none.
	Name string
	// Account is the ID of the account that ID belongs to; the same for an account
	// itself.
	Account string
}

// Values are the condition keys of one request.
type Values interface {
	// Value returns what a key, in lower case, is worth, and false for one that
	// the request does not have. The next call may overwrite a slice of one.
	Value(key string) ([]string, bool)
}

// Effect is what a document says of a request.
type Effect uint8

// The effects, in order of precedence.
const (
	None Effect = iota
	// AllowAccount allows it to the account of who asks, whose own policies
	// decide to whom it passes that on.
	AllowAccount
	// AllowRole allows it to the role whose session asks: what bounds the role and
	// the session bounds this.
	AllowRole
	Allow
	Deny
)

var effectNames = [...]string{"none", "allow to the account", "allow to the role", "allow", "deny"}

func (e Effect) String() string { return effectNames[e] }

// Decide evaluates the statements that can be about the request. The statement that
// decided is returned by its number, the first one of several, -1 if none did.
func (d *Document) Decide(r *Request) (Effect, int) {
	best, by := None, -1
	action, known := actionNumbers[r.Action]
	for at := d.index.last(r.Resource); at >= 0; at = d.index[at].parent {
		if !strings.HasPrefix(r.Resource, d.index[at].literal) {
			continue
		}
		for _, i := range d.index[at].statements {
			s := &d.statements[i]
			if s.effect < best || s.effect == best && i > by || known && !s.s3.has(action) {
				continue
			}
			if e := s.applies(r, known); e > best || e == best && e != None && i < by {
				best, by = e, i
			}
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
	if s.who != nil {
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

func matchAny(patterns []pattern, s string, v Values) bool {
	for i := range patterns {
		if patterns[i].match(s, v) {
			return true
		}
	}
	return false
}

// reach returns what the principals give who asks: Allow to who is named, AllowRole and
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
	_, ok := w.names[name]
	return ok
}

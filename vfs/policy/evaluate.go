package policy

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
	// ID and Name name the one who asks: an ID that is never given twice, and
	// for a session its ARN.
	ID, Name string
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
	Allow
	Deny
)

var effectNames = [...]string{"none", "allow to the account", "allow", "deny"}

func (e Effect) String() string { return effectNames[e] }

// Decide evaluates all statements. The statement that decided is returned by its
// number, -1 if none did.
func (d *Document) Decide(r *Request) (Effect, int) {
	best, by := None, -1
	for i := range d.statements {
		s := &d.statements[i]
		if s.effect == Allow && best == Allow {
			continue
		}
		e := s.applies(r)
		if e == Deny {
			return Deny, i
		}
		if e > best {
			best, by = e, i
		}
	}
	return best, by
}

// applies returns the statement's effect on a request, None if it is not about that.
func (s *statement) applies(r *Request) Effect {
	if !s.about(r) || matchAny(s.actions, r.Action, nil) == s.notActions {
		return None
	}
	e := s.effect
	if s.who != nil {
		switch own, account := s.who.reach(&r.Principal); {
		case own:
		case account && e == Allow:
			e = AllowAccount
		case account:
		default:
			return None
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

// reach reports whether the principals name who asks, or the account of who asks.
func (w *principals) reach(p *Principal) (own, account bool) {
	if w.not {
		return !w.has(p.ID) && !w.has(p.Name), false
	}
	return w.anyone || w.has(p.ID) || w.has(p.Name), w.has(p.Account)
}

func (w *principals) has(name string) bool {
	if name == "" {
		return false
	}
	_, ok := w.names[name]
	return ok
}

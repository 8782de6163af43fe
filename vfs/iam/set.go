package iam

import (
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
)

// Set is what the policies of one identity say, compiled. It is never changed.
type Set struct {
	// given are the policies of the identity and of its groups.
	given []source
	// bound is the permission boundary, nil if there is none.
	bound *source
	// sessions are the policies of a session, of which one must allow what is asked
	// for; nil: it has none.
	sessions []source
	role     *Role // whose set it is, nil for a user's
	bytes    int
}

// source is one policy of a set.
type source struct {
	doc  *policy.Document
	name string // for messages: "policy readers", "policy p of user bob"
}

// Verdict is the decision of a Set about a request.
type Verdict struct {
	// Effect of the policies of the identity: Allow, None or Deny; Deny also for
	// the boundary's.
	Effect policy.Effect
	// Within means that neither the boundary nor the policies of the session keep
	// the request out; Bounds is which of them does.
	Within bool
	Bounds string
	// Policy and Sid name the statement that denied or allowed, which is the
	// one of that Number, from 1 on; 0: none did.
	Policy, Sid string
	Number      int
}

// Held reports whether the identity has policies, beside a boundary, or is a role:
// then they alone give it rights.
func (s *Set) Held() bool { return len(s.given) > 0 || s.role != nil }

// Decide evaluates all policies. A deny is the first one found.
func (s *Set) Decide(r *policy.Request) Verdict {
	v := decide(s.given, r)
	if s.bound != nil && v.Effect != policy.Deny {
		switch e, by := s.bound.doc.Decide(r); e {
		case policy.Deny:
			return s.bound.verdict(e, by)
		case policy.Allow:
		default:
			v.Within, v.Bounds = false, "permissions boundary"
		}
	}
	if s.sessions != nil && v.Effect != policy.Deny {
		switch in := decide(s.sessions, r); in.Effect {
		case policy.Deny:
			return in
		case policy.Allow:
		default:
			v.Within, v.Bounds = false, "session policy"
		}
	}
	return v
}

// decide evaluates policies of which one must allow.
func decide(list []source, r *policy.Request) Verdict {
	v := Verdict{Within: true}
	for i := range list {
		switch e, by := list[i].doc.Decide(r); {
		case e == policy.Deny:
			return list[i].verdict(e, by)
		case e == policy.Allow && v.Effect != policy.Allow:
			v = list[i].verdict(e, by)
		}
	}
	return v
}

func (s *source) verdict(e policy.Effect, by int) Verdict {
	return Verdict{Effect: e, Within: true, Policy: s.name, Sid: s.doc.Sid(by), Number: by + 1}
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

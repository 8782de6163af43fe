package iam

import "ogw/vfs/policy"

// Set is what the policies of one identity say, compiled. It is never changed.
type Set struct {
	// given are the policies of the identity and of its groups.
	given []source
	// bound is the permission boundary, nil if there is none.
	bound *source
	bytes int
}

// source is one policy of a set.
type source struct {
	doc  *policy.Document
	name string // for messages: "policy readers", "policy p of user bob"
}

// Verdict is what a Set says of a request.
type Verdict struct {
	// Effect of the policies of the identity: Allow, None or Deny; Deny also for
	// the boundary's.
	Effect policy.Effect
	// Within tells that no boundary keeps the request out.
	Within bool
	// Policy and Sid name the statement that denied or allowed, which is the
	// one of that Number, from 1 on; 0: none did.
	Policy, Sid string
	Number      int
}

// Held reports whether the identity has policies, beside a boundary: then they alone
// give it rights.
func (s *Set) Held() bool { return len(s.given) > 0 }

// Decide evaluates all policies. A deny is the first one found.
func (s *Set) Decide(r *policy.Request) Verdict {
	v := Verdict{Within: true}
	for i := range s.given {
		switch e, by := s.given[i].doc.Decide(r); {
		case e == policy.Deny:
			return s.given[i].verdict(e, by)
		case e == policy.Allow && v.Effect != policy.Allow:
			v = s.given[i].verdict(e, by)
		}
	}
	if s.bound != nil {
		e, by := s.bound.doc.Decide(r)
		if e == policy.Deny {
			return s.bound.verdict(e, by)
		}
		v.Within = e == policy.Allow
	}
	return v
}

func (s *source) verdict(e policy.Effect, by int) Verdict {
	return Verdict{Effect: e, Within: true, Policy: s.name, Sid: s.doc.Sid(by), Number: by + 1}
}

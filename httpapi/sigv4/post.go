package sigv4

import "time"

// ParsePost reads the signature of a browser form; field returns the value of
// a form field by its lower-case name, or "". It returns nil, nil for a form
// without a policy, which is anonymous. The policy's own expiration and
// conditions are the caller's to check.
func (v *Verifier) ParsePost(field func(string) string) (*Signature, error) {
	s := &Signature{policy: field("policy"), Payload: Payload{Kind: Unsigned}}
	if field("x-amz-security-token") != "" {
		return nil, ErrSessionToken
	}
	switch {
	case field("x-amz-signature") != "":
		return s, v.parsePostV4(s, field)
	case field("signature") != "":
		s.Scheme = PostV2
		if v.cfg.V2 == V2None {
			return nil, ErrUnsupportedAuth
		}
		if s.policy == "" || field("awsaccesskeyid") == "" {
			return nil, wrapf(ErrMalformedPost, "policy and AWSAccessKeyId are required")
		}
		return s, s.setV2(field("awsaccesskeyid"), field("signature"))
	case s.policy != "":
		return nil, wrapf(ErrMalformedPost, "a form with a policy must have a field named x-amz-signature")
	}
	return nil, nil
}

func (v *Verifier) parsePostV4(s *Signature, field func(string) string) error {
	s.Scheme = PostV4
	if s.policy == "" {
		return wrapf(ErrMalformedPost, "a signed form must have a field named policy")
	}
	if field("x-amz-algorithm") != algorithm {
		return wrapf(ErrMalformedPost, "x-amz-algorithm must be %s", algorithm)
	}
	if err := v.parseScope(s, ErrMalformedPost, field("x-amz-credential"), field("x-amz-signature")); err != nil {
		return err
	}
	t, err := time.Parse(timeFormat, field("x-amz-date"))
	if err != nil || t.Format(dateFormat) != s.date {
		return wrapf(ErrMalformedPost, "x-amz-date must be yyyymmddThhmmssZ, on the credential's day")
	}
	// A form may be signed long before it is sent: its policy says until
	// when. Only a date in the future is wrong in itself.
	if t.After(v.cfg.Now().Add(MaxSkew)) {
		return ErrNotYetValid
	}
	return nil
}

package sigv4

import "strings"

// ParsePost reads the signature of a browser form; field returns the value of
// a form field by its lower-case name, or "". It returns nil, nil for a form
// without a policy, which is anonymous. The policy's own expiration and
// conditions are the caller's to check.
func (v *Verifier) ParsePost(field func(string) string) (*Signature, error) {
	s := &Signature{policy: field("policy"), Payload: Payload{Kind: Unsigned}, Token: field("x-amz-security-token")}
	switch {
	case field("x-amz-signature")+field("x-amz-algorithm")+field("x-amz-credential")+field("x-amz-date") != "":
		return s, v.parsePostV4(s, field)
	case field("signature") != "":
		s.Scheme = PostV2
		if v.cfg.V2 == V2None {
			return nil, ErrUnsupportedAuth
		}
		if s.policy == "" || field("awsaccesskeyid") == "" {
			return nil, missingField(field, "policy", "AWSAccessKeyId")
		}
		return s, s.setV2(field("awsaccesskeyid"), field("signature"))
	case s.Token != "" && s.policy == "":
		return nil, ErrSessionToken
	case s.policy != "":
		return nil, missingField(field, "AWSAccessKeyId", "signature")
	}
	return nil, nil
}

// missingField names the first that a form has not.
func missingField(field func(string) string, names ...string) error {
	for _, name := range names {
		if field(strings.ToLower(name)) == "" {
			return argument(ErrMalformedPost, name, "", "Bucket POST must contain a field named '"+name+"'.  If it is specified, please check the order of the fields.")
		}
	}
	return nil
}

func (v *Verifier) parsePostV4(s *Signature, field func(string) string) error {
	s.Scheme = PostV4
	if err := missingField(field, "policy", "X-Amz-Signature", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date"); err != nil {
		return err
	}
	if v := field("x-amz-algorithm"); v != algorithm {
		return argument(ErrMalformedPost, "X-Amz-Algorithm", v, "Only "+algorithm+" is supported")
	}
	if err := v.parseScope(s, ErrMalformedPost, field("x-amz-credential"), field("x-amz-signature")); err != nil {
		return err
	}
	t, err := parseStamp(field("x-amz-date"))
	if err != nil || t.Format(dateFormat) != s.date {
		return argument(ErrMalformedPost, "X-Amz-Date", field("x-amz-date"), "X-Amz-Date must be formated via ISO8601 Long format")
	}
	// A form may be signed long before it is sent: its policy says until
	// when. Only a date in the future is wrong in itself.
	if t.After(v.cfg.Now().Add(MaxSkew)) {
		return ErrNotYetValid
	}
	return nil
}

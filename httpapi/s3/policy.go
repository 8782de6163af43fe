package s3

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// policy is the decoded policy of a browser form (S3 API reference, "Creating
// a POST policy").
type policy struct {
	conditions []condition
	minBytes   int64
	maxBytes   int64 // -1: no content-length-range
}

type condition struct {
	prefix bool // starts-with, else equal
	field  string
	value  string
}

// parsePolicy decodes a policy and checks its expiration.
func parsePolicy(encoded string, now time.Time) (*policy, error) {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	var doc struct {
		Expiration string            `json:"expiration"`
		Conditions []json.RawMessage `json:"conditions"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &doc)
	}
	if err != nil {
		return nil, badPolicy("Invalid JSON.")
	}
	expires, err := time.Parse(time.RFC3339, doc.Expiration)
	if err != nil {
		return nil, badPolicy("Invalid 'expiration' value.")
	}
	if now.After(expires) {
		return nil, newError(codePolicyViolated).withMessage("Invalid according to Policy: Policy expired.")
	}
	p := &policy{maxBytes: -1}
	for _, c := range doc.Conditions {
		if err := p.add(c); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func badPolicy(why string) error {
	return newError(code{"InvalidPolicyDocument", 400, "Invalid Policy: " + why})
}

// add takes {"field": "value"}, ["eq", "$field", "value"],
// ["starts-with", "$field", "value"], or ["content-length-range", min, max].
func (p *policy) add(raw json.RawMessage) error {
	var exact map[string]string
	if json.Unmarshal(raw, &exact) == nil {
		for f, v := range exact {
			p.conditions = append(p.conditions, condition{false, strings.ToLower(f), v})
		}
		return nil
	}
	var list []any
	if err := json.Unmarshal(raw, &list); err != nil || len(list) != 3 {
		return badPolicy("Invalid condition.")
	}
	op, _ := list[0].(string)
	if strings.EqualFold(op, "content-length-range") {
		lo, ok1 := list[1].(float64)
		hi, ok2 := list[2].(float64)
		if !ok1 || !ok2 || lo < 0 || hi < lo {
			return badPolicy("Invalid content-length-range.")
		}
		p.minBytes, p.maxBytes = int64(lo), int64(min(hi, 1<<62))
		return nil
	}
	field, ok1 := list[1].(string)
	value, ok2 := list[2].(string)
	prefix := strings.EqualFold(op, "starts-with")
	if !ok1 || !ok2 || !strings.HasPrefix(field, "$") || !prefix && !strings.EqualFold(op, "eq") {
		return badPolicy("Invalid condition.")
	}
	p.conditions = append(p.conditions, condition{prefix, strings.ToLower(field[1:]), value})
	return nil
}

// namesBucket tells whether a condition says which bucket the form is for:
// all of its name, or its beginning.
func (p *policy) namesBucket() bool {
	for _, c := range p.conditions {
		if c.field == "bucket" && (!c.prefix || c.value != "") {
			return true
		}
	}
	return false
}

// check compares the form with the policy: every condition must hold, and
// every field must have a condition.
func (p *policy) check(fields map[string]string) error {
	covered := map[string]bool{}
	if !p.namesBucket() {
		// S3 says so of every field without a condition. A policy that names
		// no bucket would be good for every bucket of its signer.
		return newError(codePolicyViolated).withMessage("Invalid according to Policy: Extra input fields: bucket")
	}
	for _, c := range p.conditions {
		covered[c.field] = true
		v := fields[c.field]
		if c.prefix && strings.HasPrefix(v, c.value) || !c.prefix && v == c.value {
			continue
		}
		op := "eq"
		if c.prefix {
			op = "starts-with"
		}
		return newError(codePolicyViolated).withMessage(`Invalid according to Policy: Policy Condition failed: ["%s", "$%s", "%s"]`, op, c.field, c.value)
	}
	for f := range fields {
		switch f {
		case "x-amz-signature", "file", "policy", "awsaccesskeyid", "signature", "bucket":
			continue
		}
		if !covered[f] && !strings.HasPrefix(f, "x-ignore-") {
			return newError(codePolicyViolated).withMessage("Invalid according to Policy: Extra input fields: %s", f)
		}
	}
	return nil
}

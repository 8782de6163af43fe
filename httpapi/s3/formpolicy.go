package s3

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// formPolicy is the decoded policy of a browser form (S3 API reference, "Creating
// a POST policy").
type formPolicy struct {
	conditions []condition
	minBytes   int64
	maxBytes   int64 // -1: no content-length-range
}

type condition struct {
	prefix bool   // starts-with, else equal
	field  string // in lower case
	value  string
	text   string // as a refusal shows it
}

// parsePolicy decodes a policy and checks its expiration.
func parsePolicy(encoded string, now time.Time) (*formPolicy, error) {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case err != nil:
		return nil, badPolicy("invalid Base64 encoding.")
	case len(bytes.TrimSpace(raw)) == 0:
		return nil, badPolicy("Expecting '{' but found End-of-Input")
	}
	expiration, conditions, err := splitPolicy(plainEscapes(raw))
	if err != nil {
		return nil, err
	}
	expires, err := time.Parse(time.RFC3339, expiration)
	if err != nil {
		return nil, badPolicy("Invalid 'expiration' value: '%s'", expiration)
	}
	p := &formPolicy{maxBytes: -1}
	for _, c := range conditions {
		if err := p.add(c); err != nil {
			return nil, err
		}
	}
	if now.After(expires) {
		return nil, newError(codePolicyViolated).withMessage("Invalid according to Policy: Policy expired.")
	}
	return p, nil
}

func badPolicy(why string, args ...any) error {
	return newError(code{"InvalidPolicyDocument", 400, "Invalid Policy: " + fmt.Sprintf(why, args...)})
}

// splitPolicy finds the members of a policy, whose names are compared exactly.
func splitPolicy(raw []byte) (expiration string, conditions []json.RawMessage, err error) {
	var doc map[string]json.RawMessage
	if json.Unmarshal(raw, &doc) != nil || doc == nil {
		return "", nil, badPolicy("Invalid JSON.")
	}
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if name != "expiration" && name != "conditions" {
			return "", nil, badPolicy("Unexpected: %q", name)
		}
	}
	switch expires, given := doc["expiration"]; {
	case !given:
		return "", nil, badPolicy("Policy missing expiration.")
	case json.Unmarshal(expires, &expiration) != nil:
		return "", nil, badPolicy("Invalid JSON.")
	}
	switch list, given := doc["conditions"]; {
	case !given:
		return "", nil, badPolicy("Policy missing conditions.")
	case json.Unmarshal(list, &conditions) != nil || conditions == nil:
		return "", nil, badPolicy("Invalid 'conditions' value: must be a List.")
	}
	return expiration, conditions, nil
}

// plainEscapes writes the two escapes that policies have and JSON has not, \$
// and \v, as JSON does.
func plainEscapes(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 == len(raw) {
			out = append(out, raw[i])
			continue
		}
		i++
		switch raw[i] {
		case '$':
			out = append(out, '$')
		case 'v':
			out = append(out, `\u000b`...)
		default:
			out = append(out, '\\', raw[i])
		}
	}
	return out
}

// add takes {"field": "value"}, ["eq", "$field", "value"],
// ["starts-with", "$field", "value"], or ["content-length-range", min, max].
func (p *formPolicy) add(raw json.RawMessage) error {
	var exact map[string]any
	var list []any
	switch {
	case json.Unmarshal(raw, &exact) == nil && exact != nil:
		return p.addExact(exact)
	case json.Unmarshal(raw, &list) == nil && list != nil:
		return p.addTest(list, string(raw))
	}
	return badPolicy("Invalid condition test: must be a List or Object.")
}

func (p *formPolicy) addExact(exact map[string]any) error {
	if len(exact) != 1 {
		return badPolicy("Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.")
	}
	for f, v := range exact {
		value, ok := v.(string)
		if !ok {
			return badPolicy("Invalid Simple-Condition: value must be a string.")
		}
		text := fmt.Sprintf(`["eq", "$%s", "%s"]`, f, value)
		p.conditions = append(p.conditions, condition{false, strings.ToLower(f), value, text})
	}
	return nil
}

func (p *formPolicy) addTest(list []any, text string) error {
	if len(list) == 0 {
		return badPolicy("Invalid Condition: missing operation identifier.")
	}
	name, _ := list[0].(string)
	op := strings.ToLower(name)
	switch {
	case op != "eq" && op != "starts-with" && op != "content-length-range":
		return badPolicy("Invalid Condition: unknown operation '%s'.", name)
	case len(list) != 3:
		return badPolicy("Invalid %s: wrong number of arguments.", op)
	case op == "content-length-range":
		return p.setRange(list[1], list[2])
	}
	field, ok1 := list[1].(string)
	value, ok2 := list[2].(string)
	if !ok1 || !ok2 {
		return badPolicy("Invalid JSON.")
	}
	name, isField := strings.CutPrefix(field, "$")
	if !isField {
		name = "" // such a condition never holds, and covers no field
	}
	p.conditions = append(p.conditions, condition{op == "starts-with", strings.ToLower(name), value, text})
	return nil
}

// setRange keeps the narrower of two ranges, which both must hold.
func (p *formPolicy) setRange(from, to any) error {
	lo, ok1 := sizeOf(from)
	hi, ok2 := sizeOf(to)
	if !ok1 || !ok2 {
		return badPolicy("Invalid JSON.")
	}
	if lo < 0 || hi < lo {
		return badPolicy("Invalid content-length-range: the range is not valid.")
	}
	if p.maxBytes < 0 {
		p.maxBytes = hi
	}
	p.minBytes, p.maxBytes = max(p.minBytes, lo), min(p.maxBytes, hi)
	return nil
}

// sizeOf reads a number, or the text of one, which some clients send.
func sizeOf(v any) (int64, bool) {
	switch v := v.(type) {
	case float64:
		return int64(min(v, 1<<62)), v == float64(int64(min(v, 1<<62))) || v > 1<<62
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// namesBucket reports whether a condition says which bucket the form is for:
// all of its name, or its beginning.
func (p *formPolicy) namesBucket() bool {
	for _, c := range p.conditions {
		if c.field == "bucket" && (!c.prefix || c.value != "") {
			return true
		}
	}
	return false
}

// check compares the form with the policy: every condition must hold, and
// every field must have a condition.
func (p *formPolicy) check(fields map[string]string) error {
	covered := map[string]bool{}
	if !p.namesBucket() {
		// S3 says so of every field without a condition. A policy that names
		// no bucket would be good for every bucket of its signer.
		return extraField("bucket")
	}
	for _, c := range p.conditions {
		covered[c.field] = true
		if v, given := fields[c.field]; !given && c.value != "" || !c.holds(v) {
			return newError(codePolicyViolated).withMessage("Invalid according to Policy: Policy Condition failed: %s", c.text)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		switch f {
		case "x-amz-signature", "file", "policy", "awsaccesskeyid", "signature", "bucket":
			continue
		}
		if !covered[f] && !strings.HasPrefix(f, "x-ignore-") {
			return extraField(f)
		}
	}
	return nil
}

func extraField(name string) error {
	return newError(codePolicyViolated).withMessage("Invalid according to Policy: Extra input fields: %s", name)
}

// holds compares a field's value. A Content-Type with commas is a list, each
// of which must begin as the policy says.
func (c *condition) holds(v string) bool {
	switch {
	case c.field == "":
		return false
	case !c.prefix:
		return v == c.value
	case c.field != "content-type":
		return strings.HasPrefix(v, c.value)
	}
	for item := range strings.SplitSeq(v, ",") {
		if !strings.HasPrefix(strings.TrimSpace(item), c.value) {
			return false
		}
	}
	return true
}

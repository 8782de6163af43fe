package policy

import (
	"encoding/base64"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// condition is one key below one operator.
type condition struct {
	op       *operator
	key      string // in lower case
	set      setKind
	ifExists bool
	operands []operand
}

// setKind is how several values of a request's key are compared.
type setKind byte

const (
	plain  setKind = iota
	forAny         // ForAnyValue:
	forAll         // ForAllValues:
)

// operand is one value of a document, in the form that its operator compares with.
type operand struct {
	text pattern   // strings, and bytes once decoded
	arn  []pattern // ARNs: six parts
	num  number
	when time.Time
	net  netip.Prefix
	flag bool
}

// number keeps integers exact.
type number struct {
	f       float64
	i       int64
	integer bool
}

func parseNumber(s string) (n number, ok bool) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return number{float64(i), i, true}, true
	}
	f, err := strconv.ParseFloat(s, 64)
	return number{f: f}, err == nil && f == f
}

// compare is negative, zero or positive as n is less than, equal to or greater than m.
func (n number) compare(m number) int {
	switch {
	case n.integer && m.integer && n.i < m.i, !(n.integer && m.integer) && n.f < m.f:
		return -1
	case n.integer && m.integer && n.i > m.i, !(n.integer && m.integer) && n.f > m.f:
		return 1
	}
	return 0
}

// dateLayouts are those of ISO 8601 that IAM takes (W3C's note on dates).
var dateLayouts = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15Z07:00", "2006-01-02", "2006-01", "2006"}

// parseDate reads a date, or seconds since 1970. A number of four digits is a year.
func parseDate(s string) (time.Time, bool) {
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	n, ok := parseNumber(s)
	if !ok || n.f < -1<<53 || n.f > 1<<53 {
		return time.Time{}, false
	}
	seconds := int64(n.f)
	return time.Unix(seconds, int64((n.f-float64(seconds))*1e9)), true
}

// parseNet reads an address or a network in CIDR form.
func parseNet(s string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, a.BitLen()), true
}

// arnParts is how many parts an ARN has; the last holds the rest.
const arnParts = 6

// splitARN splits at colons outside of variables.
func splitARN(s string) []string {
	parts := make([]string, 0, arnParts)
	for depth, from, i := 0, 0, 0; i < len(s) && len(parts) < arnParts-1; i++ {
		switch s[i] {
		case '{':
			if i > 0 && s[i-1] == '$' {
				depth++
			}
		case '}':
			depth = 0
		case ':':
			if depth == 0 {
				parts = append(parts, s[from:i])
				from = i + 1
			}
		}
		if len(parts) == arnParts-1 {
			return append(parts, s[from:])
		}
	}
	return parts
}

// cutARN returns the next part of an ARN and the rest.
func cutARN(s string, last bool) (part, rest string, ok bool) {
	if last {
		return s, "", true
	}
	return strings.Cut(s, ":")
}

// operator is how one condition operator reads its operands and compares.
type operator struct {
	negated bool
	// fixed reports whether it holds for the values alone that the document names, or
	// for a network (see Document.Public).
	fixed   bool
	null    bool
	compile func(text string, s syntax) (operand, bool)
	match   func(o *operand, value string, v Values) bool
}

func compileText(fold, wildcards bool) func(string, syntax) (operand, bool) {
	return func(text string, s syntax) (o operand, ok bool) {
		s.fold, s.wildcards = fold, wildcards
		o.text, ok = compile(text, s)
		return o, ok
	}
}

func matchText(o *operand, value string, v Values) bool { return o.text.match(value, v) }

func compileNumber(text string, _ syntax) (o operand, ok bool) {
	o.num, ok = parseNumber(text)
	return o, ok
}

func matchNumber(holds func(int) bool) func(*operand, string, Values) bool {
	return func(o *operand, value string, _ Values) bool {
		n, ok := parseNumber(value)
		return ok && holds(n.compare(o.num))
	}
}

func compileDate(text string, _ syntax) (o operand, ok bool) {
	o.when, ok = parseDate(text)
	return o, ok
}

func matchDate(holds func(int) bool) func(*operand, string, Values) bool {
	return func(o *operand, value string, _ Values) bool {
		t, ok := parseDate(value)
		return ok && holds(t.Compare(o.when))
	}
}

func compileFlag(text string, _ syntax) (o operand, ok bool) {
	o.flag = strings.EqualFold(text, "true")
	return o, o.flag || strings.EqualFold(text, "false")
}

func matchFlag(o *operand, value string, _ Values) bool {
	return o.flag && strings.EqualFold(value, "true") || !o.flag && strings.EqualFold(value, "false")
}

func compileBytes(text string, _ syntax) (o operand, ok bool) {
	b, err := base64.StdEncoding.DecodeString(text)
	o.text.literal(string(b))
	return o, err == nil
}

func compileNet(text string, _ syntax) (o operand, ok bool) {
	o.net, ok = parseNet(text)
	return o, ok
}

func matchNet(o *operand, value string, _ Values) bool {
	a, err := netip.ParseAddr(value)
	return err == nil && o.net.Contains(a.Unmap().WithZone(""))
}

func compileARN(text string, s syntax) (o operand, ok bool) {
	s.wildcards = true
	parts := splitARN(text)
	if text == "*" {
		parts = []string{"*", "*", "*", "*", "*", "*"}
	}
	for _, part := range parts {
		p, ok := compile(part, s)
		if !ok {
			return o, false
		}
		o.arn = append(o.arn, p)
	}
	return o, len(o.arn) == arnParts
}

// matchARN compares part by part, so that no wildcard reaches beyond a colon.
func matchARN(o *operand, value string, v Values) bool {
	for i := range o.arn {
		part, rest, ok := cutARN(value, i == len(o.arn)-1)
		if !ok || !o.arn[i].match(part, v) {
			return false
		}
		value = rest
	}
	return true
}

func equal(c int) bool   { return c == 0 }
func less(c int) bool    { return c < 0 }
func most(c int) bool    { return c <= 0 }
func greater(c int) bool { return c > 0 }
func least(c int) bool   { return c >= 0 }

var operators = map[string]*operator{
	"StringEquals":              {fixed: true, compile: compileText(false, false), match: matchText},
	"StringNotEquals":           {negated: true, compile: compileText(false, false), match: matchText},
	"StringEqualsIgnoreCase":    {fixed: true, compile: compileText(true, false), match: matchText},
	"StringNotEqualsIgnoreCase": {negated: true, compile: compileText(true, false), match: matchText},
	"StringLike":                {fixed: true, compile: compileText(false, true), match: matchText},
	"StringNotLike":             {negated: true, compile: compileText(false, true), match: matchText},
	"NumericEquals":             {compile: compileNumber, match: matchNumber(equal)},
	"NumericNotEquals":          {negated: true, compile: compileNumber, match: matchNumber(equal)},
	"NumericLessThan":           {compile: compileNumber, match: matchNumber(less)},
	"NumericLessThanEquals":     {compile: compileNumber, match: matchNumber(most)},
	"NumericGreaterThan":        {compile: compileNumber, match: matchNumber(greater)},
	"NumericGreaterThanEquals":  {compile: compileNumber, match: matchNumber(least)},
	"DateEquals":                {compile: compileDate, match: matchDate(equal)},
	"DateNotEquals":             {negated: true, compile: compileDate, match: matchDate(equal)},
	"DateLessThan":              {compile: compileDate, match: matchDate(less)},
	"DateLessThanEquals":        {compile: compileDate, match: matchDate(most)},
	"DateGreaterThan":           {compile: compileDate, match: matchDate(greater)},
	"DateGreaterThanEquals":     {compile: compileDate, match: matchDate(least)},
	"Bool":                      {compile: compileFlag, match: matchFlag},
	"BinaryEquals":              {compile: compileBytes, match: matchText},
	"IpAddress":                 {fixed: true, compile: compileNet, match: matchNet},
	"NotIpAddress":              {negated: true, compile: compileNet, match: matchNet},
	"ArnEquals":                 {fixed: true, compile: compileARN, match: matchARN},
	"ArnLike":                   {fixed: true, compile: compileARN, match: matchARN},
	"ArnNotEquals":              {negated: true, compile: compileARN, match: matchARN},
	"ArnNotLike":                {negated: true, compile: compileARN, match: matchARN},
	"Null":                      {null: true, compile: compileFlag},
}

// holds reports whether a request meets the condition.
func (c *condition) holds(v Values) bool {
	var values []string
	if v != nil {
		// What comes with false is worth nothing, whatever its length.
		if known, ok := v.Value(c.key); ok {
			values = known
		}
	}
	switch {
	case c.op.null:
		return c.absent(len(values) == 0)
	case len(values) == 0:
		return c.ifExists || c.set == forAll || c.set == plain && c.op.negated
	case len(values) == 1: // operands with variables ask for other keys
		return c.any(values[0], v) != c.op.negated
	case c.set == plain:
		return c.anyOf(values, v, false) != c.op.negated
	case c.set == forAny:
		return c.anyOf(values, v, c.op.negated)
	}
	return !c.anyOf(values, v, !c.op.negated)
}

func (c *condition) absent(is bool) bool {
	for i := range c.operands {
		if c.operands[i].flag == is {
			return true
		}
	}
	return false
}

// anyOf reports whether one of several values matches, or with not, does not.
func (c *condition) anyOf(values []string, v Values, not bool) bool {
	for _, x := range values {
		if c.any(x, v) != not {
			return true
		}
	}
	return false
}

// any reports whether one of the operands matches.
func (c *condition) any(value string, v Values) bool {
	for i := range c.operands {
		if c.op.match(&c.operands[i], value, v) {
			return true
		}
	}
	return false
}

package policy

import (
	"encoding/base64"
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A second evaluator: it works on the JSON itself, with regular expressions, and
// knows nothing of the compiled form.

// keyMap are condition keys in lower case.
type keyMap map[string][]string

func (m keyMap) Value(key string) ([]string, bool) {
	v, ok := m[key]
	return v, ok
}

type naive struct {
	r    *Request
	keys keyMap
	vars bool
}

func naiveDecide(text []byte, r *Request) Effect {
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		panic(err)
	}
	keys, _ := r.Values.(keyMap)
	n := naive{r, keys, doc["Version"] == version2012}
	best := None
	for _, s := range many(doc["Statement"]) {
		best = max(best, n.statement(s.(map[string]any)))
	}
	return best
}

func many(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

func text(v any) string {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return v.(string)
}

func (n *naive) statement(s map[string]any) Effect {
	has := func(name string, match func(string) bool) bool {
		if v, ok := s[name]; ok {
			return slices.ContainsFunc(many(v), func(v any) bool { return match(text(v)) })
		}
		return !slices.ContainsFunc(many(s["Not"+name]), func(v any) bool { return match(text(v)) })
	}
	action := func(p string) bool { return n.like("(?i)", p, n.r.Action, true, false) }
	resource := func(p string) bool { return n.like("", p, n.r.Resource, true, n.vars) }
	if !has("Action", action) || !has("Resource", resource) {
		return None
	}
	reached := n.principal(s)
	if reached == None {
		return None
	}
	if c, ok := s["Condition"].(map[string]any); ok {
		for op, keys := range c {
			for key, values := range keys.(map[string]any) {
				if !n.condition(op, strings.ToLower(key), many(values)) {
					return None
				}
			}
		}
	}
	if s["Effect"] == "Deny" {
		return Deny
	}
	return reached
}

// principal is Allow for who is named, AllowRole for a session whose role is,
// AllowAccount for one whose account is.
func (n *naive) principal(s map[string]any) Effect {
	p, ok := s["Principal"]
	if !ok {
		if p, ok = s["NotPrincipal"]; !ok {
			return Allow
		}
		for _, names := range p.(map[string]any) {
			for _, name := range many(names) {
				if name == n.r.Principal.ID && name != "" || name == n.r.Principal.Name && name != "" {
					return None
				}
			}
		}
		return Allow
	}
	if p == "*" {
		return Allow
	}
	best := None
	for _, names := range p.(map[string]any) {
		for _, name := range many(names) {
			p := n.r.Principal
			if name == "*" || name == p.Name {
				best = max(best, Allow)
			}
			if name == p.ID && p.Name == "" {
				best = max(best, Allow)
			}
			if name == p.ID {
				best = max(best, AllowRole)
			}
			if name == p.Account {
				best = max(best, AllowAccount)
			}
		}
	}
	return best
}

var variableForm = regexp.MustCompile(`\$\{([^}]*)\}`)

// like builds a regular expression of a pattern.
func (n *naive) like(flags, pattern, s string, wildcards, vars bool) bool {
	var b strings.Builder
	quote := func(lit string) {
		for _, r := range lit {
			switch {
			case wildcards && r == '*':
				b.WriteString(".*")
			case wildcards && r == '?':
				b.WriteString(".")
			default:
				b.WriteString(regexp.QuoteMeta(string(r)))
			}
		}
	}
	for vars {
		at := variableForm.FindStringSubmatchIndex(pattern)
		if at == nil {
			break
		}
		quote(pattern[:at[0]])
		inner := pattern[at[2]:at[3]]
		pattern = pattern[at[1]:]
		if inner == "*" || inner == "?" || inner == "$" {
			b.WriteString(regexp.QuoteMeta(inner))
			continue
		}
		name, def, given := strings.Cut(inner, ",")
		values := n.keys[strings.ToLower(strings.TrimSpace(name))]
		switch {
		case len(values) == 1:
			b.WriteString(regexp.QuoteMeta(values[0]))
		case given:
			b.WriteString(regexp.QuoteMeta(strings.Trim(strings.TrimSpace(def), "'")))
		default:
			return false
		}
	}
	quote(pattern)
	return regexp.MustCompile("(?s)" + flags + "^(?:" + b.String() + ")$").MatchString(s)
}

func (n *naive) condition(op, key string, operands []any) bool {
	one := strings.HasPrefix(op, "ForAnyValue:")
	all := strings.HasPrefix(op, "ForAllValues:")
	if one || all {
		_, op, _ = strings.Cut(op, ":")
	}
	optional := strings.HasSuffix(op, "IfExists")
	op = strings.TrimSuffix(op, "IfExists")
	values := n.keys[key]
	if op == "Null" {
		return slices.ContainsFunc(operands, func(o any) bool { return (text(o) == "true") == (len(values) == 0) })
	}
	not := strings.Contains(op, "Not")
	op = strings.Replace(op, "Not", "", 1)
	if len(values) == 0 {
		return optional || all || not && !one
	}
	results := make([]bool, len(values))
	for i, v := range values {
		results[i] = slices.ContainsFunc(operands, func(o any) bool { return n.compare(op, text(o), v) })
	}
	switch {
	case all && not:
		return !slices.Contains(results, true)
	case all:
		return !slices.Contains(results, false)
	case one && not:
		return slices.Contains(results, false)
	case one:
		return slices.Contains(results, true)
	}
	return slices.Contains(results, true) != not
}

func (n *naive) compare(op, operand, value string) bool {
	switch op {
	case "StringEquals":
		return n.like("", operand, value, false, n.vars)
	case "StringEqualsIgnoreCase":
		return n.like("(?i)", operand, value, false, n.vars)
	case "StringLike":
		return n.like("", operand, value, true, n.vars)
	case "ArnEquals", "ArnLike":
		a, b := splitARN(operand), strings.SplitN(value, ":", arnParts)
		if operand == "*" {
			return len(b) == arnParts
		}
		for i := range a {
			if len(b) != arnParts || !n.like("", a[i], b[i], true, n.vars) {
				return false
			}
		}
		return true
	case "Bool":
		return strings.EqualFold(operand, value)
	case "BinaryEquals":
		b, _ := base64.StdEncoding.DecodeString(operand)
		return string(b) == value
	case "IpAddress":
		if !strings.Contains(operand, "/") {
			return net.ParseIP(operand).Equal(net.ParseIP(value))
		}
		_, network, _ := net.ParseCIDR(operand)
		ip := net.ParseIP(value)
		return ip != nil && network.Contains(ip)
	}
	var c int
	if kind, ok := strings.CutPrefix(op, "Numeric"); ok {
		a, ok1 := new(big.Rat).SetString(value)
		b, ok2 := new(big.Rat).SetString(operand)
		if !ok1 || !ok2 {
			return false
		}
		c, op = a.Cmp(b), kind
	} else {
		a, ok1 := naiveDate(value)
		b, ok2 := naiveDate(operand)
		if !ok1 || !ok2 {
			return false
		}
		c, op = a.Compare(b), strings.TrimPrefix(op, "Date")
	}
	return op == "Equals" && c == 0 || op == "LessThan" && c < 0 || op == "LessThanEquals" && c <= 0 ||
		op == "GreaterThan" && c > 0 || op == "GreaterThanEquals" && c >= 0
}

func naiveDate(s string) (time.Time, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && len(s) != 4 {
		return time.Unix(n, 0), true
	}
	for _, layout := range []string{"2006", "2006-01-02", time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// maker makes random documents and requests of a small vocabulary, so that they meet.
type maker struct{ *rand.Rand }

func pick[T any](m maker, from ...T) T { return from[m.IntN(len(from))] }

// some returns one value, or a list of up to three.
func (m maker) some(make func() string) any {
	if m.IntN(2) == 0 {
		return make()
	}
	list := []string{make()}
	for range m.IntN(3) {
		list = append(list, make())
	}
	return list
}

func (m maker) word() string { return pick(m, "a", "b", "ab", "A", "a*", "*", "", "a/b", "é", "zz") }

func (m maker) patternText() string {
	t := ""
	for range m.IntN(5) {
		t += pick(m, "a", "b", "*", "?", "é", "/", "${aws:username}", "${aws:Absent}", "${aws:absent, 'b'}", "${*}", "${?}", "${$}", "$")
	}
	return t
}

func (m maker) operand(op string) func() string {
	return func() string {
		switch {
		case strings.HasPrefix(op, "String"):
			return m.patternText()
		case strings.HasPrefix(op, "Numeric"):
			return pick(m, "0", "1", "10", "-1", "1.5", "9007199254740993")
		case strings.HasPrefix(op, "Date"):
			return pick(m, "2020", "2020-01-01", "2020-01-01T00:00:00Z", "1577836800", "2021-06-01T12:00:00+02:00")
		case op == "Bool" || op == "Null":
			return pick(m, "true", "false")
		case op == "BinaryEquals":
			return base64.StdEncoding.EncodeToString([]byte(m.word()))
		case strings.HasSuffix(op, "IpAddress"):
			return pick(m, "192.0.2.0/24", "192.0.2.7", "2001:db8::/32", "0.0.0.0/0", "192.0.2.7/32", "::/0")
		}
		return pick(m, "*", "arn:aws:iam::1:user/a", "arn:aws:*:*:*:user/"+m.patternText(), "arn:aws:iam::${aws:username}:x")
	}
}

func (m maker) value(op string) string {
	switch {
	case strings.HasPrefix(op, "Numeric"):
		return pick(m, "0", "1", "10", "x", "1.50", "9007199254740992")
	case strings.HasPrefix(op, "Date"):
		return pick(m, "2020-01-01T00:00:00Z", "1577836801", "soon", "2021-06-01T10:00:00Z")
	case op == "Bool":
		return pick(m, "true", "false", "TRUE", "yes")
	case strings.HasSuffix(op, "IpAddress"):
		return pick(m, "192.0.2.7", "198.51.100.1", "2001:db8::1", "::ffff:192.0.2.7", "nowhere")
	case strings.HasPrefix(op, "Arn"):
		return pick(m, "arn:aws:iam::1:user/a", "arn:aws:sts::1:user/ab:c", "arn:aws:iam::a:x", "none")
	}
	return m.word()
}

// request returns a request with the condition keys given.
func (m maker) request(keys keyMap) *Request {
	r := &Request{Action: "s3:" + pick(m, "GetObject", "PutObject", "ListBucket"), Resource: bucketARN + "bkt" + pick(m, "", "/a", "/ab", "/a/b", "/é", "/*", "/"), Values: keys}
	r.Principal = pick(m, Principal{}, Principal{ID: "alice", Account: "alice"}, Principal{ID: "bob", Account: "alice"}, Principal{ID: "role", Name: "session", Account: "carol"})
	return r
}

// testCase returns a document and a request.
func (m maker) testCase() ([]byte, *Request) {
	keys := keyMap{}
	r := m.request(keys)
	if m.IntN(2) == 0 {
		keys["aws:username"] = []string{m.word()}
	}
	var statements []any
	for range 1 + m.IntN(pick(m, 4, 4, 12)) {
		s := map[string]any{"Effect": pick(m, "Allow", "Allow", "Deny")}
		s[pick(m, "Action", "Action", "NotAction")] = m.some(func() string { return pick(m, "s3:GetObject", "s3:get*", "s3:Put?bject", "s3:*", "*", "S3:LISTBUCKET") })
		s[pick(m, "Resource", "Resource", "NotResource")] = m.some(func() string {
			return pick(m, bucketARN+"bkt", bucketARN+"bkt/"+m.patternText(), bucketARN+"bkt/*")
		})
		if m.IntN(4) == 0 {
			s["Principal"] = pick[any](m, "*", map[string]any{"AWS": "*"})
		} else {
			s[pick(m, "Principal", "Principal", "NotPrincipal")] = map[string]any{"AWS": m.some(func() string { return pick(m, "alice", "bob", "carol", "role", "session") })}
		}
		if m.IntN(3) > 0 {
			s["Condition"] = m.conditions(keys)
		}
		statements = append(statements, s)
	}
	doc, err := json.Marshal(map[string]any{"Version": pick(m, version2008, version2012, version2012), "Statement": statements})
	if err != nil {
		panic(err)
	}
	return doc, r
}

func (m maker) conditions(keys keyMap) map[string]any {
	all := map[string]any{}
	names := make([]string, 0, len(operators))
	for name := range operators {
		names = append(names, name)
	}
	slices.Sort(names)
	for range 1 + m.IntN(2) {
		op := pick(m, names...)
		// Each has a key of its own, most of the time present.
		key := "aws:RequestTag/" + op
		if n := m.IntN(5); n > 0 && op != "Null" || n > 2 {
			var values []string
			for range max(1, n-2) {
				values = append(values, m.value(op))
			}
			keys[strings.ToLower(key)] = values
		}
		name := op
		if op != "Null" {
			name = pick(m, "", "", "ForAnyValue:", "ForAllValues:") + op + pick(m, "", "", "IfExists")
		}
		all[name] = map[string]any{key: m.some(m.operand(op))}
	}
	return all
}

// compare compares the evaluators: for one request that of the whole document, and for some
// in turn that of one which begins with no statement in memory.
func compare(t *testing.T, seed uint64) {
	t.Helper()
	m := maker{rand.New(rand.NewPCG(seed, 1))}
	text, r := m.testCase()
	d, partial, err := parseAnyResource(text)
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, text)
	}
	for range 4 {
		got, by := d.Decide(r)
		if want := naiveDecide(text, r); got != want {
			t.Fatalf("seed %d: %v, the second evaluator says %v\n%s\n%+v", seed, got, want, text, r)
		}
		if want, first := inOrder(d, r); got != want || by != first {
			t.Fatalf("seed %d: %v by statement %d; of all in order, %v by %d\n%s\n%+v", seed, got, by, want, first, text, r)
		}
		partial = decidePartly(t, d, partial, text, r)
		r = m.request(r.Values.(keyMap))
	}
}

// decidePartly decides as d does, and returns the document with the statements that it took.
func decidePartly(t *testing.T, d *Document, p *Partial, text []byte, r *Request) *Partial {
	t.Helper()
	want, first := d.Decide(r)
	got, by, missing := p.Decide(r)
	if len(missing) > 0 {
		var err error
		if p, err = p.With(text, missing); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		got, by, missing = p.Decide(r)
	}
	if got != want || by != first || len(missing) > 0 {
		t.Fatalf("%v by statement %d; of the whole document, %v by %d; then %v are missing\n%s\n%+v", got, by, want, first, missing, text, r)
	}
	if by >= 0 && p.Sid(by) != d.Sid(by) {
		t.Fatalf("statement %d is %q, want %q", by, p.Sid(by), d.Sid(by))
	}
	if p.Public() != d.Public() {
		t.Fatalf("public: %v, want %v\n%s", p.Public(), d.Public(), text)
	}
	return p
}

// inOrder is Decide without the index.
func inOrder(d *Document, r *Request) (best Effect, by int) {
	by = -1
	for i := range d.statements {
		if e := d.statements[i].applies(r, false); e > best {
			best, by = e, i
		}
	}
	return best, by
}

// parseAnyResource parses a document of a bucket without the checks of what its
// statements could be about, as a whole and with no statement in memory.
func parseAnyResource(text []byte) (*Document, *Partial, error) {
	doc, err := readJSON(text)
	if err != nil {
		return nil, nil, err
	}
	p := newParser(text, Options{Kind: Trust + 1})
	d, err := p.document(&doc)
	if err != nil {
		return nil, nil, err
	}
	return d, newPartial(p, d, &doc, 0), nil
}

func TestAgreesWithNaiveEvaluator(t *testing.T) {
	seed := rand.Uint64()
	for i := range uint64(6_000) {
		compare(t, seed+i)
	}
}

func FuzzEvaluate(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(compare)
}

func FuzzParse(f *testing.F) {
	for i := range uint64(20) {
		text, _ := maker{rand.New(rand.NewPCG(i, 1))}.testCase()
		f.Add(text)
	}
	f.Add([]byte(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"*","Resource":"arn:aws:s3:::bkt/${aws:username"}}`))
	r := &Request{Action: "s3:GetObject", Resource: bucketARN + "bkt/a", Values: keyMap{}}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, kind := range []Kind{Bucket, Identity, Trust} {
			d, err := Parse(text, Options{Kind: kind, Bucket: "bkt"})
			if err != nil {
				continue
			}
			o := Options{Kind: kind, Bucket: "bkt"}
			p, whole, doc, err := parse(text, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range []*Request{r, {Action: r.Action, Resource: bucketARN + "bkt", Values: keyMap{}}, r} {
				decidePartly(t, d, newPartial(p, whole, doc, 0), text, r)
			}
			again, err := Rewrite(text, func(name string) (string, error) { return name + "\"", nil })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse(again, Options{Kind: kind, Bucket: "bkt", MaxBytes: maxBytes}); err != nil {
				t.Fatalf("%v after the principals were replaced:\n%s\n%s", err, text, again)
			}
		}
	})
}

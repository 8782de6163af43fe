package policy

import "strings"

// Kind is what a document is for.
type Kind int

// The kinds.
const (
	// Bucket is the policy of a bucket: it names principals.
	Bucket Kind = iota
	// Identity is a policy of a user, a group, a role or a session, or a permission
	// boundary: it is about who has it.
	Identity
	// Trust is a policy that says who may assume a role: it names principals and no resource.
	Trust
)

const (
	// MaxBucketBytes bounds the policy of a bucket (S3).
	MaxBucketBytes = 20 << 10
	// maxStatements and maxOperands bound what a document of the largest size can
	// hold: 27 bytes are the shortest statement that has an effect on anything.
	maxStatements = 1000
	maxOperands   = 4000
)

// The versions of the language. Variables came with the second.
const (
	version2008 = "2008-10-17"
	version2012 = "2012-10-17"
)

// Options of Parse.
type Options struct {
	Kind Kind
	// Bucket is whose policy it is: all its resources are there.
	Bucket string
	// MaxBytes bounds the text; 0 is MaxBucketBytes.
	MaxBytes int
}

// Parse reads and compiles a document. What is wrong with one is an *Error.
func Parse(text []byte, o Options) (*Document, error) {
	_, d, _, err := parse(text, o)
	return d, err
}

func parse(text []byte, o Options) (p *parser, d *Document, doc *node, err error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = MaxBucketBytes
	}
	if len(text) > o.MaxBytes {
		return nil, nil, nil, tooLarge(o.MaxBytes)
	}
	n, err := readJSON(text)
	if err != nil {
		return nil, nil, nil, jsonError(err)
	}
	p = newParser(text, o)
	d, err = p.document(&n)
	return p, d, &n, err
}

// parser reads one document.
type parser struct {
	Options
	text     string
	syntax   syntax
	sids     map[string]bool
	operands int
	// What was read, by how it is written: statements often have the same.
	actionLists    map[string]actionList
	conditionLists map[string][]condition
}

func newParser(text []byte, o Options) *parser {
	return &parser{Options: o, text: string(text), sids: map[string]bool{}, actionLists: map[string]actionList{}, conditionLists: map[string][]condition{}}
}

// written is how a value stands in the document.
func (p *parser) written(n *node) string { return p.text[n.from:n.to] }

// actionList is what a statement says of actions.
type actionList struct {
	patterns []pattern
	s3       actionSet // those of S3's that the patterns match
}

func (p *parser) document(doc *node) (*Document, error) {
	for _, m := range doc.members {
		if m.name != "Version" && m.name != "Id" && m.name != "Statement" {
			return nil, malformed("Unknown field " + m.name)
		}
	}
	if v := doc.get("Version"); v != nil {
		if v.kind != 's' || v.text != version2008 && v.text != version2012 {
			return nil, malformed("The policy must contain a valid version string")
		}
		p.syntax.variables = v.text == version2012
	}
	if id := doc.get("Id"); id != nil && id.kind != 's' {
		return nil, malformed("Invalid policy syntax.")
	}
	list := doc.get("Statement")
	if list == nil {
		return nil, malformed("Missing required field Statement")
	}
	statements := list.oneOrMore()
	if len(statements) == 0 {
		return nil, malformed("Could not parse the policy: Statement is empty!")
	}
	if len(statements) > maxStatements {
		return nil, malformed("Invalid policy syntax.")
	}
	d := &Document{statements: make([]statement, 0, len(statements))}
	for i := range statements {
		s, err := p.statement(&statements[i])
		if err != nil {
			return nil, err
		}
		d.statements = append(d.statements, s)
	}
	d.outline = newOutline(len(d.statements), func(i int) outlined { return d.statements[i].outlined() })
	d.pack()
	return d, nil
}

var statementFields = map[string]bool{"Sid": true, "Effect": true, "Principal": true, "NotPrincipal": true, "Action": true,
	"NotAction": true, "Resource": true, "NotResource": true, "Condition": true}

func (p *parser) statement(n *node) (s statement, err error) {
	if n.kind != '{' {
		return s, malformed("Invalid policy syntax.")
	}
	for _, m := range n.members {
		if !statementFields[m.name] {
			return s, malformed("Unknown field " + m.name)
		}
	}
	for _, read := range []func(*node, *statement) error{p.sid, p.effect, p.principal, p.actions, p.resources, p.conditions} {
		if err := read(n, &s); err != nil {
			return s, err
		}
	}
	if p.Kind == Bucket {
		err = s.checkBucketActions(p.Bucket)
	}
	return s, err
}

func (p *parser) sid(n *node, s *statement) error {
	v := n.get("Sid")
	switch {
	case v == nil:
		return nil
	case v.kind != 's':
		return malformed("Invalid policy syntax.")
	case v.text != "" && p.sids[v.text]:
		return malformed("Statement IDs (SID) in a single policy must be unique.")
	}
	s.sid, p.sids[v.text] = v.text, true
	return nil
}

func (p *parser) effect(n *node, s *statement) error {
	switch v := n.get("Effect"); {
	case v == nil:
		return malformed("Missing required field Effect")
	case v.kind == 's' && v.text == "Allow":
		s.effect = Allow
	case v.kind == 's' && v.text == "Deny":
		s.effect = Deny
	default:
		return malformed("Invalid effect: " + v.text)
	}
	return nil
}

// either returns the one of two members that is there.
func either(n *node, name string) (v *node, not bool, err error) {
	v, other := n.get(name), n.get("Not"+name)
	switch {
	case v != nil && other != nil:
		return nil, false, malformed("Invalid policy syntax.")
	case v == nil:
		return other, true, nil
	}
	return v, false, nil
}

func (p *parser) principal(n *node, s *statement) error {
	v, not, err := either(n, "Principal")
	switch {
	case err != nil:
		return err
	case v == nil && p.Kind == Identity:
		return nil
	case v == nil:
		return malformed("Missing required field Principal")
	case p.Kind == Identity:
		return malformed("Policy document should not specify a principal.")
	}
	s.who, err = parsePrincipals(v, not)
	return err
}

// texts returns a string, or a list of them that is not empty.
func texts(n *node, fault string) ([]string, error) {
	var list []string
	for _, v := range n.oneOrMore() {
		if v.kind != 's' {
			return nil, malformed(fault)
		}
		list = append(list, v.text)
	}
	if len(list) == 0 {
		return nil, malformed(fault)
	}
	return list, nil
}

func (p *parser) actions(n *node, s *statement) error {
	v, not, err := either(n, "Action")
	switch {
	case err != nil:
		return err
	case v == nil:
		return malformed("Missing required field Action")
	}
	list, known := p.actionLists[p.written(v)]
	if !known {
		if list, err = p.actionList(v); err != nil {
			return err
		}
		p.actionLists[p.written(v)] = list
	}
	s.actions, s.notActions, s.s3 = list.patterns, not, list.s3
	if not {
		s.s3 = list.s3.others()
	}
	return nil
}

func (p *parser) actionList(v *node) (a actionList, err error) {
	list, err := texts(v, "Policy has invalid action")
	if err != nil {
		return a, err
	}
	a.patterns = make([]pattern, 0, len(list))
	for _, text := range list {
		action, ok := compile(text, syntax{wildcards: true, fold: true})
		if !ok || !p.knowsAction(text, &action) {
			return a, malformedBy("Policy has invalid action", text)
		}
		a.patterns = append(a.patterns, action)
		a.s3.addAll(&action)
	}
	return a, nil
}

// knowsAction reports whether a pattern can name an action. Those of a bucket's policy
// are S3's.
func (p *parser) knowsAction(text string, a *pattern) bool {
	if a.isAny() {
		return true
	}
	service, name, ok := strings.Cut(text, ":")
	if !ok || service == "" || name == "" || strings.ContainsAny(service, "*?") {
		return false
	}
	return p.Kind != Bucket || strings.EqualFold(service, "s3") && anyAction(a, func(level) bool { return true })
}

func (p *parser) resources(n *node, s *statement) error {
	v, not, err := either(n, "Resource")
	switch {
	case err != nil:
		return err
	case v == nil && p.Kind == Trust:
		return nil
	case v == nil:
		return malformed("Missing required field Resource")
	case p.Kind == Trust:
		return malformed("Has prohibited field Resource")
	}
	list, err := texts(v, "Policy has invalid resource")
	if err != nil {
		return err
	}
	s.notResources = not
	for _, text := range list {
		syntax := p.syntax
		syntax.wildcards = true
		r, ok := compile(text, syntax)
		if !ok || !p.knowsResource(text, &r) {
			return malformedBy("Policy has invalid resource", text)
		}
		s.resources = append(s.resources, r)
	}
	return nil
}

// knowsResource reports whether a pattern can name a resource. Those of a bucket's
// policy lie in that bucket.
func (p *parser) knowsResource(text string, r *pattern) bool {
	if p.Kind != Bucket {
		return r.isAny() || strings.HasPrefix(text, "arn:") && len(splitARN(text)) == arnParts
	}
	rest, ok := strings.CutPrefix(r.head, bucketARN+p.Bucket)
	return ok && (rest == "" && r.fixed() || strings.HasPrefix(rest, "/"))
}

func (p *parser) conditions(n *node, s *statement) error {
	v := n.get("Condition")
	if v == nil {
		return nil
	}
	list, known := p.conditionLists[p.written(v)]
	if !known {
		var err error
		if list, err = p.conditionList(v); err != nil {
			return err
		}
		p.conditionLists[p.written(v)] = list
	}
	s.conditions = list
	if p.Kind == Bucket {
		for i := range list {
			if err := s.checkKey(list[i].key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *parser) conditionList(v *node) (list []condition, err error) {
	if v.kind != '{' {
		return nil, malformed("Invalid policy syntax.")
	}
	for _, op := range v.members {
		c, err := parseOperator(op.name)
		if err != nil {
			return nil, err
		}
		if op.value.kind != '{' {
			return nil, malformed("Invalid policy syntax.")
		}
		for _, key := range op.value.members {
			c.key = strings.ToLower(key.name)
			if c.operands, err = p.operandsOf(&c, &key); err != nil {
				return nil, err
			}
			list = append(list, c)
		}
	}
	return list, nil
}

// parseOperator reads the name of an operator with what stands before and behind it.
func parseOperator(name string) (c condition, err error) {
	bare := name
	if rest, ok := strings.CutPrefix(bare, "ForAnyValue:"); ok {
		c.set, bare = forAny, rest
	} else if rest, ok := strings.CutPrefix(bare, "ForAllValues:"); ok {
		c.set, bare = forAll, rest
	}
	bare, c.ifExists = strings.CutSuffix(bare, "IfExists")
	c.op = operators[bare]
	if c.op == nil || c.op.null && (c.set != plain || c.ifExists) {
		return c, malformed("Invalid Condition type : " + name)
	}
	return c, nil
}

func (p *parser) operandsOf(c *condition, key *member) ([]operand, error) {
	var list []operand
	for _, v := range key.value.oneOrMore() {
		if v.kind != 's' && v.kind != 'n' && v.kind != 'b' {
			return nil, malformed("Invalid policy syntax.")
		}
		o, ok := c.op.compile(v.text, p.syntax)
		if p.operands++; !ok || p.operands > maxOperands {
			return nil, malformedBy("Invalid policy syntax.", v.text)
		}
		list = append(list, o)
	}
	if len(list) == 0 || key.name == "" {
		return nil, malformed("Invalid policy syntax.")
	}
	return list, nil
}

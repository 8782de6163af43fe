package policy

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxDepth bounds how deep a document nests. The deepest that the grammar has
	// is a value of a condition, at 7: document, statements, statement,
	// Condition, operator, list.
	maxDepth = 8
	// maxBytes bounds the text of every document; Options.MaxBytes is less.
	maxBytes = 128 << 10
	// fewMembers are those that are looked through one by one.
	fewMembers = 16
)

// node is one value of a JSON text. Members keep their order, and strings where they stand.
type node struct {
	kind    byte // '{', '[', 's' string, 'n' number, 'b' boolean, '0' null
	text    string
	members []member
	items   []node
	from    int // offsets, of a string with its quotes
	to      int
}

type member struct {
	name  string
	value node
}

var errTwice = errors.New("a member is given twice")

// readJSON reads one JSON object, and nothing behind it.
func readJSON(text []byte) (node, error) {
	if len(text) > maxBytes || !utf8.Valid(text) || !json.Valid(text) {
		return node{}, errSyntax
	}
	r := &jsonReader{text: string(text)}
	n, err := r.value(1)
	if err == nil && n.kind != '{' {
		err = errSyntax
	}
	return n, err
}

// jsonError is the error of Parse for one of readJSON.
func jsonError(err error) error {
	if errors.Is(err, errTwice) {
		return malformed("Policy document should not contain duplicate keys.")
	}
	return malformed("Policies must be valid JSON and the first byte must be '{'")
}

// jsonReader walks over a text that is known to be valid JSON: what it does not look
// at is there.
type jsonReader struct {
	text string
	at   int
	// What was read of the objects and lists that did not end yet, the innermost last.
	members []member
	items   []node
}

// next returns the first byte of what comes, white space, commas and colons aside.
func (r *jsonReader) next() byte {
	for {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
			r.at++
		default:
			return c
		}
	}
}

func (r *jsonReader) value(depth int) (node, error) {
	c := r.next()
	if depth > maxDepth {
		return node{}, errSyntax
	}
	n, err := node{kind: c, from: r.at}, error(nil)
	switch c {
	case '{':
		n.members, err = r.object(depth)
	case '[':
		n.items, err = r.array(depth)
	case '"':
		n.kind = 's'
		n.text, err = r.str()
	case 't', 'f':
		n.kind, n.text = 'b', r.word()
	case 'n':
		n.kind = '0'
		r.word()
	default:
		n.kind, n.text = 'n', r.word()
	}
	n.to = r.at
	return n, err
}

// str reads a string, which is a piece of the text unless something in it is escaped.
func (r *jsonReader) str() (string, error) {
	from, escaped := r.at, false
	for r.at++; r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			escaped = true
			r.at++
		}
	}
	r.at++
	if !escaped {
		return r.text[from+1 : r.at-1], nil
	}
	return unquote(r.text[from:r.at])
}

func unquote(quoted string) (s string, err error) {
	err = json.Unmarshal([]byte(quoted), &s)
	return s, err
}

// word reads a number or a name.
func (r *jsonReader) word() string {
	from := r.at
	for r.at < len(r.text) && !strings.ContainsRune(" \t\r\n,]}", rune(r.text[r.at])) {
		r.at++
	}
	return r.text[from:r.at]
}

func (r *jsonReader) object(depth int) ([]member, error) {
	from := len(r.members)
	var seen map[string]bool // of an object with many members
	for r.at++; r.next() != '}'; {
		name, err := r.str()
		if err != nil {
			return nil, err
		}
		mine := r.members[from:]
		if len(mine) == fewMembers {
			seen = make(map[string]bool, 2*fewMembers)
			for _, m := range mine {
				seen[m.name] = true
			}
		}
		if seen[name] || seen == nil && find(mine, name) != nil {
			return nil, errTwice
		}
		if seen != nil {
			seen[name] = true
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		r.members = append(r.members, member{name, v})
	}
	r.at++
	list := slices.Clone(r.members[from:])
	r.members = r.members[:from]
	return list, nil
}

func (r *jsonReader) array(depth int) ([]node, error) {
	from := len(r.items)
	for r.at++; r.next() != ']'; {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		r.items = append(r.items, v)
	}
	r.at++
	list := slices.Clone(r.items[from:])
	r.items = r.items[:from]
	return list, nil
}

// get returns a member, nil if there is none.
func (n *node) get(name string) *node { return find(n.members, name) }

func find(members []member, name string) *node {
	for i := range members {
		if members[i].name == name {
			return &members[i].value
		}
	}
	return nil
}

// oneOrMore returns the values of a list, or the value that stands for a list of one.
func (n *node) oneOrMore() []node {
	if n.kind == '[' {
		return n.items
	}
	return []node{*n}
}

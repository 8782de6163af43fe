package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

const (
	// maxDepth bounds how deep a document nests. The deepest that the grammar has
	// is a value of a condition, at 7: document, statements, statement,
	// Condition, operator, list.
	maxDepth = 8
	// maxBytes bounds the text of every document; Options.MaxBytes is less.
	maxBytes = 128 << 10
)

// node is one value of a JSON text. Members keep their order, and strings where they stand.
type node struct {
	kind    byte // '{', '[', 's' string, 'n' number, 'b' boolean, '0' null
	text    string
	members []member
	items   []node
	from    int // offsets of a string with its quotes
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
	r := &jsonReader{text: text, d: json.NewDecoder(bytes.NewReader(text))}
	r.d.UseNumber()
	n, err := r.value(1)
	if err == nil && n.kind != '{' {
		err = errSyntax
	}
	return n, err
}

// jsonError is what Parse says of an error of readJSON.
func jsonError(err error) error {
	if errors.Is(err, errTwice) {
		return malformed("Policy document should not contain duplicate keys.")
	}
	return malformed("Policies must be valid JSON and the first byte must be '{'")
}

type jsonReader struct {
	text []byte
	d    *json.Decoder
}

func (r *jsonReader) value(depth int) (node, error) {
	before := int(r.d.InputOffset())
	token, err := r.d.Token()
	if err != nil || depth > maxDepth {
		return node{}, errSyntax
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return r.object(depth)
		}
		return r.array(depth)
	case string:
		from := before + bytes.IndexByte(r.text[before:], '"')
		return node{kind: 's', text: v, from: from, to: int(r.d.InputOffset())}, nil
	case json.Number:
		return node{kind: 'n', text: v.String()}, nil
	case bool:
		if v {
			return node{kind: 'b', text: "true"}, nil
		}
		return node{kind: 'b', text: "false"}, nil
	}
	return node{kind: '0'}, nil
}

func (r *jsonReader) object(depth int) (node, error) {
	n := node{kind: '{'}
	for r.d.More() {
		name, err := r.d.Token()
		if err != nil {
			return n, errSyntax
		}
		text, _ := name.(string)
		if n.get(text) != nil {
			return n, errTwice
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return n, err
		}
		n.members = append(n.members, member{text, v})
	}
	return n, r.end()
}

func (r *jsonReader) array(depth int) (node, error) {
	n := node{kind: '['}
	for r.d.More() {
		v, err := r.value(depth + 1)
		if err != nil {
			return n, err
		}
		n.items = append(n.items, v)
	}
	return n, r.end()
}

func (r *jsonReader) end() error {
	if _, err := r.d.Token(); err != nil && !errors.Is(err, io.EOF) {
		return errSyntax
	}
	return nil
}

// get returns a member, nil if there is none.
func (n *node) get(name string) *node {
	for i := range n.members {
		if n.members[i].name == name {
			return &n.members[i].value
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

package policy

import (
	"errors"
	"math"
	"slices"
	"sort"
	"unsafe"
)

// Partial is a document of which those statements alone are in memory that requests were
// about, and the outline of all. It is never changed either.
type Partial struct {
	*source
	statements []statement // in memory, in order
	bytes      int         // that those take
}

// source is what the parts of one document share.
type source struct {
	outline
	options Options
	syntax  syntax
	size    int      // of the text
	from    []uint16 // where each statement stands in it
	public  bool
}

// wholeBytes is how large, compiled, documents are kept as a whole: an outline would save
// little.
const wholeBytes = 2 << 10

var errOtherText = errors.New("the text is not that of the document")

// ParsePartial is Parse, all of it, and keeps little of what is large.
func ParsePartial(text []byte, o Options) (*Partial, error) {
	p, d, doc, err := parse(text, o)
	if err != nil {
		return nil, err
	}
	return newPartial(p, d, doc, wholeBytes), nil
}

// newPartial keeps a document that was parsed as a whole if it takes up to so many bytes.
func newPartial(p *parser, d *Document, doc *node, whole int) *Partial {
	s := &source{outline: *d.outline, options: p.Options, syntax: p.syntax, size: len(p.text), public: d.Public()}
	if d.bytes <= whole || len(p.text) > math.MaxUint16 {
		return &Partial{source: s, statements: d.statements, bytes: d.bytes - d.outline.bytes()}
	}
	s.from = make([]uint16, len(d.statements))
	for i, n := range doc.get("Statement").oneOrMore() {
		s.from[i] = uint16(n.from)
	}
	return &Partial{source: s}
}

// Decide is that of the document. Statements that may be about the request and are not in
// memory are returned as missing, and the rest is void then: With reads them.
func (p *Partial) Decide(r *Request) (best Effect, by int, missing []int) {
	by = -1
	w := p.outline.walk(r)
	for w.next(best, by) {
		s := p.statement(w.n)
		if s == nil {
			missing = append(missing, w.n)
			continue
		}
		if e := s.applies(r, w.known); e > best || e == best && e != None && w.n < by {
			best, by = e, w.n
		}
	}
	return best, by, missing
}

// statement returns statement n, nil if it is not in memory.
func (p *Partial) statement(n int) *statement {
	if len(p.statements) == len(p.kinds) {
		return &p.statements[n]
	}
	at := sort.Search(len(p.statements), func(i int) bool { return int(p.statements[i].number) >= n })
	if at == len(p.statements) || int(p.statements[at].number) != n {
		return nil
	}
	return &p.statements[at]
}

// With returns the document with more of its statements in memory: with all, where that would
// be more than a quarter. The text is the one that was parsed.
func (p *Partial) With(text []byte, missing []int) (*Partial, error) {
	if len(missing) == 0 {
		return p, nil
	}
	if len(text) != p.size {
		return nil, errOtherText
	}
	numbers := p.numbersWith(missing)
	parser := newParser(text, p.options)
	parser.syntax = p.syntax
	d := &Document{statements: make([]statement, len(numbers))}
	for i, n := range numbers {
		r := jsonReader{text: parser.text, at: int(p.from[n])}
		one, err := r.value(1)
		if err != nil {
			return nil, err
		}
		if d.statements[i], err = parser.statement(&one); err != nil {
			return nil, err
		}
		d.statements[i].number = uint16(n)
	}
	d.pack()
	return &Partial{source: p.source, statements: d.statements, bytes: d.bytes}, nil
}

// numbersWith are those of the statements that With has in memory.
func (p *Partial) numbersWith(missing []int) []int {
	numbers := slices.Clone(missing)
	for i := range p.statements {
		numbers = append(numbers, int(p.statements[i].number))
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	if 4*len(numbers) > len(p.from) {
		numbers = numbers[:0]
		for n := range p.from {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// Sid returns the ID of a statement that decided, "" if it has none.
func (p *Partial) Sid(i int) string { return p.statement(i).sid }

// Public is that of the document.
func (p *Partial) Public() bool { return p.public }

// Bytes returns how much memory it takes.
func (p *Partial) Bytes() int {
	return int(unsafe.Sizeof(*p)+unsafe.Sizeof(*p.source)) - int(unsafe.Sizeof(p.outline)) + p.outline.bytes() + size(p.from) + p.bytes
}

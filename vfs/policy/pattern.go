package policy

import (
	"strings"
	"unicode/utf8"
)

// pattern is a text with wildcards and variables, compiled.
type pattern struct {
	head string // the literal that it begins with
	rest []part
	fold bool // letters match in either case (ASCII)
	// ends reports whether the pattern is open: mostly all that match has to know.
	ends bool
}

// anything is the rest of a pattern that ends in its only *.
var anything = []part{{kind: anyMany}}

type partKind byte

const (
	literal  partKind = iota
	anyOne            // ?
	anyMany           // *
	variable          // ${key} or ${key, 'default'}
)

type part struct {
	text string // of a literal; the default of a variable
	key  string // of a variable, in lower case
	kind partKind
	// defaults reports whether a variable has a default.
	defaults bool
}

// syntax says what a text may hold beside literals.
type syntax struct {
	wildcards bool
	variables bool // version 2012-10-17
	fold      bool
}

// compile reads a pattern; ok is false for a variable that does not end or has no
// name.
func compile(text string, s syntax) (p pattern, ok bool) {
	p.fold = s.fold
	for text != "" {
		special := strings.IndexFunc(text, func(r rune) bool { return s.wildcards && (r == '*' || r == '?') || s.variables && r == '$' })
		if special < 0 {
			special = len(text)
		}
		p.literal(text[:special])
		if text = text[special:]; text == "" {
			break
		}
		switch text[0] {
		case '*':
			p.star()
			text = text[1:]
		case '?':
			p.rest = append(p.rest, part{kind: anyOne})
			text = text[1:]
		default:
			if text, ok = p.dollar(text); !ok {
				return p, false
			}
		}
	}
	p.ends = p.open()
	return p, true
}

func (p *pattern) literal(text string) {
	switch n := len(p.rest); {
	case text == "":
	case n == 0:
		p.head += text
	case p.rest[n-1].kind == literal:
		p.rest[n-1].text += text
	default:
		p.rest = append(p.rest, part{kind: literal, text: text})
	}
}

func (p *pattern) star() {
	switch n := len(p.rest); {
	case n == 0:
		p.rest = anything[:1:1]
	case p.rest[n-1].kind != anyMany:
		p.rest = append(p.rest, part{kind: anyMany})
	}
}

// dollar reads what begins with a dollar sign, and returns the text behind it.
func (p *pattern) dollar(text string) (rest string, ok bool) {
	if !strings.HasPrefix(text, "${") {
		p.literal("$")
		return text[1:], true
	}
	inner, rest, ok := strings.Cut(text[2:], "}")
	switch {
	case !ok || inner == "":
		return "", false
	case inner == "*" || inner == "?" || inner == "$":
		p.literal(inner)
		return rest, true
	}
	name, def, given := strings.Cut(inner, ",")
	v := part{kind: variable, key: strings.ToLower(strings.TrimSpace(name)), defaults: given}
	if given {
		def = strings.TrimSpace(def)
		if len(def) < 2 || def[0] != '\'' || def[len(def)-1] != '\'' {
			return "", false
		}
		v.text = def[1 : len(def)-1]
	}
	p.rest = append(p.rest, v)
	return rest, v.key != ""
}

// isAny reports whether the pattern is "*".
func (p *pattern) isAny() bool { return p.head == "" && p.open() }

// open reports whether the pattern is a literal and whatever follows that.
func (p *pattern) open() bool { return len(p.rest) == 1 && p.rest[0].kind == anyMany }

// fixed reports whether the pattern stands for one text alone.
func (p *pattern) fixed() bool { return len(p.rest) == 0 }

// match reports whether all of s is what the pattern says. A variable without
// a value matches nothing; what it is worth is literal, wildcards included.
func (p *pattern) match(s string, v Values) bool {
	n := len(p.head)
	if len(s) < n || s[:n] != p.head && !(p.fold && equalFold(s[:n], p.head)) {
		return false
	}
	if p.ends {
		return true
	}
	s = s[n:]
	at, from := 0, 0        // the next part and where it is to match
	star, starFrom := -1, 0 // the last * and where what follows it is tried
	for at < len(p.rest) || from < len(s) {
		if at < len(p.rest) && p.rest[at].kind == anyMany {
			if at++; at == len(p.rest) {
				return true
			}
			star, starFrom = at, from
			continue
		}
		if at < len(p.rest) {
			n, ok, none := p.rest[at].consume(s[from:], v, p.fold)
			if none {
				return false
			}
			if ok {
				at, from = at+1, from+n
				continue
			}
		}
		if star < 0 || starFrom >= len(s) {
			return false
		}
		starFrom = p.next(star, s, starFrom)
		if starFrom < 0 {
			return false
		}
		at, from = star, starFrom
	}
	return true
}

// next returns where behind from the part that follows a * is tried next, -1 if
// there is no such place.
func (p *pattern) next(at int, s string, from int) int {
	_, width := utf8.DecodeRuneInString(s[from:])
	from += width
	if !p.fold && p.rest[at].kind == literal {
		i := strings.Index(s[from:], p.rest[at].text)
		if i < 0 {
			return -1
		}
		from += i
	}
	return from
}

// consume matches one part at the beginning of s and returns the bytes that it took;
// none reports whether the part is a variable without a value.
func (t *part) consume(s string, v Values, fold bool) (n int, ok, none bool) {
	text := t.text
	switch t.kind {
	case anyOne:
		_, n = utf8.DecodeRuneInString(s)
		return n, n > 0, false
	case variable:
		if text, ok = t.value(v); !ok {
			return 0, false, true
		}
	}
	if len(s) < len(text) {
		return 0, false, false
	}
	same := s[:len(text)] == text
	return len(text), same || fold && equalFold(s[:len(text)], text), false
}

// value is what a variable is worth: the key's only value, or the default.
func (t *part) value(v Values) (string, bool) {
	if v != nil {
		if values, ok := v.Value(t.key); ok && len(values) == 1 {
			return values[0], true
		}
	}
	return t.text, t.defaults
}

// equalFold compares letters of ASCII in either case.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

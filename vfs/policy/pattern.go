package policy

import (
	"strings"
	"unicode/utf8"
)

// pattern is a text with wildcards and variables, compiled.
type pattern struct {
	parts []part
	fold  bool // letters match in either case (ASCII)
}

type partKind byte

const (
	literal  partKind = iota
	anyOne            // ?
	anyMany           // *
	variable          // ${key} or ${key, 'default'}
)

type part struct {
	kind partKind
	text string // of a literal; the default of a variable
	key  string // of a variable, in lower case
	// defaults tells that a variable has a default.
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
			p.parts = append(p.parts, part{kind: anyOne})
			text = text[1:]
		default:
			if text, ok = p.dollar(text); !ok {
				return p, false
			}
		}
	}
	return p, true
}

func (p *pattern) literal(text string) {
	if text == "" {
		return
	}
	if n := len(p.parts); n > 0 && p.parts[n-1].kind == literal {
		p.parts[n-1].text += text
		return
	}
	p.parts = append(p.parts, part{kind: literal, text: text})
}

func (p *pattern) star() {
	if n := len(p.parts); n == 0 || p.parts[n-1].kind != anyMany {
		p.parts = append(p.parts, part{kind: anyMany})
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
	p.parts = append(p.parts, v)
	return rest, v.key != ""
}

// isAny reports whether the pattern is "*".
func (p *pattern) isAny() bool { return len(p.parts) == 1 && p.parts[0].kind == anyMany }

// fixed reports whether the pattern stands for one text alone.
func (p *pattern) fixed() bool {
	return len(p.parts) == 0 || len(p.parts) == 1 && p.parts[0].kind == literal
}

// prefix is the literal that the pattern begins with.
func (p *pattern) prefix() string {
	if len(p.parts) > 0 && p.parts[0].kind == literal {
		return p.parts[0].text
	}
	return ""
}

// match reports whether all of s is what the pattern says. A variable without
// a value matches nothing; what it is worth is literal, wildcards included.
func (p *pattern) match(s string, v Values) bool {
	if len(p.parts) > 0 && p.parts[0].kind == literal && !p.fold { // mostly all that is to do
		switch text := p.parts[0].text; {
		case len(s) < len(text) || s[:len(text)] != text:
			return false
		case len(p.parts) == 2 && p.parts[1].kind == anyMany:
			return true
		}
	}
	at, from := 0, 0        // the next part and where it is to match
	star, starFrom := -1, 0 // the last * and where what follows it is tried
	for at < len(p.parts) || from < len(s) {
		if at < len(p.parts) && p.parts[at].kind == anyMany {
			if at++; at == len(p.parts) {
				return true
			}
			star, starFrom = at, from
			continue
		}
		if at < len(p.parts) {
			n, ok, none := p.parts[at].consume(s[from:], v, p.fold)
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
	if !p.fold && p.parts[at].kind == literal {
		i := strings.Index(s[from:], p.parts[at].text)
		if i < 0 {
			return -1
		}
		from += i
	}
	return from
}

// consume matches one part at the beginning of s and returns the bytes that it took;
// none tells that the part is a variable without a value.
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

package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// plain is what encoding/json makes of what the node was read from.
func (n *node) plain(t *testing.T, text string) any {
	t.Helper()
	if piece := text[n.from:n.to]; !json.Valid([]byte(piece)) {
		t.Errorf("a value stands at %q", piece)
	}
	switch n.kind {
	case '{':
		out := map[string]any{}
		for i := range n.members {
			out[n.members[i].name] = n.members[i].value.plain(t, text)
		}
		return out
	case '[':
		out := []any{}
		for i := range n.items {
			out = append(out, n.items[i].plain(t, text))
		}
		return out
	case 'n':
		return json.Number(n.text)
	case 'b':
		return n.text == "true"
	case '0':
		return nil
	}
	return n.text
}

// checkJSON compares readJSON with encoding/json.
func checkJSON(t *testing.T, text string) {
	t.Helper()
	n, err := readJSON([]byte(text))
	var want map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	werr := d.Decode(&want)
	switch {
	case err == nil && werr != nil:
		t.Errorf("%q is read: %v", text, werr)
	case err == nil && !reflect.DeepEqual(n.plain(t, text), any(want)):
		t.Errorf("%q is read as %v, want %v", text, n.plain(t, text), want)
	}
}

func FuzzReadJSON(f *testing.F) {
	for _, text := range []string{doc(base()), largeDocument("bkt")[:200], `{}`, ` { "a" : [ ] , "b":{ } } `, `{"a":1,"a":2}`, `{"a":[1,-2.5e+3,true,false,null,"x"]}`,
		`{"\"\\\/\b\f\n\r\tü":"😀\ud800"}`, `{"a":"]},:"}`, `[]`, `"x"`, ``, `{"a":1}x`, "{\"a\":\t1\r\n}", strings.Repeat(`{"a":`, 8) + "1" + strings.Repeat("}", 8)} {
		f.Add(text)
	}
	f.Fuzz(checkJSON)
}

// A member that is given twice is refused among few and among many, as what is too deep.
func TestReadJSONRefuses(t *testing.T) {
	many := func(n int, last string) string {
		text := ""
		for i := range n {
			text += fmt.Sprintf(`"m%d":%d,`, i, i)
		}
		return "{" + text + last + ":1}"
	}
	for _, n := range []int{1, fewMembers - 1, fewMembers, fewMembers + 1, 1000} {
		checkJSON(t, many(n, `"last"`))
		for _, twice := range []string{`"m0"`, fmt.Sprintf(`"m%d"`, n-1), `"\u006d0"`} {
			if _, err := readJSON([]byte(many(n, twice))); !errors.Is(err, errTwice) {
				t.Errorf("%d members, then %s: %v", n, twice, err)
			}
		}
	}
	for depth, want := range map[int]error{maxDepth: nil, maxDepth + 1: errSyntax, 60_000: errSyntax} {
		if _, err := readJSON([]byte(`{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`)); !errors.Is(err, want) {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

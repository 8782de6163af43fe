package policy

import (
	"bytes"
	"encoding/json"
	"slices"
)

// principals are whom a statement is about. The zero value is of a document that does
// not say it.
type principals struct {
	given  bool
	not    bool // all others
	anyone bool
	names  []string // in order
}

// The kinds of principals.
const (
	kindAWS       = "AWS"
	kindCanonical = "CanonicalUser"
	kindFederated = "Federated"
	kindService   = "Service"
)

func parsePrincipals(n *node, not bool) (w principals, err error) {
	w = principals{given: true, not: not}
	if n.kind == 's' && n.text == "*" && !not {
		w.anyone = true
		return w, nil
	}
	if n.kind != '{' || len(n.members) == 0 {
		return w, malformedBy("Invalid principal in policy", n.text)
	}
	for _, m := range n.members {
		if len(m.value.oneOrMore()) == 0 {
			return w, malformed("Invalid principal in policy")
		}
		for _, v := range m.value.oneOrMore() {
			if err := w.add(m.name, &v); err != nil {
				return w, err
			}
		}
	}
	slices.Sort(w.names)
	return w, nil
}

func (w *principals) add(kind string, v *node) error {
	switch {
	case v.kind != 's' || v.text == "":
		return malformed("Invalid principal in policy")
	case kind == kindAWS && v.text == "*" && !w.not:
		w.anyone = true
	case kind == kindAWS && v.text == "*":
		return malformedBy("Invalid principal in policy", "*")
	case kind == kindAWS, kind == kindCanonical:
		w.names = append(w.names, v.text)
	case kind == kindFederated, kind == kindService:
		w.names = append(w.names, kind+" "+v.text)
	default:
		return malformedBy("Invalid principal in policy", kind)
	}
	return nil
}

// Rewrite returns the text with each principal that replace knows another name for
// in place of the one given. Everything else stays as it was written.
func Rewrite(text []byte, replace func(name string) (string, error)) ([]byte, error) {
	doc, err := readJSON(text)
	if err != nil {
		return nil, jsonError(err)
	}
	var out bytes.Buffer
	done := 0
	for _, n := range principalNodes(&doc) {
		name, err := replace(n.text)
		if err != nil {
			return nil, err
		}
		if name == n.text {
			continue
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		out.Write(text[done:n.from])
		out.Write(quoted)
		done = n.to
	}
	out.Write(text[done:])
	return out.Bytes(), nil
}

// principalNodes are the strings that name identities, in order.
func principalNodes(doc *node) (list []node) {
	statements := doc.get("Statement")
	if statements == nil {
		return nil
	}
	for _, s := range statements.oneOrMore() {
		for _, m := range s.members {
			if m.name != "Principal" && m.name != "NotPrincipal" {
				continue
			}
			for _, kind := range m.value.members {
				if kind.name != kindAWS && kind.name != kindCanonical {
					continue
				}
				for _, v := range kind.value.oneOrMore() {
					if v.kind == 's' && v.text != "*" {
						list = append(list, v)
					}
				}
			}
		}
	}
	return list
}

// Federated is the name of a web identity of a provider, as a trust policy's principal
// of that kind names it.
func Federated(provider string) string { return kindFederated + " " + provider }

package policy

import (
	"strings"
	"unsafe"
)

// pack moves what a document consists of into one piece of memory for each kind of
// thing. Many documents are kept for long, and the garbage collector's work goes by the
// number of pieces.
func (d *Document) pack() {
	var conditions []*[]condition
	var names []*[]string
	for i := range d.statements {
		s := &d.statements[i]
		conditions, names = append(conditions, &s.conditions), append(names, &s.who.names)
	}
	var operands []*[]operand
	allConditions, allNames := join(conditions), join(names)
	for i := range allConditions {
		operands = append(operands, &allConditions[i].operands)
	}
	var patterns []*[]pattern
	allOperands := join(operands)
	for i := range allOperands {
		patterns = append(patterns, &allOperands[i].arn)
	}
	for i := range d.statements {
		patterns = append(patterns, &d.statements[i].actions, &d.statements[i].resources)
	}
	var rests []*[]part
	allPatterns := join(patterns)
	for i := range allPatterns {
		rests = append(rests, &allPatterns[i].rest)
	}
	for i := range allOperands {
		rests = append(rests, &allOperands[i].text.rest)
	}
	allRests := join(rests)
	texts := joinTexts(d.texts(allConditions, allOperands, allNames, allPatterns, allRests))
	d.bytes = size(d.statements) + size(d.index.entries) + size(d.index.numbers) + size(allConditions) + size(allNames) +
		size(allOperands) + size(allPatterns) + size(allRests) + len(texts)
}

// size is what the elements of a list take, without what they refer to.
func size[T any](list []T) int {
	var one T
	return len(list) * int(unsafe.Sizeof(one))
}

// texts are all that the document holds.
func (d *Document) texts(conditions []condition, operands []operand, names []string, patterns []pattern, parts []part) (all []*string) {
	for i := range d.statements {
		all = append(all, &d.statements[i].sid)
	}
	for i := range d.index.entries {
		all = append(all, &d.index.entries[i].literal)
	}
	for i := range conditions {
		all = append(all, &conditions[i].key)
	}
	for i := range operands {
		all = append(all, &operands[i].text.head)
	}
	for i := range names {
		all = append(all, &names[i])
	}
	for i := range patterns {
		all = append(all, &patterns[i].head)
	}
	for i := range parts {
		all = append(all, &parts[i].text, &parts[i].key)
	}
	return all
}

// join puts lists one behind the other, the same one once.
func join[T any](lists []*[]T) []T {
	n, at := 0, make(map[*T]int, len(lists))
	for _, l := range lists {
		if len(*l) > 0 {
			if _, known := at[&(*l)[0]]; !known {
				at[&(*l)[0]] = n
				n += len(*l)
			}
		}
	}
	all := make([]T, n)
	for _, l := range lists {
		if len(*l) > 0 {
			from := at[&(*l)[0]]
			to := from + copy(all[from:], *l)
			*l = all[from:to:to]
		}
	}
	return all
}

// joinTexts is join for texts.
func joinTexts(list []*string) (all string) {
	at := make(map[string]int, len(list))
	var b strings.Builder
	for _, s := range list {
		if _, known := at[*s]; !known {
			at[*s] = b.Len()
			b.WriteString(*s)
		}
	}
	all = strings.Clone(b.String())
	for _, s := range list {
		if from := at[*s]; *s == "" {
			*s = "" // points nowhere
		} else {
			*s = all[from : from+len(*s)]
		}
	}
	return all
}

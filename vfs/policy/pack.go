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
	d.bytes = int(unsafe.Sizeof(*d)) + size(d.statements) + size(allConditions) + size(allNames) +
		size(allOperands) + size(allPatterns) + size(allRests) + len(texts)
	if d.outline != nil {
		d.outline.pack()
		d.bytes += d.outline.bytes()
	}
}

// pack does the same for an outline.
func (o *outline) pack() {
	join([]*[]actionSet{&o.sets})
	join([]*[]digest{&o.literals, &o.names})
	join([]*[]uint16{&o.lengths, &o.numbers, &o.kinds, &o.whom})
}

// bytes is how much memory an outline takes.
func (o *outline) bytes() int {
	return int(unsafe.Sizeof(*o)) + size(o.kinds) + size(o.sets) + size(o.whom) + size(o.names) + size(o.lengths) + size(o.literals) + size(o.numbers)
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

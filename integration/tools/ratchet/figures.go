package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/tools/go/packages"
)

// figures are the measures of a package.
type figures struct{ group, file, function, params int }

// measured is a package with its figures, and where they are from.
type measured struct {
	name  string // import path without the module's
	files []string
	as    arrows
	figures
	longestFile, longestFunction, widestFunction string
}

func measure(p *packages.Package, module string) measured {
	m := measured{name: strings.TrimPrefix(p.PkgPath, module+"/")}
	m.files, m.as = findArrows(p)
	m.group = len(largestGroup(m.files, m.as))
	for _, f := range p.Syntax {
		if ast.IsGenerated(f) {
			continue
		}
		if lines := p.Fset.File(f.Pos()).LineCount(); lines > m.file {
			m.file, m.longestFile = lines, fileOf(p.Fset, f.Pos())
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from, to := p.Fset.Position(fn.Pos()), p.Fset.Position(fn.End())
			place := fmt.Sprintf("%s (%s, line %d)", fn.Name.Name, fileOf(p.Fset, fn.Pos()), from.Line)
			if lines := to.Line - from.Line + 1; lines > m.function {
				m.function, m.longestFunction = lines, place
			}
			if n := fn.Type.Params.NumFields(); n > m.params {
				m.params, m.widestFunction = n, place
			}
		}
	}
	return m
}

// others is the row for packages that have none of their own.
const others = "*"

// table holds the maxima by package.
type table map[string]figures

func (t table) of(name string) figures {
	if f, ok := t[name]; ok {
		return f
	}
	return t[others]
}

// readTable reads maxima: lines of a package and three numbers, or four where it
// may have more parameters than others, and comments.
func readTable(path string) (table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t := table{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var name string
		var m figures
		if k, err := fmt.Sscan(line, &name, &m.group, &m.file, &m.function, &m.params); k < 4 || k == 4 && len(strings.Fields(line)) > k {
			return nil, fmt.Errorf("%s:%d: %q is not a package and three or four numbers: %w", path, n, line, err)
		}
		if _, twice := t[name]; twice {
			return nil, fmt.Errorf("%s:%d: %s stands there twice", path, n, name)
		}
		t[name] = m
	}
	rest, ok := t[others]
	if !ok && lines.Err() == nil {
		return nil, fmt.Errorf("%s: no row %s for other packages", path, others)
	}
	for name, m := range t {
		m.params = max(m.params, rest.params)
		t[name] = m
	}
	return t, lines.Err()
}

const tableHead = `# The most that each package may have: files in its largest group of files that
# all reach one another, lines of its longest file, lines of its longest function,
# and parameters of a function, where they are more than the row * says. That row is
# for packages without a row; in files and functions as short as it says every
# package is free. make lint compares (see the
# documentation of integration/tools/ratchet); "go run ./integration/tools/ratchet
# -lower" writes down what shrank. What is raised by hand needs a reason in the
# commit's message.

`

func (t table) write(path string) error {
	var b strings.Builder
	b.WriteString(tableHead)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	var names []string
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names) // others comes first
	for _, name := range names {
		m := t[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d", name, m.group, m.file, m.function)
		if name == others || m.params > t[others].params {
			fmt.Fprintf(w, "\t%d", m.params)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

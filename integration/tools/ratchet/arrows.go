package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/packages"
)

// arrow is a use, in the file from, of something that the file to declares.
// Both are base names.
type arrow struct{ from, to string }

func (a arrow) compare(b arrow) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
}

// arrows are those of a package, each with its first use: "name (line 12)".
type arrows map[arrow]string

// findArrows returns how the files of p refer to one another, and all files.
func findArrows(p *packages.Package) (files []string, found arrows) {
	found = arrows{}
	for _, f := range p.Syntax {
		from := fileOf(p.Fset, f.Pos())
		files = append(files, from)
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := p.TypesInfo.Uses[id]
			if o == nil || o.Pkg() != p.Types || local(o) {
				return true
			}
			a := arrow{from, fileOf(p.Fset, o.Pos())}
			if a.to != from && found[a] == "" {
				found[a] = fmt.Sprintf("%s (line %d)", id.Name, p.Fset.Position(id.Pos()).Line)
			}
			return true
		})
	}
	slices.Sort(files)
	return files, found
}

// local reports whether o is a variable of a function.
func local(o types.Object) bool {
	v, ok := o.(*types.Var)
	return ok && !v.IsField() && o.Parent() != o.Pkg().Scope()
}

func fileOf(set *token.FileSet, pos token.Pos) string {
	return filepath.Base(set.Position(pos).Filename)
}

// largestGroup returns the largest strongly connected component, sorted.
func largestGroup(files []string, as arrows) []string {
	to := map[string][]string{}
	for a := range as {
		to[a.from] = append(to[a.from], a.to)
	}
	s := search{to: to, order: map[string]int{}, low: map[string]int{}, open: map[string]bool{}}
	for _, f := range files {
		if s.order[f] == 0 {
			s.visit(f)
		}
	}
	slices.Sort(s.largest)
	return s.largest
}

// search is Tarjan's search for strongly connected components.
type search struct {
	to         map[string][]string
	order, low map[string]int // from 1, in the order of the visits
	open       map[string]bool
	stack      []string
	largest    []string
}

func (s *search) visit(f string) {
	s.order[f] = len(s.order) + 1
	s.low[f] = s.order[f]
	s.stack, s.open[f] = append(s.stack, f), true
	for _, g := range s.to[f] {
		if s.order[g] == 0 {
			s.visit(g)
			s.low[f] = min(s.low[f], s.low[g])
		} else if s.open[g] {
			s.low[f] = min(s.low[f], s.order[g])
		}
	}
	if s.low[f] < s.order[f] {
		return
	}
	at := slices.Index(s.stack, f)
	group := s.stack[at:]
	for _, g := range group {
		s.open[g] = false
	}
	if len(group) > len(s.largest) {
		s.largest = slices.Clone(group)
	}
	s.stack = s.stack[:at]
}

// closing returns the arrows within the largest group that before does not
// have (nil: not known), the decisive ones first: without one of those alone
// the group has at most maximum files.
func closing(files []string, now, before arrows, maximum int) (list []arrow, decisive int) {
	group := largestGroup(files, now)
	var others []arrow
	for a := range now {
		if !slices.Contains(group, a.from) || !slices.Contains(group, a.to) {
			continue
		}
		if _, old := before[a]; old {
			continue
		}
		if use := now[a]; without(files, now, a, use) <= maximum {
			list = append(list, a)
		} else if before != nil {
			others = append(others, a)
		}
	}
	slices.SortFunc(list, arrow.compare)
	slices.SortFunc(others, arrow.compare)
	return append(list, others...), len(list)
}

// without returns the size of the largest group if a were not.
func without(files []string, as arrows, a arrow, use string) int {
	delete(as, a)
	defer func() { as[a] = use }()
	return len(largestGroup(files, as))
}

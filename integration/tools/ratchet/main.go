package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

const (
	module     = "ogw"
	maximaFile = "integration/tools/ratchet/maxima.txt"
	// arrowsShown bounds what is printed of one package.
	arrowsShown = 20
)

func main() {
	lower := flag.Bool("lower", false, "write down what shrank")
	files := flag.String("files", "", "print the largest group and the arrows within it of one package, as in vfs/lock")
	flag.Parse()
	grown, err := run(os.Stdout, *lower, *files)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ratchet:", err)
	}
	if err != nil || grown {
		os.Exit(1)
	}
}

// run reports whether something grew.
func run(w io.Writer, lower bool, files string) (grown bool, err error) {
	maxima, err := readTable(maximaFile)
	if err != nil {
		return false, err
	}
	pattern := "./..."
	if files != "" {
		pattern = "./" + files
	}
	loaded, err := load(".", pattern)
	if err != nil {
		return false, err
	}
	var all []measured
	for _, p := range loaded {
		if len(p.Syntax) > 0 {
			all = append(all, measure(p, module))
		}
	}
	slices.SortFunc(all, func(a, b measured) int { return strings.Compare(a.name, b.name) })
	if files != "" {
		for i := range all {
			printGroup(w, &all[i])
		}
		return false, nil
	}
	printFigures(w, all, maxima)
	if lower {
		return false, lowered(all, maxima).write(maximaFile)
	}
	return printGrowth(w, all, maxima)
}

func printFigures(w io.Writer, all []measured, maxima table) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "package\tfiles\tarrows\tgroup\tfile\tfunction\tparameters\t")
	next := lowered(all, maxima)
	for i := range all {
		m := &all[i]
		note, bound := "", maxima.of(m.name)
		if next[m.name] != bound {
			note = fmt.Sprintf("shrank from %d, %d, %d, %d: go run ./integration/tools/ratchet -lower", bound.group, bound.file, bound.function, bound.params)
		}
		if _, ok := maxima[m.name]; !ok {
			note = "new: go run ./integration/tools/ratchet -lower"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", m.name, len(m.files), len(m.as), m.group, m.file, m.function, m.params, note)
	}
	_ = t.Flush()
}

// lowered returns maxima with each figure that shrank, with rows for new
// packages and without those of packages that are gone.
func lowered(all []measured, maxima table) table {
	rest := maxima[others]
	out := table{others: rest}
	for i := range all {
		m := &all[i]
		bound := maxima.of(m.name)
		out[m.name] = figures{
			min(m.group, bound.group),
			max(min(m.file, bound.file), rest.file),
			max(min(m.function, bound.function), rest.function),
			max(min(m.params, bound.params), rest.params),
		}
	}
	return out
}

// printGrowth prints what grew, and what to do.
func printGrowth(w io.Writer, all []measured, maxima table) (grown bool, err error) {
	var groups []*measured
	for i := range all {
		m := &all[i]
		bound := maxima.of(m.name)
		if m.group > bound.group {
			groups = append(groups, m)
		}
		if m.file > bound.file {
			grown = true
			fmt.Fprintf(w, "\n%s: %s has %d lines; the longest file may have %d. Divide it by what its parts are about, one main type to a file.\n",
				m.name, m.longestFile, m.file, bound.file)
		}
		if m.function > bound.function {
			grown = true
			fmt.Fprintf(w, "\n%s: %s has %d lines; the longest function may have %d. Give its steps names: a function each.\n",
				m.name, m.longestFunction, m.function, bound.function)
		}
		if m.params > bound.params {
			grown = true
			fmt.Fprintf(w, "\n%s: %s has %d parameters; a function may have %d. Those that belong together are a struct.\n",
				m.name, m.widestFunction, m.params, bound.params)
		}
	}
	if len(groups) == 0 {
		return grown, nil
	}
	var names []string
	for _, m := range groups {
		names = append(names, m.name)
	}
	before, commit, err := arrowsBefore(maximaFile, module, names)
	if err != nil {
		fmt.Fprintf(w, "\nWhat is new cannot be told: %v\n", err)
	}
	for _, m := range groups {
		printClosing(w, m, maxima.of(m.name).group, before[m.name], commit)
	}
	return true, nil
}

func printClosing(w io.Writer, m *measured, maximum int, before arrows, commit string) {
	fmt.Fprintf(w, "\n%s: %d files all reach one another; the largest such group may have %d.\n", m.name, m.group, maximum)
	list, decisive := closing(m.files, m.as, before, maximum)
	if before != nil {
		fmt.Fprintf(w, "Arrows within it that are new since %s, when the maximum was set:\n", commit)
	} else {
		fmt.Fprintln(w, "Arrows that close the circle:")
	}
	for i, a := range list[:min(len(list), arrowsShown)] {
		mark := ""
		if i < decisive {
			mark = "   without this one alone the group is small enough"
		}
		fmt.Fprintf(w, "    %s uses %s of %s%s\n", a.from, m.as[a], a.to, mark)
	}
	if n := len(list) - arrowsShown; n > 0 {
		fmt.Fprintf(w, "    and %d more\n", n)
	}
	fmt.Fprintln(w, `Turn one of them round: move what is used into the file that uses it or below both; or let the
lower file declare a small interface or a function value that the upper one fills in. "go run
./integration/tools/ratchet -files `+m.name+`" prints the whole group. Do not merge files for it.`)
}

func printGroup(w io.Writer, m *measured) {
	group := largestGroup(m.files, m.as)
	fmt.Fprintf(w, "%s: largest group %d of %d files\n", m.name, len(group), len(m.files))
	for _, from := range group {
		var uses []string
		for a, use := range m.as {
			if a.from == from && slices.Contains(group, a.to) {
				uses = append(uses, "        "+a.to+": "+use+"\n")
			}
		}
		slices.Sort(uses)
		fmt.Fprintf(w, "    %s\n%s", from, strings.Join(uses, ""))
	}
}

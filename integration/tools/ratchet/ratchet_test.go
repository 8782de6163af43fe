package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLargestGroup(t *testing.T) {
	files := []string{"a", "b", "c", "d", "e", "f"}
	for _, c := range []struct{ arrows, want string }{
		{"", "a"},
		{"ab bc cd de", "a"},
		{"ab ba", "a b"},
		{"ab ba cd de ec", "c d e"},
		{"ab bc ca cd de ed", "a b c"},
		{"ab bc cd de ea fa", "a b c d e"},
		{"ab bc cb cd dc da", "a b c d"},
	} {
		as := arrows{}
		for _, s := range strings.Fields(c.arrows) {
			as[arrow{s[:1], s[1:]}] = "x"
		}
		got := largestGroup(files, as)
		if len(strings.Fields(c.want)) == 1 && len(got) == 1 {
			continue
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.arrows, got, c.want)
		}
	}
}

// write makes a module with a package p, and commits it.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func do(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func check(t *testing.T, lower bool) (bool, string) {
	t.Helper()
	var b strings.Builder
	grown, err := run(io.Writer(&b), lower, "")
	if err != nil {
		t.Fatal(err)
	}
	return grown, b.String()
}

// A circle that is closed, a file and a function that grow are named;
// what shrinks is written down.
func TestRatchet(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, map[string]string{
		"go.mod":   "module ogw\n\ngo 1.26\n",
		maximaFile: "* 2 9 4 1\np 1 10 4 2\n",
		"p/a.go":   "package p\n\ntype A struct{ b B }\n\nfunc (a A) Get() int { return a.b.Get() }\n",
		"p/b.go":   "package p\n\ntype B struct{ c C }\n\nfunc (b B) Get() int { return b.c.n }\n",
		"p/c.go":   "package p\n\ntype C struct{ n int }\n",
	})
	do(t, "git", "init", "-q")
	do(t, "git", "add", ".")
	do(t, "git", "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "first")
	if grown, out := check(t, false); grown || !strings.Contains(out, "shrank from 1, 10, 4, 2") {
		t.Errorf("grown: %v\n%s", grown, out)
	}

	write(t, map[string]string{"p/c.go": "package p\n\ntype C struct{ n int }\n\nfunc up(a A, x, y int) {\n\n\n\n\n\n}\n"})
	grown, out := check(t, false)
	for _, want := range []string{
		"p: 3 files all reach one another; the largest such group may have 1",
		"c.go uses A (line 5) of a.go   without this one alone",
		"p: c.go has 11 lines",
		"p: up (c.go, line 5) has 7 lines",
		"p: up (c.go, line 5) has 3 parameters; a function may have 2",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not told", want)
		}
	}
	if !grown || strings.Contains(out, "b.go uses C") {
		t.Errorf("grown: %v\n%s", grown, out)
	}
	check(t, true)
	if m, err := readTable(maximaFile); err != nil || m.of("p") != (figures{1, 10, 4, 2}) {
		t.Errorf("what grew was written down: %v, %v", m, err)
	}
	write(t, map[string]string{"p/c.go": "package p\n\ntype C struct{ n int }\n"})
	check(t, true)
	if m, err := readTable(maximaFile); err != nil || m.of("p") != (figures{1, 9, 4, 1}) {
		t.Errorf("what shrank was not written down: %v, %v", m, err)
	}
	if grown, out := check(t, false); grown || strings.Contains(out, "shrank") {
		t.Errorf("grown: %v\n%s", grown, out)
	}
}

func TestLowered(t *testing.T) {
	maxima := table{others: {3, 100, 50, 5}, "p": {9, 300, 80, 8}, "gone": {9, 300, 50, 5}}
	got := lowered([]measured{
		{name: "p", figures: figures{7, 400, 40, 6}}, // the file grew: that is not written down
		{name: "new", figures: figures{2, 80, 30, 2}},
	}, maxima)
	if len(got) != 3 || got["p"] != (figures{7, 300, 50, 6}) || got["new"] != (figures{2, 100, 50, 5}) || got[others] != maxima[others] {
		t.Errorf("%v", got)
	}
}

func TestReadTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "maxima")
	for text, ok := range map[string]bool{
		"# head\n\n* 1 2 3 4\np 4 5 6\n": true, // with the parameters of others
		"* 1 2 3 4\np 4 5 6 7\n":         true,
		"p 4 5 6\n":                      false, // nothing for others
		"* 1 2 3 4\np 4 5\n":             false,
		"* 1 2 3 4\np 4 5 6 x\n":         false,
		"* 1 2 3 4\np 4 5 6\np 4 5 6\n":  false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if m, err := readTable(path); (err == nil) != ok || ok && !slices.Equal([]int{m.of("p").file, m.of("q").file}, []int{5, 2}) {
			t.Errorf("%q: %v, %v", text, m, err)
		}
	}
}

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"ogw/cmd/ogw/config"
)

// top is the repository, seen from this package.
const top = "../.."

// documents returns the Markdown files of the repository, by their path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != top || e.IsDir() && e.Name() == "node_modules" {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			out[path] = readFile(t, path)
		}
		return nil
	})
	if err != nil || len(out) < 5 {
		t.Fatalf("%d documents, %v", len(out), err)
	}
	return out
}

// Every relative link leads to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	docs := documents(t)
	for path, text := range docs {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target := m[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file, heading, _ := strings.Cut(target, "#")
			full := path
			if file != "" {
				full = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(full); err != nil {
				t.Errorf("%s: link to %s: %v", path, target, err)
			} else if heading != "" && !slices.Contains(headings(docs[full]), heading) {
				t.Errorf("%s: no heading for the link %s", path, target)
			}
		}
	}
}

// headings returns the anchors of a document's headings.
func headings(text string) []string {
	var out []string
	drop := regexp.MustCompile("[^a-z0-9 _-]")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
			out = append(out, strings.ReplaceAll(drop.ReplaceAllString(title, ""), " ", "-"))
		}
	}
	return out
}

// operations.md names every key, metric and mount option, and no others.
func TestOperationsComplete(t *testing.T) {
	text := readFile(t, top+"/docs/operations.md")
	sections := []string{"cluster", "admin", "log", "audit", "server", "gateway"} // tables, not keys
	keys := config.Keys()
	for _, key := range keys {
		if !slices.Contains(sections, key) && !strings.Contains(text, "`"+key+"`") {
			t.Errorf("configuration key %s is not documented", key)
		}
	}
	for _, m := range regexp.MustCompile("`((?:cluster|admin|log|audit|server|gateway)\\.[a-z0-9_.]+)`").FindAllStringSubmatch(text, -1) {
		if !slices.Contains(keys, m[1]) {
			t.Errorf("operations.md names the key %s, which does not exist", m[1])
		}
	}
	metrics := metricNames(t)
	for _, name := range metrics {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("metric %s is not documented", name)
		}
	}
	for _, m := range regexp.MustCompile(`\bogw_[a-z_]+`).FindAllString(text, -1) {
		if !slices.Contains(metrics, m) {
			t.Errorf("operations.md names the metric %s, which does not exist", m)
		}
	}
	for _, o := range ownOptions() {
		if !strings.Contains(text, "`"+o.name) {
			t.Errorf("mount option %s is not documented", o.name)
		}
	}
}

// metricNames finds the metrics in the source: some appear at run time only
// after something failed.
func metricNames(t *testing.T) []string {
	t.Helper()
	name := regexp.MustCompile(`"(ogw_[a-z_]+)"`)
	var out []string
	for _, dir := range []string{"cmd/ogw/server", "cluster/metered"} {
		files, err := filepath.Glob(filepath.Join(top, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			for _, m := range name.FindAllStringSubmatch(readFile(t, f), -1) {
				out = append(out, m[1])
			}
		}
	}
	if len(out) < 15 {
		t.Fatalf("only %v", out)
	}
	return out
}

// The commands in the documents exist, with their flags.
func TestCommandsInDocuments(t *testing.T) {
	app := newApp(&environment{})
	line := regexp.MustCompile(`(?m)(?:^ {4}|&& |` + "`" + `)(?:bin/)?ogw ([a-z]+)([^\n` + "`" + `#|&]*)`)
	flag := regexp.MustCompile(`\s(--?[a-z][a-z0-9-]*)`)
	found := 0
	for path, text := range documents(t) {
		for _, m := range line.FindAllStringSubmatch(text, -1) {
			if found++; m[1] == "help" {
				continue // as familiar takes it
			}
			c := app.Command(m[1])
			if c == nil {
				t.Errorf("%s: there is no command %q", path, m[0])
				continue
			}
			if words := strings.Fields(m[2]); len(words) > 0 && len(c.Subcommands) > 0 {
				for _, sub := range c.Subcommands {
					if sub.HasName(words[0]) {
						c = sub
					}
				}
			}
			for _, f := range flag.FindAllStringSubmatch(m[2], -1) {
				name := strings.TrimLeft(f[1], "-")
				if !slices.ContainsFunc(c.Flags, func(x cli.Flag) bool { return slices.Contains(x.Names(), name) }) && name != "help" {
					t.Errorf("%s: %q: no flag %s", path, strings.TrimSpace(m[0]), f[1])
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d commands found", found)
	}
}

// testing.md names every target of the Makefile that tests or measures, and
// every variable of the tests.
func TestTestingComplete(t *testing.T) {
	text := readFile(t, top+"/docs/testing.md")
	for _, m := range regexp.MustCompile(`(?m)^((?:test|bench|fuzz|soak|lint)[a-z-]*):`).FindAllStringSubmatch(readFile(t, top+"/Makefile"), -1) {
		if !strings.Contains(text, "make "+m[1]) {
			t.Errorf("make %s is not documented", m[1])
		}
	}
	// What these are for, testing.md says once for all.
	covered := regexp.MustCompile(`^OGW_TEST_|_(SEED|STEPS|OPS|RUNS)$`)
	variable := regexp.MustCompile(`"(OGW_[A-Z_]+)"`)
	program := readFile(t, top+"/docs/operations.md") // variables of the program itself
	err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "cmd/ogw") {
			return err
		}
		for _, m := range variable.FindAllStringSubmatch(readFile(t, path), -1) {
			if !covered.MatchString(m[1]) && !strings.Contains(text+program, "`"+m[1]+"`") {
				t.Errorf("%s: variable %s is not documented", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

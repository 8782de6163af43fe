package main

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// constants evaluates the constants of packages of this module, as far as they are
// made of numbers, times and each other.
type constants struct {
	t    *testing.T
	seen map[string]map[string]ast.Expr // by the package's folder
	from map[ast.Expr]map[string]string // folders by import name, of the file
}

// of returns what a package declares.
func (c *constants) of(dir string) map[string]ast.Expr {
	if all, ok := c.seen[dir]; ok {
		return all
	}
	all := map[string]ast.Expr{}
	c.seen[dir] = all
	parsed, err := parser.ParseDir(token.NewFileSet(), filepath.Join(top, dir), func(i fs.FileInfo) bool { //nolint:staticcheck // build tags do not matter here
		return !strings.HasSuffix(i.Name(), "_test.go")
	}, parser.SkipObjectResolution)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, p := range parsed {
		for _, f := range p.Files {
			imports := map[string]string{}
			for _, i := range f.Imports {
				name, _ := strconv.Unquote(i.Path.Value)
				imports[path.Base(name)] = strings.TrimPrefix(name, "ogw/")
			}
			for _, d := range f.Decls {
				if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
					c.declare(all, d, imports)
				}
			}
		}
	}
	return all
}

func (c *constants) declare(all map[string]ast.Expr, d *ast.GenDecl, imports map[string]string) {
	for _, s := range d.Specs {
		s := s.(*ast.ValueSpec)
		for i, v := range s.Values {
			all[s.Names[i].Name] = v
			c.from[v] = imports
		}
	}
}

// value evaluates an expression of a package.
func (c *constants) value(dir string, imports map[string]string, e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return c.value(dir, imports, e.X)
	case *ast.Ident:
		return c.named(dir, e.Name)
	case *ast.SelectorExpr:
		pkg := e.X.(*ast.Ident).Name
		if unit, ok := timeUnits[e.Sel.Name]; pkg == "time" && ok {
			return constant.MakeInt64(int64(unit))
		}
		return c.named(imports[pkg], e.Sel.Name)
	case *ast.BinaryExpr:
		x, y := c.value(dir, imports, e.X), c.value(dir, imports, e.Y)
		if e.Op == token.SHL || e.Op == token.SHR {
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(n))
		}
		return constant.BinaryOp(x, e.Op, y)
	}
	c.t.Fatalf("%s: an expression of kind %T", dir, e)
	return nil
}

func (c *constants) named(dir, name string) constant.Value {
	e, ok := c.of(dir)[name]
	if !ok {
		c.t.Errorf("%s has no constant %s", dir, name)
		return constant.MakeInt64(0)
	}
	return c.value(dir, c.from[e], e)
}

var timeUnits = map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// shownUnits are those of the table.
var shownUnits = map[string]int64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "s": int64(time.Second), "min": int64(time.Minute), "d": int64(24 * time.Hour)}

// limitRow is `| what | 64 KiB | `pkg: name` | answer |`.
var limitRow = regexp.MustCompile("(?m)^\\| (.*) \\| (\\d+) ?(\\w*) \\| `([a-z0-9/]+): (\\w+)` \\| (.*) \\|$")

// notLimits are constants named like limits that bound nothing which a client can
// have the server hold, by package.
var notLimits = map[string][]string{
	"httpapi/fair":      {"maxIdleLook"},                                                      // work on a new connection
	"httpapi/s3":        {"maxToldKeys"},                                                      // a line of the audit
	"httpapi/sigv4":     {"maxChunkDigits"},                                                   // of a number
	"httpapi/rest":      {"maxPathBytes"},                                                     // within a head
	"nfsserver":         {"maxProcs", "maxPerms", "maxHandle"},                                // of what the server makes itself
	"nfsserver/rpc":     {"maxIdleWorkers", "maxResend", "maxInvokeReply", "maxMachineBytes"}, // within maxAuthBytes, or of calls to clients
	"nfsserver/nlm":     {"maxShareMode", "maxNetobj", "maxGrantPause"},                       // a number, within a record, calls to clients
	"nfsserver/nsm":     {"maxProc", "maxString", "MaxName", "maxZone"},                       // within a record
	"vfs/clients/guess": nil,
	// What one transaction does, and what is remembered.
	"vfs/internal/sharedlocks": {"maxMoved", "maxFences", "maxClosings"},
	"httpapi/iam":              {"maxListed", "maxSimulated", "maxSessionARNs"}, // within maxBody
	"httpapi":                  nil,
}

// TestDocumentLimits compares the table of limits in docs/security.md with the code: what
// it names exists and has that value, and each constant of the doors that is named like a
// limit stands there.
func TestDocumentLimits(t *testing.T) {
	page := readFile(t, top+"/docs/security.md")
	c := &constants{t: t, seen: map[string]map[string]ast.Expr{}, from: map[ast.Expr]map[string]string{}}
	listed := map[string]bool{}
	for _, m := range limitRow.FindAllStringSubmatch(page, -1) {
		n, _ := strconv.ParseInt(m[2], 10, 64)
		unit, ok := shownUnits[m[3]]
		if !ok {
			t.Errorf("%s: unit %q", m[0], m[3])
		}
		listed[m[4]+": "+m[5]] = true
		if got, exact := constant.Int64Val(c.named(m[4], m[5])); !exact || got != n*unit {
			t.Errorf("%s: %s is %d", m[0], m[5], got)
		}
	}
	_, section, _ := strings.Cut(page, "\n## Limits\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if rows := strings.Count(section, "\n| ") - strings.Count(section, "\n| **") - 1; rows != len(listed) || rows == 0 {
		t.Errorf("%d rows, of which %d are of the form that is read", rows, len(listed))
	}
	for dir, not := range notLimits {
		for name := range c.of(dir) {
			if !strings.HasPrefix(name, "max") && !strings.HasPrefix(name, "Max") && !strings.HasPrefix(name, "DefaultMax") || slices.Contains(not, name) {
				continue
			}
			if !listed[dir+": "+name] {
				t.Errorf("docs/security.md has no row for `%s: %s`", dir, name)
			}
		}
	}
}

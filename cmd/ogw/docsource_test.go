package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// source is what the tree declares.
type source struct {
	files    map[string]map[string]bool // by the file's path, tests left out
	dirs     map[string]map[string]bool // by the folder's
	names    map[string]bool            // of all files
	packages map[string]bool
}

// readSource parses the Go files of the repository.
func readSource(t *testing.T) *source {
	t.Helper()
	s := &source{files: map[string]map[string]bool{}, dirs: map[string]map[string]bool{}, names: map[string]bool{}, packages: map[string]bool{}}
	err := filepath.WalkDir(top, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && strings.HasPrefix(e.Name(), ".") && name != top || e.IsDir() && e.Name() == "node_modules" {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		s.packages[f.Name.Name] = true
		rel, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		s.files[rel] = declared(f)
		dir := path.Dir(rel)
		if s.dirs[dir] == nil {
			s.dirs[dir] = map[string]bool{}
		}
		maps.Copy(s.dirs[dir], s.files[rel])
		maps.Copy(s.names, s.files[rel])
		return nil
	})
	if err != nil || len(s.files) < 100 {
		t.Fatalf("%d files, %v", len(s.files), err)
	}
	return s
}

// declared returns what f declares: functions, Type.Method, types, constants,
// variables, Type.field.
func declared(f *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names[name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				declare(names, spec)
			}
		}
	}
	return names
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

func declare(names map[string]bool, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range spec.Names {
			names[n.Name] = true
		}
	case *ast.TypeSpec:
		names[spec.Name.Name] = true
		var fields *ast.FieldList
		switch t := spec.Type.(type) {
		case *ast.StructType:
			fields = t.Fields
		case *ast.InterfaceType:
			fields = t.Methods
		default:
			return
		}
		for _, f := range fields.List {
			for _, n := range f.Names {
				names[spec.Name.Name+"."+n.Name] = true
			}
		}
	}
}

// has reports whether the tree declares name, which may have its package in front.
func (s *source) has(name string) bool {
	if s.names[name] || s.packages[name] {
		return true
	}
	first, rest, ok := strings.Cut(name, ".")
	return ok && s.packages[first] && s.names[rest]
}

// Every Go file that a document names exists, and it or the package declares what
// is named with it (`file.go: function`, `package: function`). What the data flows
// and the lock order of architecture.md name without a file is declared somewhere.
func TestSourceInDocuments(t *testing.T) {
	src := readSource(t)
	inFile := regexp.MustCompile("`([a-z0-9_/]+/[a-z0-9_]+\\.go)(?:: ([A-Za-z0-9_.]+))?`")
	inPackage := regexp.MustCompile("`([a-z0-9_/]+): ([A-Za-z0-9_.]+)`")
	found := 0
	for doc, text := range documents(t) {
		for _, m := range inFile.FindAllStringSubmatch(text, -1) {
			found++
			if _, err := os.Stat(filepath.Join(top, m[1])); err != nil {
				t.Errorf("%s: there is no file %s", doc, m[1])
			} else if m[2] != "" && !src.files[m[1]][m[2]] {
				t.Errorf("%s: %s does not declare %s", doc, m[1], m[2])
			}
		}
		for _, m := range inPackage.FindAllStringSubmatch(text, -1) {
			if names := src.dirs[m[1]]; names != nil && !names[m[2]] {
				t.Errorf("%s: package %s does not declare %s", doc, m[1], m[2])
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d files named", found)
	}
	page := readFile(t, top+"/docs/architecture.md")
	name := regexp.MustCompile("`([A-Za-z][A-Za-z0-9]*(?:\\.[A-Za-z][A-Za-z0-9]*)*)`")
	for _, heading := range []string{"Five data flows", "Lock order"} {
		for line := range strings.Lines(section(t, page, heading)) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			for _, m := range name.FindAllStringSubmatch(line, -1) {
				if !src.has(m[1]) {
					t.Errorf("architecture.md, %s: nothing declares %s", heading, m[1])
				}
			}
		}
	}
}

// section returns what stands below a heading of the second level.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("no heading %q", heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

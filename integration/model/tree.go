package model

import (
	"slices"
	"strings"
)

// tree is what one subtree should hold: the rules of docs/semantics.md in
// their simplest form. A path may be a file and a directory at once.
type tree struct {
	files map[string]file
	made  map[string]bool // explicit directories
}

// file is a body and, unless a POSIX door wrote it, its ETag.
type file struct{ body, etag string }

func newTree() *tree {
	return &tree{files: map[string]file{}, made: map[string]bool{"": true}}
}

// keep makes the directory explicit that a POSIX door emptied, if S3 implied it.
func (m *tree) keep(dir string) {
	if !m.isDir(dir) {
		m.made[dir] = true
	}
}

// isDir reports whether p exists as a directory, made or implied.
func (m *tree) isDir(p string) bool {
	return m.made[p] || !m.empty(p)
}

// empty reports whether nothing is below dir.
func (m *tree) empty(dir string) bool {
	return !slices.ContainsFunc(m.paths(), func(q string) bool { return strings.HasPrefix(q, dir+"/") })
}

// canHold reports whether a POSIX door can make or replace the file p.
func (m *tree) canHold(p string) bool { return !m.isDir(p) && m.isDir(parent(p)) }

// shown is how a POSIX door shows the file p.
func (m *tree) shown(p string) string {
	if !m.isDir(p) {
		return p
	}
	return p[:strings.LastIndexByte(p, '/')+1] + shadowed(p[strings.LastIndexByte(p, '/')+1:])
}

// shadowed is the name of a file that a directory shadows.
func shadowed(name string) string { return ".ogw~f~" + name }

// paths are all files and made directories.
func (m *tree) paths() []string {
	var out []string
	for p := range m.files {
		out = append(out, p)
	}
	for p := range m.made {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// sortedFiles are the paths of all files.
func (m *tree) sortedFiles() []string {
	var out []string
	for p := range m.files {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// keys is what S3 lists below prefix: files, and made directories with a
// slash; with the delimiter "/" what is deeper is one common prefix.
func (m *tree) keys(prefix, delimiter string) []string {
	set := map[string]bool{}
	add := func(key string) {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			return
		}
		if name, _, deeper := strings.Cut(rest, "/"); deeper && delimiter != "" {
			key = prefix + name + "/"
		}
		set[key] = true
	}
	for p := range m.files {
		add(p)
	}
	for p := range m.made {
		if p != "" {
			add(p + "/")
		}
	}
	return sorted(set)
}

// names is what a POSIX door shows in dir.
func (m *tree) names(dir string) []string {
	set := map[string]bool{}
	child := func(p string) (name string, deeper bool) {
		rest, ok := strings.CutPrefix(p, dir+"/")
		if dir == "" {
			rest, ok = p, p != ""
		}
		name, _, deeper = strings.Cut(rest, "/")
		if !ok {
			return "", false
		}
		return name, deeper
	}
	for p := range m.made {
		if name, _ := child(p); name != "" {
			set[name] = true
		}
	}
	for p := range m.files {
		name, deeper := child(p)
		switch {
		case name == "":
		case !deeper && m.isDir(p):
			set[shadowed(name)] = true
		default:
			set[name] = true
		}
	}
	return sorted(set)
}

// move renames all at and below from.
func (m *tree) move(from, to string) {
	files, made := map[string]file{}, map[string]bool{}
	for p, f := range m.files {
		if strings.HasPrefix(p, from+"/") {
			p = to + p[len(from):]
		}
		files[p] = f
	}
	for p := range m.made {
		if p == from || strings.HasPrefix(p, from+"/") {
			p = to + p[len(from):]
		}
		made[p] = true
	}
	m.files, m.made = files, made
}

func parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

func sorted(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for name := range set {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

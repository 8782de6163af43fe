package integration

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// model is what one subtree should hold: the rules of docs/semantics.md in
// their simplest form. A path may be a file and a directory at once.
type model struct {
	files map[string]string // path to body
	made  map[string]bool   // explicit directories
	// was are directories that were there once. One that S3 implied vanishes
	// with its last entry; for a while after that its rmdir succeeds, so that
	// rm -r does, and the mount that removed the entry may show it.
	was map[string]bool
}

func newModel() *model {
	return &model{files: map[string]string{}, made: map[string]bool{"": true}, was: map[string]bool{}}
}

// remember notes which directories there are.
func (m *model) remember() {
	for _, p := range m.paths() {
		for d := parent(p); d != ""; d = parent(d) {
			m.was[d] = true
		}
	}
	for p := range m.made {
		m.was[p] = true
	}
}

// vanished tells whether p may be such a directory.
func (m *model) vanished(p string) bool { return !m.isDir(p) && m.was[p] }

// isDir tells whether p exists as a directory, made or implied.
func (m *model) isDir(p string) bool {
	if m.made[p] {
		return true
	}
	return slices.ContainsFunc(m.paths(), func(q string) bool { return strings.HasPrefix(q, p+"/") })
}

// paths are all files and made directories.
func (m *model) paths() []string {
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

func (m *model) empty(dir string) bool {
	return !slices.ContainsFunc(m.paths(), func(q string) bool { return strings.HasPrefix(q, dir+"/") })
}

// keys is what S3 lists: files, and made directories with a slash.
func (m *model) keys() []string {
	var out []string
	for p := range m.files {
		out = append(out, p)
	}
	for p := range m.made {
		if p != "" {
			out = append(out, p+"/")
		}
	}
	slices.Sort(out)
	return out
}

// names is what a POSIX door shows in dir.
func (m *model) names(dir string) []string {
	set := map[string]bool{}
	child := func(p string) (string, bool) {
		rest, ok := strings.CutPrefix(p, dir+"/")
		if dir == "" {
			rest, ok = p, p != ""
		}
		name, _, deeper := strings.Cut(rest, "/")
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
		case deeper:
			set[name] = true
		case m.isDir(p):
			set[".ogw~f~"+name] = true
		default:
			set[name] = true
		}
	}
	var out []string
	for n := range set {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// move renames all at and below from.
func (m *model) move(from, to string) {
	files, made := map[string]string{}, map[string]bool{}
	for p, b := range m.files {
		if strings.HasPrefix(p, from+"/") {
			p = to + p[len(from):]
		}
		files[p] = b
	}
	for p := range m.made {
		if p == from || strings.HasPrefix(p, from+"/") {
			p = to + p[len(from):]
		}
		made[p] = true
	}
	m.files, m.made = files, made
}

// worker drives one subtree, model beside it.
type worker struct {
	t     *testing.T
	m     *model
	rnd   *rand.Rand
	root  string // "bucket" of its own
	doors []door
	posix []posixDoor
	s     *server
	step  int
	log   []string
}

// posixDoor is what a file system door does to paths.
type posixDoor struct {
	name   string
	mkdir  func(p string) error
	remove func(p string) error
	rmdir  func(p string) error
	rename func(from, to string) error
	list   func(dir string) ([]string, error)
}

func (w *worker) path() string {
	parts := make([]string, 1+w.rnd.IntN(3))
	for i := range parts {
		parts[i] = string(rune('a' + w.rnd.IntN(4)))
	}
	return strings.Join(parts, "/")
}

func (w *worker) full(p string) string { return path.Join(w.root, p) }

func (w *worker) failf(format string, args ...any) {
	last := w.log[max(0, len(w.log)-25):]
	w.t.Errorf("%s, step %d: %s\nlast steps:\n%s", w.root, w.step, fmt.Sprintf(format, args...), strings.Join(last, "\n"))
}

// do runs one random step; false ends the worker.
func (w *worker) do() bool {
	w.step++
	w.m.remember()
	p := w.path()
	switch w.rnd.IntN(12) {
	case 0, 1, 2:
		return w.put(p)
	case 3, 4:
		return w.writePosix(p)
	case 5, 6:
		return w.remove(p)
	case 7:
		return w.mkdir(p)
	case 8:
		return w.rmdir(p)
	case 9:
		return w.rename(p, w.path())
	case 10:
		return w.read()
	default:
		return w.compare()
	}
}

func (w *worker) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *worker) body() string {
	sizes := [...]int{0, 10, 3000, 20_000, 150_000}
	return fmt.Sprintf("%s %d ", w.root, w.step) + strings.Repeat("b", w.rnd.IntN(1+sizes[w.rnd.IntN(len(sizes))]))
}

// put writes through an object door: always possible, shadowing included.
func (w *worker) put(p string) bool {
	d, body := w.doors[w.rnd.IntN(2)], w.body()
	w.note("%s put %s (%d bytes)", d.name, p, len(body))
	if err := d.write(w.full(p), body); err != nil {
		w.failf("put %s through %s: %v", p, d.name, err)
		return false
	}
	w.m.files[p] = body
	return true
}

// posixTarget tells whether a POSIX door can make or replace the file p.
func (w *worker) posixTarget(p string) bool {
	return !w.m.isDir(p) && w.m.isDir(parent(p))
}

func parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

func (w *worker) writePosix(p string) bool {
	d, body := w.doors[2+w.rnd.IntN(2)], w.body()
	w.note("%s write %s (%d bytes)", d.name, p, len(body))
	err := d.write(w.full(p), body)
	if ok := w.posixTarget(p); ok != (err == nil) {
		w.failf("write %s through %s: %v, want success %v", p, d.name, err, ok)
		return false
	}
	if err == nil {
		w.m.files[p] = body
	}
	return true
}

func (w *worker) remove(p string) bool {
	if w.rnd.IntN(2) == 0 {
		w.note("rest delete %s", p)
		err := restDelete("http://" + w.s.rest + "/" + w.full(p))
		if _, ok := w.m.files[p]; ok && err != nil {
			w.failf("delete %s: %v", p, err)
			return false
		}
		delete(w.m.files, p)
		return true
	}
	d, name := w.posix[w.rnd.IntN(len(w.posix))], p
	_, isFile := w.m.files[p]
	if isFile && w.m.isDir(p) {
		name = path.Join(parent(p), ".ogw~f~"+path.Base(p))
	}
	if isFile && w.m.vanished(p) {
		d = w.posix[len(w.posix)-1] // no mount, which may take it for the directory
	}
	w.note("%s remove %s", d.name, name)
	err := d.remove(w.full(name))
	if isFile != (err == nil) {
		w.failf("remove %s through %s: %v, exists %v", name, d.name, err, isFile)
		return false
	}
	delete(w.m.files, p)
	return true
}

func (w *worker) mkdir(p string) bool {
	d := w.posix[w.rnd.IntN(len(w.posix))]
	_, isFile := w.m.files[p]
	ok := !isFile && !w.m.isDir(p) && w.m.isDir(parent(p))
	w.note("%s mkdir %s", d.name, p)
	if err := d.mkdir(w.full(p)); ok != (err == nil) {
		w.failf("mkdir %s through %s: %v, want success %v", p, d.name, err, ok)
		return false
	}
	if ok {
		w.m.made[p] = true
	}
	return true
}

func (w *worker) rmdir(p string) bool {
	d := w.posix[w.rnd.IntN(len(w.posix))]
	ok := w.m.isDir(p) && w.m.empty(p)
	w.note("%s rmdir %s", d.name, p)
	if err := d.rmdir(w.full(p)); ok != (err == nil) && !w.m.vanished(p) {
		w.failf("rmdir %s through %s: %v, want success %v", p, d.name, err, ok)
		return false
	}
	if ok {
		delete(w.m.made, p)
	}
	return true
}

// rename moves what POSIX shows as p: the directory if there is one.
func (w *worker) rename(p, q string) bool {
	d := w.posix[w.rnd.IntN(len(w.posix))]
	_, isFile := w.m.files[p]
	_, qFile := w.m.files[q]
	dir, qDir := w.m.isDir(p), w.m.isDir(q)
	var ok bool
	switch {
	case !dir && !isFile, !w.m.isDir(parent(q)):
		ok = false
	case p == q:
		ok = true
	case dir:
		ok = q != p && !strings.HasPrefix(q, p+"/") && (!qDir && !qFile || qDir && w.m.empty(q))
	default:
		ok = !qDir
	}
	w.note("%s rename %s %s", d.name, p, q)
	if err := d.rename(w.full(p), w.full(q)); ok != (err == nil) {
		w.failf("rename %s to %s through %s: %v, want success %v", p, q, d.name, err, ok)
		return false
	}
	if !ok || p == q {
		return true
	}
	if dir {
		delete(w.m.made, q) // the source's mark counts
		w.m.move(p, q)
	} else {
		w.m.files[q] = w.m.files[p]
		delete(w.m.files, p)
	}
	return true
}

// read compares one file through a random door.
func (w *worker) read() bool {
	for p, want := range w.m.files {
		d, name := w.doors[w.rnd.IntN(len(w.doors))], p
		if w.m.isDir(p) && (d.name == "fuse" || d.name == "nfs") {
			name = path.Join(parent(p), ".ogw~f~"+path.Base(p))
		}
		got, err := d.read(w.full(name))
		if err != nil || got != want {
			w.failf("%s reads %s: %d bytes, want %d, error %v", d.name, name, len(got), len(want), err)
			return false
		}
		return true
	}
	return true
}

// compare compares the S3 listing and every directory with the model.
func (w *worker) compare() bool {
	got, err := listKeys(w.s.sdk(), w.root)
	if err != nil {
		w.failf("list: %v", err)
		return false
	}
	if want := w.m.keys(); !slices.Equal(got, want) {
		w.failf("S3 lists\n %q, want\n %q", got, want)
		return false
	}
	d := w.posix[w.rnd.IntN(len(w.posix))]
	for _, p := range append(w.m.paths(), "") {
		for dir := p; ; dir = parent(dir) {
			if w.m.isDir(dir) {
				names, err := d.list(w.full(dir))
				slices.Sort(names)
				if want := w.m.names(dir); err != nil || !slices.Equal(names, want) {
					w.failf("%s shows in %q\n %q, want\n %q, error %v", d.name, dir, names, want, err)
					return false
				}
			}
			if dir == "" {
				break
			}
		}
	}
	return true
}

// TestModel drives random operations through all doors at once, each worker
// in a bucket of its own, against a model. OGW_MODEL_SEED repeats a run,
// OGW_MODEL_STEPS lengthens it.
func TestModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("OGW_MODEL_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	steps := 400
	if v, err := strconv.Atoi(os.Getenv("OGW_MODEL_STEPS")); err == nil {
		steps = v
	}
	t.Logf("OGW_MODEL_SEED=%d", seed)
	s := newServer(t, options{})
	all, mnt := doors(t, s)
	posix := posixDoors(t, s, mnt)
	const workers = 4
	var wg sync.WaitGroup
	for i := range workers {
		w := &worker{t: t, m: newModel(), rnd: rand.New(rand.NewPCG(seed, uint64(i))),
			root: fmt.Sprintf("model-%d", i), doors: all, posix: posix, s: s}
		s.aws("s3", "mb", "s3://"+w.root)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range steps {
				if !w.do() {
					return
				}
			}
			w.compare()
		}()
	}
	wg.Wait()
	checkClean(t, s)
}

func posixDoors(t *testing.T, s *server, mnt string) []posixDoor {
	at := func(p string) string { return path.Join(mnt, p) }
	target := s.nfsTarget(t, "/")
	return []posixDoor{
		{"fuse",
			func(p string) error { return os.Mkdir(at(p), 0o755) },
			func(p string) error { return unlink(at(p)) },
			func(p string) error { return rmdir(at(p)) },
			func(from, to string) error { return rename(at(from), at(to)) },
			func(dir string) ([]string, error) {
				entries, err := os.ReadDir(at(dir))
				return entryNames(entries), err
			}},
		{"nfs",
			func(p string) error { _, err := target.Mkdir(p, 0o755); return err },
			target.Remove, target.RmDir, target.Rename,
			func(dir string) ([]string, error) {
				entries, err := target.ReadDirPlus(dir)
				var out []string
				for _, e := range entries {
					out = append(out, e.Name())
				}
				return out, err
			}},
	}
}

func entryNames(entries []fs.DirEntry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

package model

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"ogw/integration/doors"
)

// Doors are the ways into one namespace.
type Doors struct {
	Objects []doors.Object
	Stores  []doors.Store // also among the Objects
	Posix   []doors.Posix
}

// readers are all of them.
func (d *Doors) readers() []doors.Door {
	var out []doors.Door
	for _, o := range d.Objects {
		out = append(out, o)
	}
	for _, p := range d.Posix {
		out = append(out, p)
	}
	return out
}

// logSteps is how many of the last steps a failure prints.
const logSteps = 25

// Worker drives one subtree, a model beside it.
type Worker struct {
	t       testing.TB
	m       *tree
	rnd     *rand.Rand
	root    string // "bucket" or "bucket/dir"
	d       *Doors
	step    int
	log     []string
	uploads []*upload
}

// NewWorker returns one over an empty directory that nobody else uses.
func NewWorker(t testing.TB, d *Doors, root string, seed, stream uint64) *Worker {
	return &Worker{t: t, m: newTree(), rnd: rand.New(rand.NewPCG(seed, stream)), root: root, d: d}
}

// steps are the operations, each as often as it is here.
var steps = []func(*Worker) bool{
	(*Worker).put, (*Worker).put, (*Worker).put,
	(*Worker).putIf, (*Worker).copy, (*Worker).copy,
	(*Worker).beginUpload, (*Worker).goOnWithUpload, (*Worker).goOnWithUpload,
	(*Worker).deleteKey, (*Worker).deleteMany, (*Worker).putDir, (*Worker).deleteDir,
	(*Worker).write, (*Worker).write, (*Worker).write,
	(*Worker).remove, (*Worker).remove, (*Worker).mkdir, (*Worker).rmdir, (*Worker).rename, (*Worker).rename,
	(*Worker).read, (*Worker).read, (*Worker).Compare,
}

// Step runs one random operation and compares; false ends the worker, which
// has reported to the test why.
func (w *Worker) Step() bool {
	w.step++
	return pick(w, steps)(w)
}

// Steps is how many there were.
func (w *Worker) Steps() int { return w.step }

// Bytes is what the files hold together.
func (w *Worker) Bytes() (n int64) {
	for _, f := range w.m.files {
		n += int64(len(f.body))
	}
	return n
}

// End compares everything and takes back uploads that are open.
func (w *Worker) End() bool {
	for _, u := range w.uploads {
		if err := u.Abort(); err != nil {
			return w.failf("abort the upload of %s: %v", u.path, err)
		}
	}
	for _, p := range w.m.sortedFiles() {
		if !w.readFile(p) {
			return false
		}
	}
	return w.Compare()
}

func pick[T any](w *Worker, list []T) T { return list[w.rnd.IntN(len(list))] }

// path is one of few, so that they meet.
func (w *Worker) path() string {
	parts := make([]string, 1+w.rnd.IntN(3))
	for i := range parts {
		parts[i] = string(rune('a' + w.rnd.IntN(4)))
	}
	return strings.Join(parts, "/")
}

func (w *Worker) full(p string) string { return path.Join(w.root, p) }

// place cuts the root into its bucket and the prefix of its keys.
func (w *Worker) place() (bucket, prefix string) {
	bucket, prefix, deeper := strings.Cut(w.root, "/")
	if deeper {
		prefix += "/"
	}
	return bucket, prefix
}

func (w *Worker) body() string {
	sizes := [...]int{0, 10, 3000, 20_000, 150_000}
	return fmt.Sprintf("%s %d ", w.root, w.step) + strings.Repeat("b", w.rnd.IntN(1+pick(w, sizes[:])))
}

func (w *Worker) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
	w.log = w.log[max(0, len(w.log)-logSteps):]
}

// failf returns false.
func (w *Worker) failf(format string, args ...any) bool {
	w.t.Errorf("%s, step %d: %s\nlast steps:\n%s", w.root, w.step, fmt.Sprintf(format, args...), strings.Join(w.log, "\n"))
	return false
}

// read compares one file through a random door.
func (w *Worker) read() bool {
	files := w.m.sortedFiles()
	if len(files) == 0 {
		return true
	}
	return w.readFile(pick(w, files))
}

func (w *Worker) readFile(p string) bool {
	want, d, name := w.m.files[p], pick(w, w.d.readers()), p
	if _, posix := d.(doors.Posix); posix {
		name = w.m.shown(p)
	}
	got, err := d.Read(w.full(name))
	if err != nil || got != want.body {
		return w.failf("%s reads %s: %d bytes (%.40q), want %d (%.40q), error %v",
			d.Name(), name, len(got), got, len(want.body), want.body, err)
	}
	return w.wantETag(pick(w, w.d.Stores), p)
}

// wantETag compares size and ETag.
func (w *Worker) wantETag(d doors.Store, p string) bool {
	want := w.m.files[p]
	size, etag, err := d.Head(w.full(p))
	right := etag == want.etag || want.etag == "" && strings.Contains(etag, "-")
	if err != nil || size != int64(len(want.body)) || !right {
		return w.failf("%s says of %s: %d bytes, ETag %q, want %d, %q; error %v",
			d.Name(), p, size, etag, len(want.body), want.etag, err)
	}
	return true
}

// Compare compares listings of keys and every directory with the model.
func (w *Worker) Compare() bool {
	store := pick(w, w.d.Stores)
	if !w.compareKeys(store, "", "") || !w.compareKeys(store, "", "/") ||
		!w.compareKeys(store, w.path()+"/", "/") || !w.compareKeys(store, w.path(), "") {
		return false
	}
	d := pick(w, w.d.Posix)
	seen := map[string]bool{}
	for _, p := range append(w.m.paths(), "") {
		for dir := p; ; dir = parent(dir) {
			if !seen[dir] && w.m.isDir(dir) {
				names, err := d.List(w.full(dir))
				slices.Sort(names)
				if want := w.m.names(dir); err != nil || !slices.Equal(names, want) {
					return w.failf("%s shows in %q\n %q, want\n %q, error %v", d.Name(), dir, names, want, err)
				}
			}
			seen[dir] = true
			if dir == "" {
				break
			}
		}
	}
	return true
}

// maxPage bounds the pages of listings: small ones, so that there are many.
const maxPage = 12

func (w *Worker) compareKeys(d doors.Store, prefix, delimiter string) bool {
	bucket, above := w.place()
	page := int32(1 + w.rnd.IntN(maxPage))
	got, err := d.Keys(bucket, above+prefix, delimiter, page)
	if err != nil {
		return w.failf("%s lists: %v", d.Name(), err)
	}
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], above)
	}
	// The root's own key, where the root is a directory.
	got = slices.DeleteFunc(got, func(k string) bool { return k == "" })
	if want := w.m.keys(prefix, delimiter); !slices.Equal(got, want) {
		return w.failf("%s lists with prefix %q, delimiter %q, by %d\n %q, want\n %q", d.Name(), prefix, delimiter, page, got, want)
	}
	return true
}

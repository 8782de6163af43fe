package vfs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ogw/cluster/mem"
	"ogw/vfs/internal/naming"
)

// modelRun is one client of the model test, in a directory of its own.
type modelRun struct {
	t       *testing.T
	fs      *FS
	r       *rand.Rand
	top     Ino
	bucket  string
	prefix  string // of all its keys
	unknown bool   // operations may have an unknown outcome
	root    *mnode
	log     []string
	bodies  int
}

var modelNames = []string{"a", "b", "c", ".ogw~f~a", ".ogw~f~b", ".ogw~e~..", ".ogw~e~", ".ogw~bad"}
var modelStored = []string{"a", "b", "", ".."}

// pick returns a random directory of both trees.
func (m *modelRun) pick() (*mnode, Ino) {
	d, ino := m.root, m.top
	for m.r.IntN(3) > 0 {
		var dirs []*mnode
		for _, n := range d.kids {
			if n.dir {
				dirs = append(dirs, n)
			}
		}
		if len(dirs) == 0 {
			break
		}
		slices.SortFunc(dirs, func(a, b *mnode) int { return strings.Compare(a.name, b.name) })
		d = dirs[m.r.IntN(len(dirs))]
		ino = mustLookup(m.t, m.fs, ino, naming.Shown(d.name, true, false)).Ino
	}
	return d, ino
}

// place is a random name in a random directory.
func (m *modelRun) place() (p mplace, dir Ino, name string) {
	d, dir := m.pick()
	name = modelNames[m.r.IntN(len(modelNames))]
	return placeOf(d, name), dir, name
}

// key is that of a file or of a directory.
func (m *modelRun) key() []string {
	var comps []string
	for range 1 + m.r.IntN(3) {
		comps = append(comps, modelStored[m.r.IntN(len(modelStored))])
	}
	if len(comps) == 1 && comps[0] == "" {
		comps[0] = "a"
	}
	return comps
}

// fileKey is that of a file.
func (m *modelRun) fileKey() []string {
	comps := m.key()
	if last := &comps[len(comps)-1]; *last == "" {
		*last = "b"
	}
	return comps
}

// full is the key of the store.
func (m *modelRun) full(comps []string) string { return m.prefix + strings.Join(comps, "/") }

// body is one that was not before, inline or not.
func (m *modelRun) body() string {
	m.bodies++
	return fmt.Sprint(m.bodies, " ", strings.Repeat("x", m.r.IntN(3*modelInline)))
}

// modelInline is small, so that contents are of both kinds.
const modelInline = 20

// step runs one operation on both, and reports whether it must succeed.
func (m *modelRun) step() (what string, ok bool, err error) {
	return modelSteps[m.r.IntN(len(modelSteps))](m)
}

func (m *modelRun) equal(model *mnode) (string, bool) {
	var real, want []string
	dumpFS(m.t, m.fs, m.top, "", &real)
	model.dump("", nil, &want)
	slices.Sort(real)
	slices.Sort(want)
	return fmt.Sprintf("real  %q\nmodel %q", real, want), slices.Equal(real, want)
}

// run does so many steps.
func (m *modelRun) run(steps int) {
	for range steps {
		before := m.root.clone(map[*mnode]*mnode{})
		what, ok, err := m.step()
		m.log = append(m.log, fmt.Sprintf("%s: %v", what, err))
		if err != nil && !ok || errors.Is(err, ErrUnavailable) {
			if !errors.Is(err, ErrUnavailable) {
				m.root = before
			} else if _, same := m.equal(m.root); !same {
				m.root = before // it did not happen
			}
			err, ok = nil, true
		}
		diff, same := m.equal(m.root)
		if !same || !ok || err != nil {
			m.t.Fatalf("the model says %v\n%s\n%s", ok, strings.Join(m.log[max(0, len(m.log)-12):], "\n"), diff)
		}
	}
}

// mustMake makes a directory on an engine that may forget the outcome.
func mustMake(t *testing.T, fs *FS, dir Ino, name string) Ino {
	t.Helper()
	a, err := fs.Mkdir(bg, Root, dir, name, 0o755)
	for errors.Is(err, ErrUnavailable) {
		a, err = fs.Mkdir(bg, Root, dir, name, 0o755)
	}
	if errors.Is(err, ErrExist) {
		a, err = fs.Lookup(bg, Root, dir, name)
	}
	want(t, err, nil)
	return a.Ino
}

// testModel runs one client alone in a bucket and two in another.
func testModel(t *testing.T, o mem.Options, seed uint64, steps int) {
	fs := openTestWith(t, mem.New(o), Config{InlineBytes: modelInline})
	alone, shared := mustMake(t, fs, RootIno, "bucket"), mustMake(t, fs, RootIno, "shared")
	runs := []*modelRun{{top: alone, bucket: "bucket"}}
	for _, dir := range []string{"a", "b"} {
		runs = append(runs, &modelRun{top: mustMake(t, fs, shared, dir), bucket: "shared", prefix: dir + "/"})
	}
	t.Run("clients", func(t *testing.T) {
		for i, m := range runs {
			t.Run(m.bucket+m.prefix, func(t *testing.T) {
				t.Parallel()
				m.t, m.fs, m.unknown, m.r = t, fs, o.UnknownRate > 0, rand.New(rand.NewPCG(seed, uint64(i)))
				m.root = &mnode{dir: true, explicit: true, kids: map[string]*mnode{}}
				m.run(steps)
			})
		}
	})
	report, err := fs.Check(bg, CheckOptions{Data: true})
	if o.UnknownRate > 0 {
		return // blobs and records of what failed may be there; Check mends them
	}
	want(t, err, nil)
	if len(report.Problems) > 0 {
		t.Fatalf("check: %+v", report.Problems)
	}
	for _, dir := range []struct {
		ino  Ino
		name string
	}{{alone, "bucket"}, {shared, "shared"}} {
		removeAll(t, fs, dir.ino)
		want(t, fs.Rmdir(bg, Root, RootIno, dir.name), nil)
	}
	_, err = fs.Collect(bg)
	want(t, err, nil)
	noLeftovers(t, fs)
}

// TestNamespaceModel: OGW_NAMESPACE_SEED repeats the operations of a run.
func TestNamespaceModel(t *testing.T) {
	given, err := strconv.ParseUint(os.Getenv("OGW_NAMESPACE_SEED"), 10, 64)
	repeat := err == nil
	for _, c := range []struct {
		name  string
		o     mem.Options
		steps int
	}{
		{"gentle", mem.Options{}, 800},
		{"worst", mem.Distributed(7), 80},
		{"unknown outcomes", mem.Options{UnknownRate: 0.1, ConflictRate: 0.1}, 600},
	} {
		for range 3 {
			seed := rand.Uint64()
			if repeat {
				seed = given
			}
			t.Run(fmt.Sprintf("%s/%d", c.name, seed), func(t *testing.T) {
				t.Parallel()
				o := c.o
				o.Seed = seed
				testModel(t, o, seed, c.steps)
			})
		}
	}
}

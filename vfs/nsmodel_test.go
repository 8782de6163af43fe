package vfs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
)

// The namespace against a simple model: random operations through the POSIX
// and the object operations; after each, the trees must be equal.

// mnode is a file or a directory of the model.
type mnode struct {
	dir      bool
	explicit bool
	parent   *mnode // of a directory
	name     string // of a directory, stored
	kids     map[string]*mnode
	links    int // of a file
}

func kidKey(stored string, dir bool) string {
	if dir {
		return stored + "/"
	}
	return stored
}

// mplace is what a shown name stands for in a directory.
type mplace struct {
	d      *mnode
	stored string
	file   bool
	bad    bool
}

func placeOf(d *mnode, shown string) mplace {
	p, err := parsePosixName(shown)
	return mplace{d, p.stored, p.file, err != nil}
}

// entry returns what exists at p, or nil.
func (p mplace) entry() *mnode {
	if p.bad {
		return nil
	}
	if n := p.d.kids[kidKey(p.stored, true)]; n != nil && !p.file {
		return n
	}
	return p.d.kids[p.stored]
}

// fits tells whether something new of that kind can be made at p.
func (p mplace) fits(dir bool) bool {
	return !p.bad && p.entry() == nil && !(dir && p.file) && (dir || p.stored != "")
}

func (p mplace) set(n *mnode) {
	p.d.kids[kidKey(p.stored, n.dir)] = n
	if n.dir {
		n.parent, n.name = p.d, p.stored
	}
}

func (d *mnode) remove(stored string, dir bool) {
	delete(d.kids, kidKey(stored, dir))
	d.prune()
}

func (d *mnode) prune() {
	if !d.explicit && len(d.kids) == 0 {
		d.parent.remove(d.name, true)
	}
}

func (d *mnode) below(top *mnode) bool {
	for ; d != nil; d = d.parent {
		if d == top {
			return true
		}
	}
	return false
}

// rename returns false if it must fail.
func mrename(from, to mplace, flags RenameFlags) bool {
	a, b := from.entry(), to.entry()
	switch {
	case from.bad || to.bad || a == nil:
		return false
	case flags&RenameNoReplace != 0 && b != nil, flags&RenameExchange != 0 && b == nil:
		return false
	case a == b:
		return true
	case flags&RenameExchange != 0:
		return mexchange(from, to, a, b)
	case a.dir && to.d.below(a):
		return false
	case b == nil && !to.fits(a.dir):
		return false
	case b != nil && (a.dir != b.dir || len(b.kids) > 0):
		return false
	}
	if b != nil && !b.dir {
		b.links--
	}
	delete(from.d.kids, kidKey(from.stored, a.dir))
	to.set(a)
	from.d.prune()
	return true
}

func mexchange(from, to mplace, a, b *mnode) bool {
	if from.d == to.d && from.stored == to.stored {
		return true
	}
	if a.dir && to.d.below(a) || b.dir && from.d.below(b) {
		return false
	}
	if a.dir != b.dir {
		if from.d.kids[kidKey(from.stored, b.dir)] != nil || to.d.kids[kidKey(to.stored, a.dir)] != nil {
			return false
		}
		if from.stored == "" || to.stored == "" {
			return false
		}
	}
	delete(from.d.kids, kidKey(from.stored, a.dir))
	delete(to.d.kids, kidKey(to.stored, b.dir))
	to.set(a)
	from.set(b)
	return true
}

// mput is PutObject below d.
func mput(d *mnode, comps []string) {
	for i, c := range comps[:len(comps)-1] {
		next := d.kids[kidKey(c, true)]
		if next == nil {
			next = &mnode{dir: true, kids: map[string]*mnode{}}
			mplace{d: d, stored: c}.set(next)
		}
		if d = next; i == len(comps)-2 && comps[i+1] == "" {
			d.explicit = true
			return
		}
	}
	last := comps[len(comps)-1]
	if old := d.kids[last]; old == nil || old.links > 1 {
		if old != nil {
			old.links--
		}
		d.kids[last] = &mnode{links: 1}
	}
}

// mdelete is DeleteObject below d.
func mdelete(d *mnode, comps []string) {
	for i, c := range comps[:len(comps)-1] {
		if d = d.kids[kidKey(c, true)]; d == nil {
			return
		}
		if i == len(comps)-2 && comps[i+1] == "" {
			d.explicit = false
			d.prune()
			return
		}
	}
	if n := d.kids[comps[len(comps)-1]]; n != nil {
		n.links--
		d.remove(comps[len(comps)-1], false)
	}
}

func (d *mnode) clone(seen map[*mnode]*mnode) *mnode {
	if c := seen[d]; c != nil {
		return c
	}
	c := &mnode{dir: d.dir, explicit: d.explicit, name: d.name, links: d.links}
	seen[d] = c
	if d.dir {
		c.kids = map[string]*mnode{}
	}
	for k, n := range d.kids {
		kid := n.clone(seen)
		c.kids[k] = kid
		if kid.dir {
			kid.parent = c
		}
	}
	return c
}

// dump lists a model tree as dumpFS lists a real one.
func (d *mnode) dump(path string, ids map[*mnode]int, out *[]string) {
	for k, n := range d.kids {
		stored := strings.TrimSuffix(k, "/")
		if !n.dir {
			stored = k
		}
		shown := path + "/" + shownName(stored, n.dir, d.kids[k+"/"] != nil)
		if n.dir {
			*out = append(*out, shownDir(shown, n.explicit))
			n.dump(shown, ids, out)
		} else {
			*out = append(*out, fmt.Sprintf("%s nlink=%d", shown, n.links))
		}
	}
}

// shownDir tells an implied directory from an explicit one: after an unknown
// outcome that is all the difference there may be.
func shownDir(path string, explicit bool) string {
	if explicit {
		return path + "/"
	}
	return path + "/ (implied)"
}

func isExplicit(t *testing.T, fs *FS, dir Ino) (explicit bool) {
	t.Helper()
	want(t, fs.view(bg, func(r cluster.Reader) error {
		n, err := getInode(r, dir)
		explicit = err == nil && n.has(flagExplicit)
		return err
	}), nil)
	return explicit
}

func dumpFS(t *testing.T, fs *FS, dir Ino, path string, out *[]string) {
	t.Helper()
	err := fs.ReadDir(bg, Root, dir, "", true, func(e DirEntry) error {
		shown := path + "/" + e.Name
		if e.Attr == nil {
			t.Fatalf("%s has no attributes", shown)
		}
		if e.Mode == ModeDirectory {
			*out = append(*out, shownDir(shown, isExplicit(t, fs, e.Ino)))
			dumpFS(t, fs, e.Ino, shown, out)
			return nil
		}
		*out = append(*out, fmt.Sprintf("%s nlink=%d", shown, e.Attr.Nlink))
		return nil
	})
	for errors.Is(err, ErrUnavailable) {
		t.Fatalf("a read is unavailable")
	}
	want(t, err, nil)
}

// modelRun is one run of the model test.
type modelRun struct {
	t    *testing.T
	fs   *FS
	r    *rand.Rand
	top  Ino
	root *mnode
	log  []string
}

var modelNames = []string{"a", "b", "c", ".ogw~f~a", ".ogw~f~b", ".ogw~e~..", ".ogw~e~", ".ogw~bad"}
var modelStored = []string{"a", "b", "", ".."}

// pick returns a random directory of both trees, and the shown path to it.
func (m *modelRun) pick() (*mnode, Ino, bool) {
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
		ino = mustLookup(m.t, m.fs, ino, shownName(d.name, true, false)).Ino
	}
	return d, ino, true
}

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

// step runs one operation on both. real is nil for operations that the model
// says must fail but that are harmless if they do not.
func (m *modelRun) step() (what string, ok bool, err error) {
	fs := m.fs
	d, ino, _ := m.pick()
	name := modelNames[m.r.IntN(len(modelNames))]
	p := placeOf(d, name)
	switch m.r.IntN(9) {
	case 0:
		ok = p.fits(true)
		if ok {
			p.set(&mnode{dir: true, explicit: true, kids: map[string]*mnode{}})
		}
		_, err = fs.Mkdir(bg, Root, ino, name, 0o755)
		return fmt.Sprintf("mkdir %d %s", ino, name), ok, err
	case 1:
		ok = p.fits(false)
		if ok {
			p.set(&mnode{links: 1})
		}
		_, _, _, err = fs.Create(bg, Root, ino, name, CreateOptions{Exclusive: true, NoOpen: true})
		return fmt.Sprintf("create %d %s", ino, name), ok, err
	case 2:
		n := p.entry()
		if ok = n != nil && !n.dir; ok {
			n.links--
			d.remove(p.stored, false)
		}
		err = fs.Unlink(bg, Root, ino, name)
		return fmt.Sprintf("unlink %d %s", ino, name), ok, err
	case 3:
		n := p.entry()
		if ok = n != nil && n.dir && len(n.kids) == 0; ok {
			d.remove(p.stored, true)
		}
		if err = fs.Rmdir(bg, Root, ino, name); err == nil && (n == nil || !n.dir) {
			ok = true // a directory that vanished a moment ago
		}
		return fmt.Sprintf("rmdir %d %s", ino, name), ok, err
	case 4, 5:
		d2, ino2, _ := m.pick()
		name2 := modelNames[m.r.IntN(len(modelNames))]
		flags := []RenameFlags{0, 0, RenameNoReplace, RenameExchange}[m.r.IntN(4)]
		ok = mrename(p, placeOf(d2, name2), flags)
		err = fs.Rename(bg, Root, ino, name, ino2, name2, flags)
		return fmt.Sprintf("rename %d %s to %d %s (%d)", ino, name, ino2, name2, flags), ok, err
	case 6:
		d2, ino2, _ := m.pick()
		name2 := modelNames[m.r.IntN(len(modelNames))]
		to, n := placeOf(d2, name2), p.entry()
		if n == nil || n.dir {
			return "nothing", true, nil
		}
		f := mustLookup(m.t, fs, ino, name).Ino
		if ok = to.fits(false); ok {
			n.links++
			to.set(n)
		}
		_, err = fs.Link(bg, Root, f, ino2, name2)
		return fmt.Sprintf("link %d to %d %s", f, ino2, name2), ok, err
	case 7:
		comps := m.key()
		mput(m.root, comps)
		_, err = fs.PutObject(bg, "bucket", strings.Join(comps, "/"), strings.NewReader("text"), PutOptions{Size: -1})
		return fmt.Sprintf("put %q", comps), true, err
	default:
		comps := m.key()
		mdelete(m.root, comps)
		_, err = fs.DeleteObject(bg, "bucket", strings.Join(comps, "/"), DeleteOptions{})
		return fmt.Sprintf("delete %q", comps), true, err
	}
}

func (m *modelRun) equal(model *mnode) (string, bool) {
	var real, want []string
	dumpFS(m.t, m.fs, m.top, "", &real)
	model.dump("", nil, &want)
	slices.Sort(real)
	slices.Sort(want)
	return fmt.Sprintf("real  %q\nmodel %q", real, want), slices.Equal(real, want)
}

func runModel(t *testing.T, o mem.Options, seed uint64, steps int) {
	fs := openTest(t, mem.New(o))
	var a Attr
	err := ErrUnavailable
	for errors.Is(err, ErrUnavailable) {
		a, err = fs.Mkdir(bg, Root, RootIno, "bucket", 0o755)
	}
	if errors.Is(err, ErrExist) {
		a, err = fs.Lookup(bg, Root, RootIno, "bucket")
	}
	want(t, err, nil)
	m := &modelRun{t: t, fs: fs, r: rand.New(rand.NewPCG(seed, 0)), top: a.Ino,
		root: &mnode{dir: true, explicit: true, kids: map[string]*mnode{}}}
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
			t.Fatalf("seed %d: the model says %v\n%s\n%s", seed, ok, strings.Join(m.log[max(0, len(m.log)-12):], "\n"), diff)
		}
	}
	m.finish(o.UnknownRate > 0)
}

// finish checks what is stored, removes everything and looks for leftovers.
func (m *modelRun) finish(unknown bool) {
	report, err := m.fs.Check(bg, CheckOptions{Data: true})
	if unknown {
		return // blobs and records of what failed may be there; Check mends them
	}
	want(m.t, err, nil)
	if len(report.Problems) > 0 {
		m.t.Fatalf("check: %+v", report.Problems)
	}
	removeAll(m.t, m.fs, m.top)
	want(m.t, m.fs.Rmdir(bg, Root, RootIno, "bucket"), nil)
	_, err = m.fs.Collect(bg)
	want(m.t, err, nil)
	noLeftovers(m.t, m.fs)
}

func TestNamespaceModel(t *testing.T) {
	for _, c := range []struct {
		name  string
		o     mem.Options
		steps int
	}{
		{"gentle", mem.Options{}, 1500},
		{"worst", mem.Distributed(7), 150},
		{"unknown outcomes", mem.Options{UnknownRate: 0.1, ConflictRate: 0.1}, 1000},
	} {
		for range 3 {
			seed := rand.Uint64()
			t.Run(fmt.Sprintf("%s/%d", c.name, seed), func(t *testing.T) {
				t.Parallel()
				o := c.o
				o.Seed = seed
				runModel(t, o, seed, c.steps)
			})
		}
	}
}

package vfs

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/record"
)

// The namespace against a simple model: random operations through the POSIX
// and the object operations, several clients at once; after each operation
// the trees and the contents must be equal.

// mnode is a file or a directory of the model.
type mnode struct {
	dir      bool
	explicit bool
	parent   *mnode // of a directory
	name     string // of a directory, stored
	kids     map[string]*mnode
	links    int    // of a file
	body     string // of a file
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
	p, err := naming.ParsePosix(shown)
	return mplace{d, p.Stored, p.File, err != nil}
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

// fits reports whether something new of that kind can be made at p.
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

// take is remove by a POSIX operation.
func (d *mnode) take(stored string, dir bool) {
	delete(d.kids, kidKey(stored, dir))
	d.keep()
}

// keep makes an implied directory explicit that a POSIX operation emptied.
func (d *mnode) keep() { d.explicit = d.explicit || len(d.kids) == 0 }

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
	from.d.keep()
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

// mfile is the file at a key below d, or nil.
func mfile(d *mnode, comps []string) *mnode {
	for _, c := range comps[:len(comps)-1] {
		if d = d.kids[kidKey(c, true)]; d == nil {
			return nil
		}
	}
	return d.kids[comps[len(comps)-1]]
}

// mput is PutObject below d.
func mput(d *mnode, comps []string, body string) {
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
	d.kids[last].body = body
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
	c := &mnode{dir: d.dir, explicit: d.explicit, name: d.name, links: d.links, body: d.body}
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
		shown := path + "/" + naming.Shown(stored, n.dir, d.kids[k+"/"] != nil)
		if n.dir {
			*out = append(*out, shownDir(shown, n.explicit))
			n.dump(shown, ids, out)
		} else {
			*out = append(*out, shownFile(shown, n.links, n.body))
		}
	}
}

// shownDir distinguishes an implied directory from an explicit one: after an unknown
// outcome that is all the difference there may be.
func shownDir(path string, explicit bool) string {
	if explicit {
		return path + "/"
	}
	return path + "/ (implied)"
}

func shownFile(path string, links int, body string) string {
	return fmt.Sprintf("%s nlink=%d %q", path, links, body)
}

// storedBody reads a file's content by its extents.
func storedBody(t *testing.T, fs *FS, ino Ino) string {
	t.Helper()
	var body []byte
	want(t, fs.view(bg, func(r cluster.Reader) error {
		n, err := record.GetInode(r, ino)
		if err != nil {
			return err
		}
		c, err := fs.contents.Open(bg, r, n)
		if err != nil {
			return err
		}
		defer c.Close()
		body, err = io.ReadAll(io.NewSectionReader(c, 0, n.Size))
		return err
	}), nil)
	return string(body)
}

func isExplicit(t *testing.T, fs *FS, dir Ino) (explicit bool) {
	t.Helper()
	want(t, fs.view(bg, func(r cluster.Reader) error {
		n, err := record.GetInode(r, dir)
		explicit = err == nil && n.Has(record.FlagExplicit)
		return err
	}), nil)
	return explicit
}

func dumpFS(t *testing.T, fs *FS, dir Ino, path string, out *[]string) {
	t.Helper()
	err := fs.ReadDir(bg, Root, dir, ReadDirOptions{Attrs: true}, func(e DirEntry) error {
		shown := path + "/" + e.Name
		if e.Attr == nil {
			t.Fatalf("%s has no attributes", shown)
		}
		if e.Mode == ModeDirectory {
			*out = append(*out, shownDir(shown, isExplicit(t, fs, e.Ino)))
			dumpFS(t, fs, e.Ino, shown, out)
			return nil
		}
		*out = append(*out, shownFile(shown, int(e.Attr.Nlink), storedBody(t, fs, e.Ino)))
		return nil
	})
	want(t, err, nil)
}

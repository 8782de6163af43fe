package vfs

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ogw/cluster"
)

// A directory changes while it is read a few entries at a time: what exists
// throughout is shown once, what was removed before the call never, and the
// attributes are those of the moment.
func TestDirStream(t *testing.T) {
	fs := openTest(t, openLocal(t))
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { listChanging(t, fs, fs, seed) })
	}
}

// The same where another gateway changes the directory, as far as that has stored it.
func TestDirStreamBeside(t *testing.T) {
	p := openTwo(t)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { listChanging(t, p.a, p.b, seed) })
	}
}

// listChanging lists by one namespace what is changed by another one of the store, or by itself.
func listChanging(t *testing.T, changer, reader *FS, seed uint64) {
	d := mustMkdir(t, changer, RootIno, fmt.Sprint("bucket", seed))
	c := dirChanger{t: t, fs: changer, reader: reader, dir: d, r: rand.New(rand.NewPCG(seed, 1)), there: map[string]*File{}}
	defer c.close()
	for i := range 700 {
		c.make(fmt.Sprintf("stay%04d", i))
		c.make(fmt.Sprintf("vary%04d", i))
	}
	c.read(reader.OpenDirStream(d))
}

// dirChanger changes a directory and knows what is in it. Names that begin
// with "vary" come and go.
type dirChanger struct {
	t      *testing.T
	fs     *FS
	reader *FS
	dir    Ino
	r      *rand.Rand
	there  map[string]*File // some are open
}

func (c *dirChanger) make(name string) {
	a, _, _, err := c.fs.Create(cluster.Relaxed(bg), Root, c.dir, name, CreateOptions{Mode: 0o644, NoOpen: true})
	want(c.t, err, nil)
	c.there[name] = nil
	if c.r.IntN(100) == 0 {
		f, err := c.fs.Open(bg, Root, a.Ino, OpenWrite)
		want(c.t, err, nil)
		c.there[name] = f
	}
}

func (c *dirChanger) close() {
	for _, f := range c.there {
		if f != nil {
			want(c.t, f.Close(bg), nil)
		}
	}
}

// change does one thing to the directory or to a file in it.
func (c *dirChanger) change() {
	n := c.r.IntN(700)
	vary, stay := fmt.Sprintf("vary%04d", n), fmt.Sprintf("stay%04d", n)
	f, exists := c.there[vary]
	switch op := c.r.IntN(20); { // mostly attributes: a change of names drops the page
	case op == 0 && exists:
		want(c.t, c.fs.Unlink(cluster.Relaxed(bg), Root, c.dir, vary), nil)
		delete(c.there, vary)
		if f != nil {
			want(c.t, f.Close(bg), nil)
		}
	case op == 0:
		c.make(vary)
	case op == 1:
		for _, f := range c.there { // any that is open
			if f != nil {
				_, err := f.WriteAt(bg, []byte("more"), int64(c.r.IntN(100_000)))
				want(c.t, err, nil)
				break
			}
		}
	default:
		a, err := c.fs.Lookup(bg, Root, c.dir, stay)
		want(c.t, err, nil)
		mode := uint32(c.r.IntN(0o1000))
		_, err = c.fs.SetAttr(cluster.Relaxed(bg), Root, a.Ino, SetAttr{Mode: &mode})
		want(c.t, err, nil)
	}
}

// read goes through the stream in pieces, with and without attributes, with
// steps back, and changes something now and then.
func (c *dirChanger) read(s *DirStream) {
	seen := map[string]int{}
	after := ""
	for last := false; !last; {
		for range c.r.IntN(8) {
			c.change()
		}
		attrs, left := c.r.IntN(2) == 0, 1+c.r.IntN(40)
		o := ReadDirOptions{After: after, Attrs: attrs, Few: c.r.IntN(2) * c.r.IntN(80)} // 0: not said
		piece := map[string]bool{}
		last = true
		from := after
		want(c.t, s.Read(cluster.Relaxed(bg), Root, o, func(e *DirEntry) error {
			if left == 0 {
				last = false
				return cluster.ErrStop
			}
			left--
			c.check(e, attrs)
			piece[e.Name], after = true, e.Pos
			return nil
		}), nil)
		if !last && from != "" && c.r.IntN(10) == 0 {
			after = from // as if the reply had been lost
			continue
		}
		for name := range piece {
			seen[name]++
		}
	}
	for name := range c.there {
		if name[0] == 's' && seen[name] != 1 {
			c.t.Errorf("%s was shown %d times", name, seen[name])
		}
	}
}

func (c *dirChanger) check(e *DirEntry, attrs bool) {
	c.t.Helper()
	if _, there := c.there[e.Name]; !there {
		c.t.Errorf("%s was removed before", e.Name)
		return
	}
	if !attrs {
		return
	}
	a, err := c.reader.GetAttr(cluster.Relaxed(bg), e.Ino)
	want(c.t, err, nil)
	if e.Attr == nil || *e.Attr != a {
		c.t.Errorf("%s: attributes %+v, want %+v", e.Name, e.Attr, a)
	}
}

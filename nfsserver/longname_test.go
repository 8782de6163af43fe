package nfsserver

import (
	"strings"
	"testing"

	"ogw/nfsserver/xdr"
)

// TestLongNames has every procedure that takes a name refuse one that no
// entry can have, and take the longest one.
func TestLongNames(t *testing.T) {
	c := newSite(t).mount("/", 0)
	_, file, _ := c.create(c.root, "file", createGuarded, set{})
	longest := strings.Repeat("n", 255)
	for _, x := range []struct {
		name string
		proc uint32
		args func(name string) *xdr.Writer
	}{
		{"CREATE", procCreate, func(n string) *xdr.Writer { return longCreate(c.root, n) }},
		{"LOOKUP", procLookup, func(n string) *xdr.Writer { return diropArgs(c.root, n) }},
		{"REMOVE", procRemove, func(n string) *xdr.Writer { return diropArgs(c.root, n) }},
		{"MKDIR", procMkdir, func(n string) *xdr.Writer {
			w := diropArgs(c.root, n)
			set{}.put(w)
			return w
		}},
		{"RMDIR", procRmdir, func(n string) *xdr.Writer { return diropArgs(c.root, n) }},
		{"SYMLINK", procSymlink, func(n string) *xdr.Writer {
			w := diropArgs(c.root, n)
			set{}.put(w)
			w.String("target")
			return w
		}},
		{"REMOVE", procRemove, func(n string) *xdr.Writer { return diropArgs(c.root, n) }},
		{"MKNOD", procMknod, func(n string) *xdr.Writer {
			w := diropArgs(c.root, n)
			w.Uint32(typeFIFO)
			set{}.put(w)
			return w
		}},
		{"REMOVE", procRemove, func(n string) *xdr.Writer { return diropArgs(c.root, n) }},
		{"LINK", procLink, func(n string) *xdr.Writer {
			w := &xdr.Writer{}
			w.Opaque(file)
			w.B = append(w.B, diropArgs(c.root, n).B...)
			return w
		}},
		{"REMOVE", procRemove, func(n string) *xdr.Writer { return diropArgs(c.root, n) }},
		{"RENAME to", procRename, func(n string) *xdr.Writer {
			w := diropArgs(c.root, "file")
			w.B = append(w.B, diropArgs(c.root, n).B...)
			return w
		}},
		{"RENAME from", procRename, func(n string) *xdr.Writer {
			w := diropArgs(c.root, n)
			w.B = append(w.B, diropArgs(c.root, "file").B...)
			return w
		}},
	} {
		for _, n := range []int{256, 1000, maxNameArg} {
			if st, _ := c.nfs(x.proc, x.args(strings.Repeat("n", n))); st != ErrNameTooLong {
				t.Errorf("%s of a name of %d bytes: %v", x.name, n, st)
			}
		}
		if st, _ := c.nfs(x.proc, x.args(longest)); st != OK {
			t.Errorf("%s of the longest name: %v", x.name, st)
		}
	}
}

func longCreate(dir []byte, name string) *xdr.Writer {
	w := diropArgs(dir, name)
	w.Uint32(createGuarded)
	set{}.put(w)
	return w
}

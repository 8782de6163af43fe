package nfsserver

import (
	"testing"

	"ogw/cluster/mem"
	"ogw/nfsserver/xdr"
)

// TestReplayAfterCrash sends each change again to another process over the
// same store, as a client does that got no answer from the first.
func TestReplayAfterCrash(t *testing.T) {
	first := openSite(t, mem.NewDisk())
	c := first.mount("/", 0)
	_, file, _ := c.create(c.root, "file", createGuarded, set{})
	c.create(c.root, "old", createGuarded, set{})
	c.create(c.root, "gone", createGuarded, set{})
	c.create(c.root, "shut", createGuarded, set{})
	with := func(w *xdr.Writer, put func(*xdr.Writer)) *xdr.Writer { put(w); return w }
	attrs := func(w *xdr.Writer) { set{mode: ptr(uint32(0o700)), uid: ptr(uint32(5))}.put(w) }
	linkTo := &xdr.Writer{}
	linkTo.Opaque(file)
	linkTo.B = append(linkTo.B, diropArgs(c.root, "link").B...)
	move := diropArgs(c.root, "old")
	move.B = append(move.B, diropArgs(c.root, "new").B...)
	type sent struct {
		name string
		proc uint32
		args *xdr.Writer
		xid  uint32
	}
	calls := []sent{
		{"MKDIR", procMkdir, with(diropArgs(c.root, "dir"), attrs), 0},
		{"SYMLINK", procSymlink, with(with(diropArgs(c.root, "sym"), attrs), func(w *xdr.Writer) { w.String("target") }), 0},
		{"MKNOD", procMknod, with(diropArgs(c.root, "fifo"), func(w *xdr.Writer) { w.Uint32(typeFIFO); attrs(w) }), 0},
		{"CREATE", procCreate, with(diropArgs(c.root, "made"), func(w *xdr.Writer) { w.Uint32(createGuarded); attrs(w) }), 0},
		{"LINK", procLink, linkTo, 0},
		{"RENAME", procRename, move, 0},
		{"REMOVE", procRemove, diropArgs(c.root, "gone"), 0},
	}
	answers := map[string]string{}
	for i := range calls {
		st, r := c.nfs(calls[i].proc, calls[i].args)
		if st != OK {
			t.Fatalf("%s: %v", calls[i].name, st)
		}
		calls[i].xid = c.xid
		if calls[i].proc <= procMknod { // an object follows: handle and attributes
			answers[calls[i].name] = string(r.Rest()[:4+4+handleBytes])
		}
	}
	var rm sent
	if st, _ := c.nfs(procRmdir, diropArgs(c.root, "dir")); st != OK {
		t.Fatal(st)
	}
	rm = sent{"RMDIR", procRmdir, diropArgs(c.root, "dir"), c.xid}
	first.stop()

	second := openSite(t, first.disk)
	d := second.mount("/", 0)
	if st, _ := d.nfs(procMkdir, with(diropArgs(d.root, "dir"), attrs)); st != OK {
		t.Fatal(st) // another client's, of the same name
	}
	again := func(s sent) (Status, *xdr.Reader) {
		d.xid = s.xid - 1
		return d.nfs(s.proc, s.args)
	}
	if st, _ := again(rm); st != OK {
		t.Errorf("RMDIR again: %v", st)
	}
	if st, _, _ := d.lookup(d.root, "dir"); st != OK {
		t.Errorf("the repeated RMDIR removed another's directory: %v", st)
	}
	for _, s := range calls[1:] {
		st, r := again(s)
		if st != OK {
			t.Errorf("%s again: %v", s.name, st)
		} else if want := answers[s.name]; want != "" && string(r.Rest()[:len(want)]) != want {
			t.Errorf("%s again: another answer", s.name)
		}
	}
	// With another transaction number they are requests of their own.
	for i, want := range []Status{ErrExist, ErrExist, ErrExist, ErrExist, ErrExist, ErrNoEnt, ErrNoEnt} {
		d.xid = 900_000_000 + uint32(i)
		if st, _ := d.nfs(calls[i].proc, calls[i].args); st != want {
			t.Errorf("%s by another request: %v, want %v", calls[i].name, st, want)
		}
	}
}

package nfsserver

import (
	"bytes"
	"testing"

	"ogw/nfsserver/xdr"
)

// TestBadHandlesOfEveryProcedure: forged, truncated, foreign and removed
// handles are refused by each procedure, in either place of RENAME and LINK,
// and nothing is changed.
func TestBadHandlesOfEveryProcedure(t *testing.T) {
	s, other := newSite(t), newSite(t)
	c := s.mount("/", 0)
	_, dir, _ := c.mkdir(c.root, "dir", set{})
	_, gone, _ := c.mkdir(c.root, "gone", set{})
	c.must("rmdir", c.unlink(procRmdir, c.root, "gone"))
	_, file, _ := c.create(dir, "file", createGuarded, set{})
	forged := bytes.Clone(dir)
	forged[len(forged)-1]++
	bad := []struct {
		name string
		fh   []byte
		want Status
	}{
		{"empty", nil, ErrBadHandle},
		{"forged", forged, ErrBadHandle},
		{"truncated", dir[:len(dir)-1], ErrBadHandle},
		{"too long", append(bytes.Clone(dir), 0, 0, 0, 0), ErrBadHandle},
		{"of another file system", other.mount("/", 0).root, ErrStale},
		{"removed", gone, ErrStale},
	}
	opaque := func(fh []byte) *xdr.Writer { w := &xdr.Writer{}; w.Opaque(fh); return w }
	make3 := func(fh []byte, rest ...uint32) *xdr.Writer { // a name, words, attributes
		w := diropArgs(fh, "new")
		for _, v := range rest {
			w.Uint32(v)
		}
		set{}.put(w)
		return w
	}
	listing := func(fh []byte) *xdr.Writer {
		w := opaque(fh)
		w.Uint64(0)
		w.Uint64(0)
		w.Uint32(4096)
		w.Uint32(4096)
		return w
	}
	two := func(first, second *xdr.Writer) *xdr.Writer {
		first.B = append(first.B, second.B...)
		return first
	}
	tried := map[uint32]bool{procNull: true} // which has no handle
	for _, x := range []struct {
		proc uint32
		args func(fh []byte) *xdr.Writer
	}{
		{procGetattr, opaque},
		{procSetattr, func(fh []byte) *xdr.Writer {
			w := opaque(fh)
			set{mode: ptr(uint32(0o600))}.put(w)
			w.Uint32(0)
			return w
		}},
		{procLookup, func(fh []byte) *xdr.Writer { return diropArgs(fh, "file") }},
		{procAccess, func(fh []byte) *xdr.Writer { w := opaque(fh); w.Uint32(1); return w }},
		{procReadlink, opaque},
		{procRead, func(fh []byte) *xdr.Writer { return readArgs(fh, 0, 10) }},
		{procWrite, func(fh []byte) *xdr.Writer { return writeArgs(fh, 0, fileSync, []byte("data")) }},
		{procCreate, func(fh []byte) *xdr.Writer { return make3(fh, createGuarded) }},
		{procMkdir, func(fh []byte) *xdr.Writer { return make3(fh) }},
		{procSymlink, func(fh []byte) *xdr.Writer { w := make3(fh); w.String("target"); return w }},
		{procMknod, func(fh []byte) *xdr.Writer { return make3(fh, typeFIFO) }},
		{procRemove, func(fh []byte) *xdr.Writer { return diropArgs(fh, "file") }},
		{procRmdir, func(fh []byte) *xdr.Writer { return diropArgs(fh, "dir") }},
		{procRename, func(fh []byte) *xdr.Writer { return two(diropArgs(fh, "file"), diropArgs(dir, "new")) }},
		{procRename, func(fh []byte) *xdr.Writer { return two(diropArgs(dir, "file"), diropArgs(fh, "new")) }},
		{procLink, func(fh []byte) *xdr.Writer { return two(opaque(fh), diropArgs(dir, "new")) }},
		{procLink, func(fh []byte) *xdr.Writer { return two(opaque(file), diropArgs(fh, "new")) }},
		{procReaddir, listing},
		{procReaddirplus, listing},
		{procFsstat, opaque},
		{procFsinfo, opaque},
		{procPathconf, opaque},
		{procCommit, func(fh []byte) *xdr.Writer { w := opaque(fh); w.Uint64(0); w.Uint32(0); return w }},
	} {
		tried[x.proc] = true
		for _, b := range bad {
			if st, _ := c.nfs(x.proc, x.args(b.fh)); st != b.want {
				t.Errorf("%s with a handle that is %s: %v, want %v", nfsNames[x.proc], b.name, st, b.want)
			}
		}
	}
	for proc, name := range nfsNames {
		if !tried[uint32(proc)] {
			t.Errorf("%s is not tried", name)
		}
	}
	if list := c.list(dir, 4096, false); len(list) != 1 || list[0].name != "file" {
		t.Errorf("the directory holds %v", list)
	}
}

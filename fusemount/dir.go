package fusemount

import (
	"context"
	"errors"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/fusemount/ledger"
	"ogw/vfs"
)

// OpenDir begins a listing. Where the kernel keeps names, and is notified before they are
// others, it need not open directories at all: it asks no more once it is told so.
func (f *rawFS) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if f.unopened && f.primary.Load() {
		return fuse.ENOSYS
	}
	ino := f.ino(in.NodeId)
	if fh, done := f.surv.opened(&in.InHeader); done {
		out.Fh = fh
		return fuse.OK
	}
	fh, err := f.dirs.add(&dirHandle{ino: ino, from: f.fs.OpenDirStream(ino)}, uint64(ino), 0, in.Unique&^resentBit)
	out.Fh = fh
	return f.status("opendir", &in.InHeader, err)
}

// ReleaseDir ends a listing.
func (f *rawFS) ReleaseDir(in *fuse.ReleaseIn) {
	if f.dirs.remove(in.Fh) != nil {
		f.dirs.forget(in.Fh)
	}
}

// FsyncDir makes changes of names durable.
func (f *rawFS) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	return f.status("fsyncdir", &in.InHeader, f.fs.SyncInode(ctx, f.ino(in.NodeId)))
}

// ReadDir lists names.
func (f *rawFS) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.readDir(cancel, in, out, false)
}

// ReadDirPlus lists names with attributes, which the kernel keeps as if it
// had looked them up.
func (f *rawFS) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.readDir(cancel, in, out, true)
}

func (f *rawFS) readDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList, plus bool) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	r := dirReader{f: f, ctx: ctx, in: in, out: out, plus: plus}
	d := f.dirs.get(in.Fh)
	switch {
	case d != nil && d.from != nil:
		d.reads.Lock()
		defer d.reads.Unlock()
		r.ino, r.numbers, r.fh = d.ino, &d.numbers, in.Fh
		r.stream = func(string) *vfs.DirStream { return d.from }
		return r.list()
	case d == nil && in.Fh != 0:
		return fuse.EBADF
	}
	l := f.listings.begin(f.ino(in.NodeId))
	defer func() {
		some := len(out.Bytes()) > 0
		f.listings.end(l, (in.Offset == 0 || r.unknown) && some, in.Offset != 0 && !some)
	}()
	r.ino, r.numbers = l.ino, &l.numbers
	var from *vfs.DirStream
	r.stream = func(after string) *vfs.DirStream {
		if from = f.listings.take(l.ino, after); from == nil {
			from = f.fs.OpenDirStream(l.ino)
		}
		return from
	}
	s := r.list()
	if r.more {
		f.listings.put(l.ino, from)
	}
	return s
}

// dirReader is one READDIR.
type dirReader struct {
	f    *rawFS
	ctx  context.Context
	in   *fuse.ReadIn
	out  *fuse.DirEntryList
	plus bool

	ino     vfs.Ino
	numbers *numbers
	fh      uint64                            // that has numbers of its own, or 0
	ctime   int64                             // of the directory, if the listing begins with this READDIR
	stream  func(after string) *vfs.DirStream // called once
	more    bool                              // entries follow those that were added
	unknown bool                              // it is not remembered where the reader was
}

func (r *dirReader) list() fuse.Status {
	f, h := r.f, &r.in.InHeader
	added := false
	at := f.moment()
	prev := r.in.Offset
	if prev == 0 {
		prev = r.numbers.begin(f.fs.Changes(r.ino))
	}
	var err error
	after, known := r.numbers.position(prev)
	from := r.stream(after)
	if r.unknown = !known; r.unknown {
		after, prev, err = r.findPosition(from, prev)
	}
	if err == nil && indexOf(prev) < offDotDot {
		err = r.addDots(prev)
		prev = atIndex(prev, offDotDot)
	}
	if err == nil {
		o := vfs.ReadDirOptions{After: after, Attrs: r.plus, Few: r.most()}
		err = from.Read(r.ctx, cred(h), o, func(e *vfs.DirEntry) error {
			off := r.numbers.number(prev, e.Pos)
			if !f.addEntry(e, off, r.out, r.plus, at) {
				r.more = true
				return cluster.ErrStop
			}
			prev, added = off, true
			return nil
		})
	}
	if err == nil {
		r.note(prev, added || r.more)
	}
	if r.in.Offset == 0 && r.in.Flags&unix.O_NOATIME == 0 && !f.quietDirs.Load() {
		f.fs.Accessed(r.ctx, r.ino)
	}
	switch {
	case errors.Is(err, cluster.ErrStop), added:
		// The kernel knows what was added from now on: an error has to come
		// with the next request.
		return fuse.OK
	case errors.Is(err, vfs.ErrStale):
		return enoent
	}
	return f.status("readdir", h, err)
}

// note writes down that the listing began, goes on or ends at offset, before the kernel is answered.
func (r *dirReader) note(offset uint64, some bool) {
	if !some && r.in.Offset != 0 {
		r.numbers.end(offset)
	}
	r.f.surv.listing(r.listing(r.fh, offset), r.ctime, some)
}

// listing names the listing that an offset is of, for the next server.
func (r *dirReader) listing(fh, offset uint64) ledger.Listing {
	return ledger.Listing{Ino: uint64(r.ino), FH: fh, Pass: passOf(offset)}
}

// Bytes of an entry whose name is short: struct fuse_dirent with 8 bytes for the name, and
// struct fuse_entry_out before it.
const (
	minDirent     = 24 + 8
	minDirentPlus = 128 + minDirent
)

// most is how many entries fit in what is left of the reply, if their names are short.
func (r *dirReader) most() int {
	left, size := int(r.in.Size)-len(r.out.Bytes()), minDirent
	if r.plus {
		size = minDirentPlus
	}
	return left/size + 1 // one shows that it is full
}

// findPosition returns where a listing goes on behind offset if that is not remembered: it is of the server
// before, or was forgotten; and the offset from which on its entries are numbered.
//
// It counts entries if the directory is as it was when the listing began. Else the reader may have removed some
// that it read, and those that stay in their place would be skipped: the listing starts over. Entries
// come twice rather than never.
func (r *dirReader) findPosition(from *vfs.DirStream, offset uint64) (after string, prev uint64, err error) {
	f := r.f
	a, err := f.fs.GetAttr(r.ctx, r.ino) // comes before: a change meanwhile is one that is concurrent
	if err != nil {
		return "", 0, err
	}
	if !r.unchanged(offset, a.CtimeNS) {
		// The kernel may have the same entries from before, and would keep both.
		f.inv.later(func() { f.listings.drop(r.ino) })
		r.ctime = a.CtimeNS
		return "", r.numbers.over(), nil
	}
	i := offDotDot
	o := vfs.ReadDirOptions{Few: int(indexOf(offset)-offDotDot) + 1} // one that shows that it is found
	err = from.Read(r.ctx, cred(&r.in.InHeader), o, func(e *vfs.DirEntry) error {
		if i >= indexOf(offset) {
			return cluster.ErrStop
		}
		i, after = i+1, e.Pos
		return nil
	})
	if errors.Is(err, cluster.ErrStop) {
		err = nil
	}
	return after, offset, err // at the end, nothing follows
}

// unchanged reports whether a directory that has a change time, which comes only once, had it when the listing of
// an offset began, or changed longer ago than readers are waited for.
func (r *dirReader) unchanged(offset uint64, ctime int64) bool {
	for _, fh := range [...]uint64{r.in.Fh, 0} {
		if began, known := r.f.surv.listingBegan(r.listing(fh, offset)); known {
			return began == ctime
		}
	}
	return time.Since(time.Unix(0, ctime)) >= readerIdle
}

// addDots lists "." and "..".
func (r *dirReader) addDots(offset uint64) error {
	a, err := r.f.fs.GetAttr(r.ctx, r.ino)
	if err != nil {
		return err
	}
	if offset == atIndex(offset, 0) {
		r.ctime = a.CtimeNS // before any entry is read
	}
	parent := a.Parent
	if r.ino == r.f.opt.Root {
		parent = r.ino
	}
	for _, e := range [...]fuse.DirEntry{
		{Name: ".", Ino: uint64(r.ino), Mode: vfs.ModeDirectory, Off: atIndex(offset, offDot)},
		{Name: "..", Ino: uint64(parent), Mode: vfs.ModeDirectory, Off: atIndex(offset, offDotDot)},
	} {
		if e.Off <= offset {
			continue
		}
		if r.plus {
			if r.out.AddDirLookupEntry(e) == nil {
				return cluster.ErrStop
			}
		} else if !r.out.AddDirEntry(e) {
			return cluster.ErrStop
		}
	}
	return nil
}

func (f *rawFS) addEntry(e *vfs.DirEntry, off uint64, out *fuse.DirEntryList, plus bool, at moment) bool {
	de := fuse.DirEntry{Name: e.Name, Ino: uint64(e.Ino), Mode: e.Mode, Off: off}
	if !plus {
		return out.AddDirEntry(de)
	}
	entry := out.AddDirLookupEntry(de)
	if entry == nil {
		return false
	}
	// With node 0, the kernel looks the name up when it needs it.
	if e.Attr != nil && f.fillEntry(e.Attr, entry, at) != nil {
		*entry = fuse.EntryOut{}
	}
	return true
}

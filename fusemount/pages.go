package fusemount

import (
	"math"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/vfs"
)

// pageVersions records what the kernel has of files: which version its pages show at
// least, and what size it knows. It is kept only where other processes may change files
// unseen; else both are always right, since every change is notified.
//
// Pages that are read after an open show its version or a later one. So if the next open
// finds that version, they are what is stored; if not, the kernel drops them. Between
// opens, the kernel asks for attributes before each read, and drops pages if size or time
// of change are others. That is not enough: it ignores the answer if another one, which may be
// older, or a write ended meanwhile, and times can be set. So pages of an older version are
// dropped by notification before that answer, and a size that was not told last is asked for
// once more: see renewPages. After that the kernel ignores whatever it asked for before.
type pageVersions struct {
	on     bool
	renews bool // attributes that are answered renew pages (renewPages)
	mu     sync.Mutex
	files  map[vfs.Ino]*pageVersion
}

// pageVersion is what the kernel has of a file.
type pageVersion struct {
	others  uint64        // vfs.Attr.Others of a version that all pages show at least; what is written here drops its own
	size    int64         // that it was told last; -1: it may be another one
	telling int           // how many are making it ask for one, in whose answers it is not told again
	told    chan struct{} // closed when these are none any more
}

func (p *pageVersions) init(shared bool) {
	p.on, p.renews = shared, shared
	p.files = make(map[vfs.Ino]*pageVersion)
}

// opened decides whether the kernel keeps its pages over an open.
func (p *pageVersions) opened(a *vfs.Attr, out *fuse.OpenOut) {
	if !p.on {
		out.OpenFlags |= fuse.FOPEN_KEEP_CACHE
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.files[a.Ino]
	switch {
	case v == nil:
		p.files[a.Ino] = &pageVersion{others: a.Others, size: a.Size}
	case v.others == a.Others:
		out.OpenFlags |= fuse.FOPEN_KEEP_CACHE
	case !p.renews:
		v.others = a.Others
	default: // the kernel may read before it has this answer, and need not use it: see compare
	}
}

// doubt has the next open, or answer with attributes, drop pages.
func (p *pageVersions) doubt(ino vfs.Ino) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.files[ino]
	if v == nil {
		v = new(pageVersion)
		p.files[ino] = v
	}
	v.others, v.size = math.MaxUint64, -1
}

// distrust has opens drop the pages that the kernel has of files from before.
func (p *pageVersions) distrust() { p.on = true }

// told notes that the kernel is told a, but may take another answer.
func (p *pageVersions) told(a *vfs.Attr) {
	p.with(a.Ino, func(v *pageVersion) {
		if v.size != a.Size {
			v.size = -1
		}
	})
}

// shows reports whether the kernel's pages show a, or later versions: while it keeps attributes it reads what
// it has. With them it takes the size.
func (p *pageVersions) shows(a *vfs.Attr) (current bool) {
	current = true
	p.with(a.Ino, func(v *pageVersion) { current = v.others == a.Others })
	return current
}

// endsAt notes that a READ is answered by less than was asked for: the kernel may take that for the size.
func (p *pageVersions) endsAt(ino vfs.Ino, end int64) {
	p.with(ino, func(v *pageVersion) {
		if end < v.size {
			v.size = -1
		}
	})
}

// wrote notes that the kernel takes a file that it wrote to for as large.
func (p *pageVersions) wrote(ino vfs.Ino, end int64) {
	p.with(ino, func(v *pageVersion) {
		if v.size >= 0 {
			v.size = max(v.size, end)
		}
	})
}

// compare returns what is to be done before the kernel is told of a: whether pages may be
// older, and, if it may know another size, or be told one by an answer on its way, what follows once it is
// made to ask for that (telling). If others are at that, wait is closed when they are done: the kernel may
// ignore a until then.
func (p *pageVersions) compare(a *vfs.Attr) (drop bool, told func(size int64), wait <-chan struct{}) {
	p.with(a.Ino, func(v *pageVersion) {
		switch drop = v.others != a.Others; {
		case v.telling > 0:
			if wait = v.told; v.size != a.Size {
				v.size = -1
			}
		case v.size != a.Size:
			v.size = a.Size
			told = p.tell(v)
		}
	})
	return drop, told, wait
}

// dropped notes that pages which are there show a, or later versions.
func (p *pageVersions) dropped(a *vfs.Attr) {
	p.with(a.Ino, func(v *pageVersion) { v.others = a.Others })
}

// telling notes that the kernel is made to ask for a size, until told is called with the one that it has; -1: it
// is not known.
func (p *pageVersions) telling(ino vfs.Ino) (told func(size int64)) {
	told = func(int64) {}
	p.with(ino, func(v *pageVersion) { told = p.tell(v) })
	return told
}

// tell is telling of v. Under mu.
func (p *pageVersions) tell(v *pageVersion) (told func(size int64)) {
	if v.telling++; v.telling == 1 {
		v.told = make(chan struct{})
	}
	return func(size int64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if v.size != size { // it was answered another one meanwhile
			v.size = -1
		}
		if v.telling--; v.telling == 0 {
			close(v.told)
		}
	}
}

func (p *pageVersions) with(ino vfs.Ino, fn func(v *pageVersion)) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if v := p.files[ino]; v != nil {
		fn(v)
	}
}

// forget is for what the kernel has forgotten, its pages included.
func (p *pageVersions) forget(ino vfs.Ino) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.files, ino)
}

// forgetWritten is for pages of a handle whose writes went through them: another process
// may have written to the same since.
func (f *rawFS) forgetWritten(h *fileHandle) {
	if !h.direct {
		f.doubt(h.ino)
	}
}

// doubt has the next open, or read, of a file drop pages.
func (f *rawFS) doubt(ino vfs.Ino) {
	f.pages.doubt(ino)
	f.dropAttr(ino)
}

// dropAttr has the kernel ask for attributes, where it keeps some without being notified of changes.
func (f *rawFS) dropAttr(ino vfs.Ino) {
	if node, ok := f.node(ino); ok && f.beside {
		f.inv.report(f.conn.dropAttr(node), "attributes", ino)
	}
}

// renewPages comes before a is answered, which is as new as the request. reads reports whether it is for
// somebody who then reads, up to the size that the kernel knows: the one who makes it ask is none.
func (f *rawFS) renewPages(h *fuse.InHeader, a *vfs.Attr, reads bool) {
	if !f.beside || !a.IsRegular() {
		return
	}
	drop, told, wait := f.pages.compare(a)
	if told != nil && !f.sizes.open(a.Ino) { // nobody reads
		told(-1)
		told = nil
	}
	if drop || told != nil || reads && wait != nil {
		f.mayNotify(h)
	}
	if drop && f.inv.inTime(func() { f.inv.inode(a.Ino, true) }) {
		f.pages.dropped(a)
	} else if drop { // who reads may see what was before; the next one does not
		f.opt.Logger.Warn("content that another gateway changed is told late", "inode", a.Ino, "wait", tellWait)
	}
	if reads && wait != nil {
		told = f.awaitTold(a, wait)
	}
	if told != nil {
		size := int64(-1)
		defer func() { told(size) }()
		f.dropAttr(a.Ino) // an answer on its way may have another size than the kernel has, and a, again
		size = f.sizes.tell(a.Ino)
	}
}

// awaitTold waits until nobody makes the kernel ask for the size, and returns what compare does then.
func (f *rawFS) awaitTold(a *vfs.Attr, wait <-chan struct{}) (told func(size int64)) {
	late := time.NewTimer(tellWait)
	defer late.Stop()
	for wait != nil {
		select {
		case <-wait:
			_, told, wait = f.pages.compare(a)
		case <-f.inv.done:
			return nil
		case <-late.C:
			return nil
		}
	}
	return told
}

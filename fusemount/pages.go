package fusemount

import (
	"math"
	"sync"

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
// once more: see renewPages.
type pageVersions struct {
	on     bool
	renews bool // attributes that are answered renew pages (renewPages)
	mu     sync.Mutex
	files  map[vfs.Ino]*pageVersion
}

// pageVersion is what the kernel has of a file.
type pageVersion struct {
	others  uint64 // vfs.Attr.Others of a version that all pages show at least; what is written here drops its own
	size    int64  // that it was told last
	telling int    // how many are making it ask for one, in whose answers it is not told again
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

// told notes a size that the kernel is told.
func (p *pageVersions) told(a *vfs.Attr) {
	p.with(a.Ino, func(v *pageVersion) { v.size = a.Size })
}

// wrote notes that the kernel takes a file that it wrote to for as large.
func (p *pageVersions) wrote(ino vfs.Ino, end int64) {
	p.with(ino, func(v *pageVersion) { v.size = max(v.size, end) })
}

// compare returns what is to be done before the kernel is told of a: whether pages may be
// older, and whether it may know, or be told by an answer on its way, another size.
func (p *pageVersions) compare(a *vfs.Attr) (drop, tell bool) {
	p.with(a.Ino, func(v *pageVersion) {
		drop, tell = v.others != a.Others, v.size != a.Size && v.telling == 0
		v.size = a.Size
	})
	return drop, tell
}

// dropped notes that pages which are there show a, or later versions.
func (p *pageVersions) dropped(a *vfs.Attr) {
	p.with(a.Ino, func(v *pageVersion) { v.others = a.Others })
}

// telling notes that the kernel is made to ask for a size, until ended is called.
func (p *pageVersions) telling(ino vfs.Ino) (ended func()) {
	ended = func() {}
	p.with(ino, func(v *pageVersion) {
		v.telling++
		ended = func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			v.telling--
		}
	})
	return ended
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
		f.pages.doubt(h.ino)
	}
}

// renewPages comes before a is answered, which is as new as the request.
func (f *rawFS) renewPages(h *fuse.InHeader, a *vfs.Attr) {
	if !f.beside || !a.IsRegular() {
		return
	}
	drop, tell := f.pages.compare(a)
	if drop || tell {
		f.mayWait(h)
		if f.pauses != nil {
			f.pauses(h.Unique)
		}
	}
	if drop && f.inv.inTime(func() { f.inv.inode(a.Ino, true) }) {
		f.pages.dropped(a)
	} else if drop { // who reads may see what was before; the next one does not
		f.opt.Logger.Warn("content that another gateway changed is told late", "inode", a.Ino, "wait", tellWait)
	}
	if tell {
		f.sizes.tell(a.Ino)
	}
}

package fusemount

import (
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/vfs"
)

// pageVersions records which version of a content the kernel's pages show. It
// is kept only where other processes may change files unseen; else pages are
// always right, since every change invalidates them.
type pageVersions struct {
	on       bool
	mu       sync.Mutex
	versions map[vfs.Ino]uint64
}

func (p *pageVersions) init(shared bool) {
	p.on = shared
	p.versions = make(map[vfs.Ino]uint64)
}

// opened decides whether the kernel keeps its pages over an open.
func (p *pageVersions) opened(a *vfs.Attr, out *fuse.OpenOut) {
	if !p.on {
		out.OpenFlags |= fuse.FOPEN_KEEP_CACHE
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, ok := p.versions[a.Ino]; ok && v == a.Version {
		out.OpenFlags |= fuse.FOPEN_KEEP_CACHE
	}
	p.versions[a.Ino] = a.Version
}

// distrust has opens drop the pages that the kernel has of files from before.
func (p *pageVersions) distrust() { p.on = true }

// wrote forgets what is known of a file that was written: another process
// may have written it as well since.
func (p *pageVersions) wrote(ino vfs.Ino) { p.forget(ino) }

func (p *pageVersions) forget(ino vfs.Ino) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.versions, ino)
}

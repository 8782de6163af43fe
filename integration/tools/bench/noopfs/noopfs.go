// Package noopfs is a FUSE file system without a store: the limit that a
// FUSE door can reach on this machine. It keeps names and attributes in maps;
// what is written is counted and dropped, what is read is zeros.
package noopfs

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// timeout of names and attributes in the kernel, as the ogw mount has it.
const timeout = time.Minute

const maxRequestBytes = 1 << 20

type node struct {
	id       uint64
	mode     uint32
	size     uint64
	mtime    time.Time
	children map[string]*node
	order    []*entry // of a directory, for listing
}

type entry struct {
	name string
	node *node // nil: removed
}

// FS is the file system.
type FS struct {
	fuse.RawFileSystem
	mu    sync.RWMutex
	nodes map[uint64]*node
	index map[*node]map[string]*entry
	next  uint64
	zeros []byte
}

// Mount serves an empty file system on dir. The caller unmounts it.
func Mount(dir string) (*fuse.Server, error) {
	root := &node{id: fuse.FUSE_ROOT_ID, mode: syscall.S_IFDIR | 0o777, children: map[string]*node{}, mtime: time.Now()}
	fs := &FS{RawFileSystem: fuse.NewDefaultRawFileSystem(), nodes: map[uint64]*node{root.id: root},
		index: map[*node]map[string]*entry{root: {}}, next: root.id, zeros: make([]byte, maxRequestBytes)}
	s, err := fuse.NewServer(fs, dir, &fuse.MountOptions{
		FsName: "noop", Name: "noop", Options: []string{"default_permissions"}, AllowOther: true,
		MaxWrite: maxRequestBytes, MaxBackground: 64, DirectMountStrict: true, DisableSplice: true,
		ExplicitDataCacheControl: true,
		ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_ASYNC_DIO | fuse.CAP_HANDLE_KILLPRIV_V2 |
			fuse.CAP_READDIRPLUS_AUTO,
	})
	if err != nil {
		return nil, fmt.Errorf("mount the no-op file system: %w", err)
	}
	go s.Serve()
	return s, s.WaitMount()
}

func (f *FS) attr(n *node, out *fuse.Attr) {
	out.Ino, out.Mode, out.Size, out.Nlink, out.Blksize = n.id, n.mode, n.size, 1, 64<<10
	out.Blocks = (n.size + 511) / 512
	out.Mtime, out.Mtimensec = uint64(n.mtime.Unix()), uint32(n.mtime.Nanosecond())
	out.Atime, out.Atimensec, out.Ctime, out.Ctimensec = out.Mtime, out.Mtimensec, out.Mtime, out.Mtimensec
}

func (f *FS) entry(n *node, out *fuse.EntryOut) {
	out.NodeId, out.Generation = n.id, 1
	f.attr(n, &out.Attr)
	out.SetEntryTimeout(timeout)
	out.SetAttrTimeout(timeout)
}

// Lookup finds a name.
func (f *FS) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if dir := f.nodes[h.NodeId]; dir != nil {
		if n := dir.children[name]; n != nil {
			f.entry(n, out)
			return fuse.OK
		}
	}
	out.SetEntryTimeout(timeout)
	return fuse.OK
}

// Forget does nothing: nodes live until they are removed.
func (f *FS) Forget(_, _ uint64) {}

// GetAttr is stat.
func (f *FS) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n := f.nodes[in.NodeId]
	if n == nil {
		return fuse.Status(syscall.ESTALE)
	}
	f.attr(n, &out.Attr)
	out.SetTimeout(timeout)
	return fuse.OK
}

// SetAttr changes mode and size.
func (f *FS) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[in.NodeId]
	if n == nil {
		return fuse.Status(syscall.ESTALE)
	}
	if size, ok := in.GetSize(); ok {
		n.size = size
	}
	if mode, ok := in.GetMode(); ok {
		n.mode = n.mode&syscall.S_IFMT | mode
	}
	f.attr(n, &out.Attr)
	out.SetTimeout(timeout)
	return fuse.OK
}

func (f *FS) add(dir uint64, name string, mode uint32) *node {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.nodes[dir]
	if d == nil {
		return nil
	}
	f.next++
	n := &node{id: f.next, mode: mode, mtime: time.Now()}
	if mode&syscall.S_IFMT == syscall.S_IFDIR {
		n.children = map[string]*node{}
		f.index[n] = map[string]*entry{}
	}
	e := &entry{name, n}
	d.children[name], f.index[d][name], f.nodes[n.id] = n, e, n
	d.order = append(d.order, e)
	return n
}

// Mkdir makes a directory.
func (f *FS) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	n := f.add(in.NodeId, name, syscall.S_IFDIR|in.Mode)
	if n == nil {
		return fuse.Status(syscall.ESTALE)
	}
	f.entry(n, out)
	return fuse.OK
}

// Create makes a file.
func (f *FS) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	n := f.add(in.NodeId, name, syscall.S_IFREG|in.Mode)
	if n == nil {
		return fuse.Status(syscall.ESTALE)
	}
	f.entry(n, &out.EntryOut)
	out.OpenFlags, out.Fh = fuse.FOPEN_KEEP_CACHE, n.id
	return fuse.OK
}

func (f *FS) remove(dir uint64, name string) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.nodes[dir]
	if d == nil || d.children[name] == nil {
		return fuse.ENOENT
	}
	delete(f.nodes, d.children[name].id)
	delete(f.index, d.children[name])
	delete(d.children, name)
	f.index[d][name].node = nil
	delete(f.index[d], name)
	if len(d.children) == 0 {
		d.order = nil
	}
	return fuse.OK
}

// Unlink removes a file.
func (f *FS) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return f.remove(h.NodeId, name)
}

// Rmdir removes a directory.
func (f *FS) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return f.remove(h.NodeId, name)
}

// Open opens a file.
func (f *FS) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[in.NodeId]
	if n == nil {
		return fuse.Status(syscall.ESTALE)
	}
	if in.Flags&syscall.O_TRUNC != 0 {
		n.size = 0
	}
	out.OpenFlags, out.Fh = fuse.FOPEN_KEEP_CACHE, n.id
	return fuse.OK
}

// Read gives zeros.
func (f *FS) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n := f.nodes[in.NodeId]
	if n == nil || in.Offset >= n.size {
		return fuse.ReadResultData(nil), fuse.OK
	}
	want := min(uint64(len(buf)), n.size-in.Offset)
	copy(buf[:want], f.zeros) // any store must put the bytes there
	return fuse.ReadResultData(buf[:want]), fuse.OK
}

// Write counts.
func (f *FS) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes[in.NodeId]; n != nil {
		n.size = max(n.size, in.Offset+uint64(len(data)))
	}
	return uint32(len(data)), fuse.OK
}

// Flush, Fsync and Release have nothing to do.
func (f *FS) Flush(_ <-chan struct{}, _ *fuse.FlushIn) fuse.Status { return fuse.OK }

// Fsync has nothing to make durable.
func (f *FS) Fsync(_ <-chan struct{}, _ *fuse.FsyncIn) fuse.Status { return fuse.OK }

// Release has nothing to close.
func (f *FS) Release(_ <-chan struct{}, _ *fuse.ReleaseIn) {}

// OpenDir opens a directory.
func (f *FS) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	out.Fh = in.NodeId
	return fuse.OK
}

// ReleaseDir has nothing to close.
func (f *FS) ReleaseDir(_ *fuse.ReleaseIn) {}

// ReadDir lists names.
func (f *FS) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.list(in, func(e fuse.DirEntry, _ *node) bool { return out.AddDirEntry(e) })
}

// ReadDirPlus lists names with attributes.
func (f *FS) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.list(in, func(e fuse.DirEntry, n *node) bool {
		o := out.AddDirLookupEntry(e)
		if o != nil {
			f.entry(n, o)
		}
		return o != nil
	})
}

func (f *FS) list(in *fuse.ReadIn, add func(fuse.DirEntry, *node) bool) fuse.Status {
	f.mu.RLock()
	defer f.mu.RUnlock()
	d := f.nodes[in.NodeId]
	if d == nil {
		return fuse.ENOENT
	}
	for i := in.Offset; i < uint64(len(d.order)); i++ {
		e := d.order[i]
		if e.node != nil && !add(fuse.DirEntry{Name: e.name, Ino: e.node.id, Mode: e.node.mode, Off: i + 1}, e.node) {
			return fuse.OK
		}
	}
	return fuse.OK
}

// GetXAttr knows no attributes.
func (f *FS) GetXAttr(_ <-chan struct{}, _ *fuse.InHeader, _ string, _ []byte) (uint32, fuse.Status) {
	return 0, fuse.ENODATA
}

// StatFs returns the size of nothing.
func (f *FS) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.NameLen = 4096, 255
	return fuse.OK
}

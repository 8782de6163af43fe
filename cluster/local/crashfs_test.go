package local

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster/local/internal/fileio"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// crashFS is a file system in memory that knows what a power cut may leave.
// It serves both halves of a store: Pebble (vfs.FS) and the data (disk).
//
// Of what was not synced, a clone keeps a random choice of the sectors of every
// file, which drops, reorders and tears, and of every directory a random
// number of its changes, the oldest first: journaling file systems keep that
// order, and Pebble needs it (the marker of a manifest must not outlive the
// manifest). A rename is one change. Pages are shared between clones and
// copied when they are written, so that a clone costs little.
type crashFS struct {
	mu      sync.Mutex
	names   map[string]*crashNode // as seen now
	durable map[string]*crashNode // as synced
	pending []nameChange          // from durable to names, in order

	// before is called, with mu held, before every call but the harmless
	// ones. It may fail the call: of a read or write, n bytes are done then.
	before func(c *fsCall) (n int, err error)
}

// fsCall is what before learns of a call.
type fsCall struct {
	kind  fsCallKind
	path  string
	bytes int
}

type fsCallKind string

const (
	callRead   fsCallKind = "read"
	callOpen   fsCallKind = "open"
	callWrite  fsCallKind = "write"
	callSync   fsCallKind = "sync"
	callCreate fsCallKind = "create"
	callRename fsCallKind = "rename"
	callRemove fsCallKind = "remove"
	callMkdir  fsCallKind = "mkdir"
	callExtend fsCallKind = "allocate"
)

func (k fsCallKind) mutates() bool { return k != callRead && k != callOpen }

const (
	crashSector  = 512
	crashSectors = fileio.PageBytes / crashSector
)

type crashPage struct {
	data  [fileio.PageBytes]byte
	owner uint64 // token of the node that may write it in place
}

var crashTokens atomic.Uint64

// crashNode is a file or a directory.
type crashNode struct {
	dir      bool
	token    uint64
	pages    []*crashPage // nil: zeros
	size     int64
	synced   []*crashPage
	syncSize int64
	dirty    map[int]byte // sectors of a page, a bit each
	modified time.Time
}

func newCrashNode(dir bool) *crashNode {
	return &crashNode{dir: dir, token: crashTokens.Add(1), modified: time.Now()}
}

// nameChange is one change of a directory; from is "" for a creation, to is
// "" for a removal.
type nameChange struct {
	from, to string
	node     *crashNode
}

func (c *nameChange) apply(names map[string]*crashNode) {
	if c.from != "" && names[c.from] == c.node {
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.node
	}
}

// folder is where the change is: nobody here renames from one to another.
func (c *nameChange) folder() string {
	if c.from != "" {
		return filepath.Dir(c.from)
	}
	return filepath.Dir(c.to)
}

// newCrashFS holds the empty folder /store.
func newCrashFS() *crashFS {
	root := newCrashNode(true)
	store := newCrashNode(true)
	return &crashFS{
		names:   map[string]*crashNode{"/": root, "/store": store},
		durable: map[string]*crashNode{"/": root, "/store": store},
	}
}

func (fs *crashFS) call(kind fsCallKind, path string, bytes int) (int, error) {
	if fs.before == nil {
		return bytes, nil
	}
	n, err := fs.before(&fsCall{kind, path, bytes})
	if err != nil {
		return n, &os.PathError{Op: string(kind), Path: path, Err: err}
	}
	return bytes, nil
}

func (fs *crashFS) change(c nameChange) {
	c.apply(fs.names)
	fs.pending = append(fs.pending, c)
}

// crashMode is how much of what was not synced a cut keeps.
type crashMode struct {
	percent int
	torn    bool // sectors count, not pages
}

// clone returns what a cut at this moment may leave. It is called with mu held.
func (fs *crashFS) clone(m crashMode, rng *rand.Rand) *crashFS {
	names := make(map[string]*crashNode, len(fs.names))
	for path, n := range fs.durable {
		names[path] = n
	}
	ended := make(map[string]bool)
	for i := range fs.pending {
		c := &fs.pending[i]
		if dir := c.folder(); !ended[dir] {
			if ended[dir] = rng.IntN(100) >= m.percent; !ended[dir] {
				c.apply(names)
			}
		}
	}
	paths := make([]string, 0, len(names))
	for path := range names {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	left := &crashFS{names: make(map[string]*crashNode, len(names)), durable: make(map[string]*crashNode, len(names))}
	copies := make(map[*crashNode]*crashNode)
	for _, path := range paths { // parents first
		if up := left.names[filepath.Dir(path)]; path != "/" && (up == nil || !up.dir) {
			continue // its folder did not survive
		}
		n := copies[names[path]]
		if n == nil {
			n = names[path].clone(m, rng)
			copies[names[path]] = n
		}
		left.names[path], left.durable[path] = n, n
	}
	return left
}

func (n *crashNode) clone(m crashMode, rng *rand.Rand) *crashNode {
	if n.dir {
		return n // its entries are in crashFS
	}
	c := newCrashNode(false)
	c.modified = n.modified
	c.pages = append([]*crashPage(nil), n.synced...)
	c.size = n.syncSize
	if n.size > c.size && rng.IntN(100) < m.percent {
		c.resize(n.size) // the length was written, the data need not be
	}
	for i := range n.pages { // in order, for the sake of the seed
		mask := n.dirty[i]
		if mask == 0 || m.percent == 0 {
			continue
		}
		kept := mask
		if m.torn {
			kept &= byte(rng.Uint32())
			if rng.IntN(100) < m.percent/2 {
				kept = mask
			}
		} else if rng.IntN(100) >= m.percent {
			kept = 0
		}
		if kept == 0 {
			continue
		}
		if end := min(n.size, int64(i+1)*fileio.PageBytes); end > c.size {
			c.resize(end)
		}
		if kept == mask {
			c.pages[i] = n.pages[i]
			n.token = crashTokens.Add(1) // shared from now on
			continue
		}
		p := &crashPage{}
		if c.pages[i] != nil {
			p.data = c.pages[i].data
		}
		for s := range crashSectors {
			if kept&(1<<s) != 0 {
				copy(p.data[s*crashSector:(s+1)*crashSector], n.pages[i].data[s*crashSector:])
			}
		}
		c.pages[i] = p
	}
	c.synced, c.syncSize = append([]*crashPage(nil), c.pages...), c.size
	return c
}

func (n *crashNode) resize(size int64) {
	count := int((size + fileio.PageBytes - 1) / fileio.PageBytes)
	for len(n.pages) < count {
		n.pages = append(n.pages, nil)
	}
	n.size = size
}

func (n *crashNode) write(p []byte, off int64) {
	if end := off + int64(len(p)); end > n.size {
		n.resize(end)
	}
	for len(p) > 0 {
		i, at := int(off/fileio.PageBytes), int(off%fileio.PageBytes)
		page := n.pages[i]
		if page == nil || page.owner != n.token {
			fresh := &crashPage{owner: n.token}
			if page != nil {
				fresh.data = page.data
			}
			n.pages[i], page = fresh, fresh
		}
		done := copy(page.data[at:], p)
		if n.dirty == nil {
			n.dirty = make(map[int]byte)
		}
		for s := at / crashSector; s <= (at+done-1)/crashSector; s++ {
			n.dirty[i] |= 1 << s
		}
		p, off = p[done:], off+int64(done)
	}
	n.modified = time.Now()
}

func (n *crashNode) read(p []byte, off int64) (int, error) {
	if off >= n.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), n.size-off)]
	for done := 0; done < len(p); {
		i, at := int((off+int64(done))/fileio.PageBytes), int((off+int64(done))%fileio.PageBytes)
		part := p[done:min(len(p), done+fileio.PageBytes-at)]
		if n.pages[i] == nil {
			clear(part)
		} else {
			copy(part, n.pages[i].data[at:])
		}
		done += len(part)
	}
	return len(p), nil
}

// sync makes the pages of a range durable, and the length.
func (n *crashNode) sync(from, to int64) {
	for i := range n.dirty {
		if int64(i)*fileio.PageBytes >= to || int64(i+1)*fileio.PageBytes <= from {
			continue
		}
		for len(n.synced) <= i {
			n.synced = append(n.synced, nil)
		}
		n.synced[i] = n.pages[i]
		n.pages[i].owner = 0
		delete(n.dirty, i)
	}
	n.syncSize = n.size
	for len(n.synced) < len(n.pages) {
		n.synced = append(n.synced, nil)
	}
}

func (fs *crashFS) lookup(op, path string) (*crashNode, error) {
	if n := fs.names[path]; n != nil {
		return n, nil
	}
	return nil, &os.PathError{Op: op, Path: path, Err: os.ErrNotExist}
}

// createFile makes a file; exclusive fails if there is one.
func (fs *crashFS) createFile(path string, exclusive bool) (*crashFile, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if _, err := fs.call(callCreate, path, 0); err != nil {
		return nil, err
	}
	if _, err := fs.lookup("create", filepath.Dir(path)); err != nil {
		return nil, err
	}
	if old := fs.names[path]; old != nil {
		if exclusive {
			return nil, &os.PathError{Op: "create", Path: path, Err: os.ErrExist}
		}
		fs.change(nameChange{from: path, node: old})
	}
	n := newCrashNode(false)
	fs.change(nameChange{to: path, node: n})
	return &crashFile{fs: fs, node: n, path: path}, nil
}

func (fs *crashFS) openFile(path string, make bool) (*crashFile, error) {
	fs.mu.Lock()
	if make && fs.names[path] == nil {
		fs.mu.Unlock()
		return fs.createFile(path, false)
	}
	defer fs.mu.Unlock()
	if _, err := fs.call(callOpen, path, 0); err != nil {
		return nil, err
	}
	n, err := fs.lookup("open", path)
	if err != nil {
		return nil, err
	}
	return &crashFile{fs: fs, node: n, path: path}, nil
}

// Create implements vfs.FS.
func (fs *crashFS) Create(path string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.createFile(path, false)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Link implements vfs.FS.
func (fs *crashFS) Link(old, path string) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if _, err := fs.call(callCreate, path, 0); err != nil {
		return err
	}
	n, err := fs.lookup("link", old)
	if err != nil {
		return err
	}
	if fs.names[path] != nil {
		return &os.PathError{Op: "link", Path: path, Err: os.ErrExist}
	}
	fs.change(nameChange{to: path, node: n})
	return nil
}

// Open implements vfs.FS.
func (fs *crashFS) Open(path string, _ ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.openFile(path, false)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// OpenReadWrite implements vfs.FS.
func (fs *crashFS) OpenReadWrite(path string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.openFile(path, true)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// OpenDir implements vfs.FS.
func (fs *crashFS) OpenDir(path string) (vfs.File, error) { return fs.Open(path) }

// Remove implements vfs.FS.
func (fs *crashFS) Remove(path string) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n, err := fs.lookup("remove", path)
	if err != nil {
		return err
	}
	if _, err := fs.call(callRemove, path, 0); err != nil {
		return err
	}
	fs.change(nameChange{from: path, node: n})
	return nil
}

// RemoveAll implements vfs.FS.
func (fs *crashFS) RemoveAll(path string) error {
	names, err := fs.List(path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := fs.RemoveAll(filepath.Join(path, name)); err != nil {
			return err
		}
	}
	if err := fs.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// Rename implements vfs.FS.
func (fs *crashFS) Rename(from, to string) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if _, err := fs.call(callRename, to, 0); err != nil {
		return err
	}
	n, err := fs.lookup("rename", from)
	if err != nil {
		return err
	}
	fs.change(nameChange{from: from, to: to, node: n})
	return nil
}

// ReuseForWrite implements vfs.FS.
func (fs *crashFS) ReuseForWrite(old, path string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.Rename(old, path); err != nil {
		return nil, err
	}
	return fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
}

// MkdirAll implements vfs.FS.
func (fs *crashFS) MkdirAll(path string, mode os.FileMode) error {
	if path == "/" {
		return nil
	}
	if err := fs.MkdirAll(filepath.Dir(path), mode); err != nil {
		return err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.names[path] != nil {
		return nil
	}
	if _, err := fs.call(callMkdir, path, 0); err != nil {
		return err
	}
	fs.change(nameChange{to: path, node: newCrashNode(true)})
	return nil
}

// Lock implements vfs.FS.
func (fs *crashFS) Lock(path string) (io.Closer, error) { return fs.openFile(path, true) }

// List implements vfs.FS.
func (fs *crashFS) List(dir string) ([]string, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if _, err := fs.lookup("list", dir); err != nil {
		return nil, err
	}
	var list []string
	for path := range fs.names {
		if name, ok := strings.CutPrefix(path, dir+"/"); ok && !strings.Contains(name, "/") {
			list = append(list, name)
		}
	}
	sort.Strings(list)
	return list, nil
}

// Stat implements vfs.FS.
func (fs *crashFS) Stat(path string) (vfs.FileInfo, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n, err := fs.lookup("stat", path)
	if err != nil {
		return nil, err
	}
	return crashInfo{filepath.Base(path), n.size, n.dir, n.modified}, nil
}

func (fs *crashFS) PathBase(path string) string    { return filepath.Base(path) }
func (fs *crashFS) PathJoin(elem ...string) string { return filepath.Join(elem...) }
func (fs *crashFS) PathDir(path string) string     { return filepath.Dir(path) }
func (fs *crashFS) Unwrap() vfs.FS                 { return nil }

// GetDiskUsage implements vfs.FS: there is room enough.
func (fs *crashFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{}, vfs.ErrUnsupported // of unknown size: never full, and no reserve is made
}

type crashInfo struct {
	name     string
	size     int64
	dir      bool
	modified time.Time
}

func (i crashInfo) Name() string           { return i.name }
func (i crashInfo) Size() int64            { return i.size }
func (i crashInfo) IsDir() bool            { return i.dir }
func (i crashInfo) ModTime() time.Time     { return i.modified }
func (i crashInfo) Sys() any               { return nil }
func (i crashInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }
func (i crashInfo) Mode() os.FileMode {
	if i.dir {
		return os.ModeDir | 0o700
	}
	return 0o600
}

// crashFile is an open file or folder, for Pebble (vfs.File) and for the data
// (fileio.File).
type crashFile struct {
	fs      *crashFS
	node    *crashNode
	path    string
	at      int64
	durable bool // every write of pages is synced
}

func (f *crashFile) Close() error { return nil }

func (f *crashFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *crashFile) ReadAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if n, err := f.fs.call(callRead, f.path, len(p)); err != nil {
		n, _ = f.node.read(p[:n], off)
		return n, err
	}
	n, err := f.node.read(p, off)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (f *crashFile) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, f.at)
	f.at += int64(n)
	return n, err
}

func (f *crashFile) WriteAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	n, err := f.fs.call(callWrite, f.path, len(p))
	f.node.write(p[:n], off)
	return n, err
}

func (f *crashFile) syncRange(from, to int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if _, err := f.fs.call(callSync, f.path, 0); err != nil {
		return err
	}
	if !f.node.dir {
		f.node.sync(from, to)
		return nil
	}
	rest := f.fs.pending[:0:0]
	for _, c := range f.fs.pending {
		if c.folder() == f.path {
			c.apply(f.fs.durable)
		} else {
			rest = append(rest, c)
		}
	}
	f.fs.pending = rest
	return nil
}

func (f *crashFile) Sync() error                  { return f.syncRange(0, 1<<62) }
func (f *crashFile) SyncData() error              { return f.Sync() }
func (f *crashFile) SyncTo(int64) (bool, error)   { return false, nil }
func (f *crashFile) Prefetch(int64, int64) error  { return nil }
func (f *crashFile) Fd() uintptr                  { return vfs.InvalidFd }
func (f *crashFile) Preallocate(_, _ int64) error { return nil }
func (f *crashFile) Stat() (info vfs.FileInfo, _ error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return crashInfo{filepath.Base(f.path), f.node.size, f.node.dir, f.node.modified}, nil
}

func (f *crashFile) Allocate(bytes int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if _, err := f.fs.call(callExtend, f.path, 0); err != nil {
		return err
	}
	f.node.resize(max(bytes, f.node.size))
	return nil
}

func (f *crashFile) WritePages(off int64, pages ...[]byte) error {
	start := off
	for _, p := range pages {
		if len(p)%fileio.PageBytes != 0 || off%fileio.PageBytes != 0 {
			panic("not whole pages")
		}
		if _, err := f.WriteAt(p, off); err != nil {
			return err
		}
		off += int64(len(p))
	}
	if f.durable {
		return f.syncRange(start, off)
	}
	return nil
}

// crashDisk is the disk of the data half.
type crashDisk struct{ fs *crashFS }

func (d crashDisk) Create(path string) (fileio.File, error) {
	f, err := d.fs.createFile(path, true)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d crashDisk) OpenSegment(path string) (fileio.File, error) {
	f, err := d.fs.openFile(path, true)
	if err != nil {
		return nil, err
	}
	f.durable = true
	return f, nil
}

func (d crashDisk) Open(path string) (fileio.File, error) {
	f, err := d.fs.openFile(path, false)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d crashDisk) Length(path string) (int64, error) {
	info, err := d.fs.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (d crashDisk) Truncate(string, int64) error { return nil } // the disk is never full

// punch writes zeros, which a cut may drop.
func (d crashDisk) Punch(path string, off, bytes int64) error {
	f, err := d.fs.openFile(path, false)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, bytes), off)
	return err
}

func (d crashDisk) OpenDirect(path string) (fileio.File, error) { return d.Open(path) }

func (d crashDisk) Remove(path string) error          { return d.fs.Remove(path) }
func (d crashDisk) Rename(from, to string) error      { return d.fs.Rename(from, to) }
func (d crashDisk) List(dir string) ([]string, error) { return d.fs.List(dir) }
func (d crashDisk) Mkdir(dir string) error            { return d.fs.MkdirAll(dir, 0o700) }
func (d crashDisk) SyncDir(dir string) error          { return fileio.SyncDir(d.fs, dir) }

func (d crashDisk) Held(path string) (int64, error) { return d.Length(path) }

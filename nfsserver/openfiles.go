package nfsserver

import (
	"container/list"
	"context"
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ogw/vfs"
)

const (
	// maxOpenFiles bounds the files held open between calls. Beyond it the
	// file that was idle longest is flushed and closed.
	maxOpenFiles = 1024
	// openIdle is how long an unused file stays open. NFSv3 has no close, so
	// it bounds how long written but uncommitted data stays in this process
	// alone, and how long a removed file keeps its space.
	openIdle = 5 * time.Second
	// sweepInterval is how often idle files are looked for.
	sweepInterval = time.Second
	// permTTL bounds how long a check of rights holds. Changes of the file end it at
	// once: this process is notified of its own, and others show by its times.
	permTTL = time.Second
	// maxPerms bounds the users remembered per open file.
	maxPerms = 16
)

// openFiles keeps files open across READ, WRITE and COMMIT calls.
//
// Lock order: openFiles.mu before openFile.permMu; no lock is held during a
// call to the vfs.
type openFiles struct {
	fs   opener
	log  *slog.Logger
	seed maphash.Seed
	// lost is called when written data may be gone.
	lost func()

	mu    sync.Mutex
	files map[vfs.Ino]*openFile
	lru   *list.List // of *openFile, used last at the front
	// closing are files that are out of the table and not closed yet.
	closing map[vfs.Ino][]*openFile
}

// opener is what open files need of a vfs.FS.
type opener interface {
	Open(ctx context.Context, cred *vfs.Cred, ino vfs.Ino, flags vfs.OpenFlags) (*vfs.File, error)
	Access(ctx context.Context, cred *vfs.Cred, ino vfs.Ino, mask uint32) error
}

// openFile is one file that is open for everyone; rights are checked per call.
type openFile struct {
	ino   vfs.Ino
	ready chan struct{} // closed when file or err is set
	file  *vfs.File
	err   error
	// unstable reports whether something was written since the last sync.
	unstable atomic.Bool
	closed   chan struct{}

	users    int // guarded by openFiles.mu, as are the next three
	gone     bool
	lastUsed time.Time
	elem     *list.Element

	permMu sync.Mutex
	perms  map[permKey]permitted
}

// permitted is a check of rights that found them.
type permitted struct {
	until time.Time
	// storedNS is the time of the file's last change then (vfs.File.Refresh).
	storedNS int64
}

type permKey struct {
	uid, gid uint32
	groups   uint64
	write    bool
}

func newOpenFiles(fs opener, log *slog.Logger, lost func()) *openFiles {
	return &openFiles{fs: fs, log: log, seed: maphash.MakeSeed(), lost: lost,
		files: make(map[vfs.Ino]*openFile), lru: list.New(), closing: make(map[vfs.Ino][]*openFile)}
}

// acquire returns the open file of ino, opening it if needed. The caller
// releases it.
func (o *openFiles) acquire(ctx context.Context, ino vfs.Ino) (*openFile, error) {
	o.mu.Lock()
	f := o.files[ino]
	if f != nil {
		f.users++
		o.lru.MoveToFront(f.elem)
		o.mu.Unlock()
		<-f.ready
	} else {
		f = &openFile{ino: ino, ready: make(chan struct{}), closed: make(chan struct{}), users: 1, perms: make(map[permKey]permitted)}
		f.elem = o.lru.PushFront(f)
		o.files[ino] = f
		surplus := o.surplus()
		o.mu.Unlock()
		o.close(surplus)
		f.file, f.err = o.fs.Open(ctx, vfs.Root, ino, vfs.OpenRead|vfs.OpenWrite|vfs.OpenFlagged|vfs.OpenRefreshes)
		close(f.ready)
	}
	if f.err != nil {
		o.discard(f)
		o.release(f)
		return nil, f.err
	}
	return f, nil
}

// peek returns the open file of ino if there is one; the caller releases it.
func (o *openFiles) peek(ino vfs.Ino) *openFile {
	o.mu.Lock()
	f := o.files[ino]
	if f == nil {
		o.mu.Unlock()
		return nil
	}
	f.users++
	o.mu.Unlock()
	<-f.ready
	if f.err != nil {
		o.release(f)
		return nil
	}
	return f
}

func (o *openFiles) release(f *openFile) {
	now := time.Now()
	o.mu.Lock()
	f.users--
	f.lastUsed = now
	last := f.gone && f.users == 0
	o.mu.Unlock()
	if last {
		o.closeFile(f)
	}
}

// discard takes f out of the table: the next call opens the file anew.
func (o *openFiles) discard(f *openFile) {
	o.mu.Lock()
	o.remove(f) // the caller uses it still, so release closes it
	o.mu.Unlock()
}

func (o *openFiles) remove(f *openFile) {
	if !f.gone {
		f.gone = true
		delete(o.files, f.ino)
		o.lru.Remove(f.elem)
		o.closing[f.ino] = append(o.closing[f.ino], f)
	}
}

// awaitCloses waits until the files of ino that are being closed are closed, and
// so until it is known whether their data was lost.
func (o *openFiles) awaitCloses(ino vfs.Ino) {
	o.mu.Lock()
	list := slices.Clone(o.closing[ino])
	o.mu.Unlock()
	for _, f := range list {
		<-f.closed
	}
}

// surplus takes the least recently used idle files over the limit out.
func (o *openFiles) surplus() (out []*openFile) {
	for e := o.lru.Back(); e != nil && len(o.files) > maxOpenFiles; {
		f := e.Value.(*openFile)
		e = e.Prev()
		if f.users == 0 {
			o.remove(f)
			out = append(out, f)
		}
	}
	return out
}

// sweep closes the files that nobody used for a while (all unused ones with
// everything).
func (o *openFiles) sweep(everything bool) {
	limit := time.Now().Add(-openIdle)
	var out []*openFile
	o.mu.Lock()
	for e := o.lru.Back(); e != nil; {
		f := e.Value.(*openFile)
		e = e.Prev()
		if f.users == 0 && (everything || f.lastUsed.Before(limit)) {
			o.remove(f)
			out = append(out, f)
		}
	}
	o.mu.Unlock()
	o.close(out)
}

// run sweeps until ctx ends.
func (o *openFiles) run(ctx context.Context) {
	t := time.NewTicker(sweepInterval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			o.sweep(false)
		case <-ctx.Done():
			return
		}
	}
}

func (o *openFiles) close(list []*openFile) {
	for _, f := range list {
		o.closeFile(f)
	}
}

// closeFile flushes and closes. What cannot be flushed is lost, and clients
// learn it from the verifier.
func (o *openFiles) closeFile(f *openFile) {
	defer o.closeEnded(f)
	if f.file == nil {
		return
	}
	if err := f.file.Close(context.Background()); err != nil {
		o.log.Error("nfs: file not flushed at close", "inode", uint64(f.ino), "err", err)
		o.lost()
	}
}

func (o *openFiles) closeEnded(f *openFile) {
	o.mu.Lock()
	defer o.mu.Unlock()
	rest := slices.DeleteFunc(o.closing[f.ino], func(g *openFile) bool { return g == f })
	if len(rest) == 0 {
		delete(o.closing, f.ino)
	} else {
		o.closing[f.ino] = rest
	}
	close(f.closed)
}

// sync makes everything written to f durable. After a failure, data may be
// gone that other clients wrote: the verifier makes them send it again.
func (o *openFiles) sync(ctx context.Context, f *openFile) error {
	f.unstable.Store(false)
	err := f.file.Sync(ctx)
	if err != nil { // whatever unstable was: a WRITE sets it after its bytes
		o.lost()
		o.discard(f)
	}
	return err
}

// check reports whether cred may read or write f's bytes. NFSv3 knows no open:
// rights were checked by ACCESS when the client's program opened the file,
// and must not fail it afterwards. So the owner always may (a file created
// with mode 0444 is written), and who may execute may read. storedNS is the time of the
// file's last change, where other processes change it.
func (o *openFiles) check(ctx context.Context, f *openFile, cred *vfs.Cred, write bool, storedNS int64) error {
	if cred.UID() == 0 {
		return nil
	}
	key := permKey{cred.UID(), cred.GID(), o.hash(cred.Groups()), write}
	now := time.Now()
	f.permMu.Lock()
	p := f.perms[key]
	f.permMu.Unlock()
	if now.Before(p.until) && p.storedNS == storedNS {
		return nil
	}
	if err := o.checkNow(ctx, f, cred, write); err != nil {
		return err
	}
	f.permMu.Lock()
	if len(f.perms) >= maxPerms {
		clear(f.perms)
	}
	f.perms[key] = permitted{now.Add(permTTL), storedNS}
	f.permMu.Unlock()
	return nil
}

func (o *openFiles) checkNow(ctx context.Context, f *openFile, cred *vfs.Cred, write bool) error {
	mask := vfs.AccessRead
	if write {
		mask = vfs.AccessWrite
	}
	err := o.fs.Access(ctx, cred, f.ino, mask)
	if err == nil {
		return nil
	}
	a, attrErr := f.file.Attr(ctx)
	if attrErr == nil && cred.Is(a.UID) {
		return nil
	}
	if !write && o.fs.Access(ctx, cred, f.ino, vfs.AccessExec) == nil {
		return nil
	}
	return err
}

func (o *openFiles) hash(groups []uint32) uint64 {
	if len(groups) == 0 {
		return 0
	}
	return maphash.Comparable(o.seed, groupKey(groups))
}

// groupKey makes groups comparable.
func groupKey(groups []uint32) (k [17]uint32) {
	k[16] = uint32(copy(k[:16], groups))
	return k
}

// InvalidateEntry is part of vfs.Invalidator.
func (o *openFiles) InvalidateEntry(vfs.Ino, string) {}

// InvalidateInode is part of vfs.Invalidator: rights may have changed.
func (o *openFiles) InvalidateInode(ino vfs.Ino, _ bool) {
	o.mu.Lock()
	f := o.files[ino]
	o.mu.Unlock()
	if f != nil {
		f.permMu.Lock()
		clear(f.perms)
		f.permMu.Unlock()
	}
}

// len returns how many files are open.
func (o *openFiles) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.files)
}

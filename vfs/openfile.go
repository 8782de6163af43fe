package vfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/session"
)

// openFile is the state that all Files of one inode share: what was written
// and not flushed (pieces), over a snapshot of what is stored (snap).
//
//	write ──► pieces in chunks ──► uploads (blobs) ──► flush: one transaction
//	read  ◄── pieces over snap
//
// A piece stays until the transaction that stores it has committed, and is
// then removed together with the snapshot below it, so that a reader sees
// every byte either above or below, and never waits for an upload. The snapshot
// that follows is the inode as the transaction left it (follow), unless somebody
// else changed the file meanwhile: the next write needs nothing from the store.
type openFile struct {
	fs  *FS
	ino Ino

	// written reports whether something was ever written to it.
	written atomic.Bool
	// admitted reports whether a File of it was opened when the inode had links, or
	// made it: others spare the inode since (FS.mayUse).
	admitted atomic.Bool

	// left is set when its last File is gone: what it holds is dropped then, and a flush
	// that runs still stores nothing over what comes after.
	left atomic.Bool

	// readIn is the turn in which a read was noted, or was none to note; 0 after
	// each change.
	readIn atomic.Uint64

	// gen grows when this process changed what is stored, or may have; a snapshot of an
	// older one is not used any more.
	gen atomic.Uint64

	flushMu sync.Mutex // serializes flushes; before mu

	mu         sync.RWMutex
	snap       *fileSnap
	least      uint64 // version that somebody saw (refresh): a snapshot of an older one is not current
	pieces     pieces
	active     *chunk                    // takes the next bytes; counted in its refs
	epoch      uint64                    // of the inode when the first piece was written
	writes     uint64                    // since the last flush began, and those it captured
	captured   uint64                    // of writes, by the flush that runs
	turn       uint64                    // of the last write, counted from one and never reset
	flushed    uint64                    // the turn up to which writes are stored, or gone
	mtimeNS    int64                     // of the last write
	base       uint64                    // stored version below the writes, when the first of them came
	dirtyNS    int64                     // of the oldest write since the last flush began
	killPriv   bool                      // a write came from somebody who loses setuid and setgid with it
	last       *record.Inode             // as our last flush left it
	committing atomic.Pointer[flushMark] // how the flush that runs leaves the inode, if it commits
	unsure     atomic.Uint64             // how often it was not known whether it has
	cut        atomic.Bool               // a content was cut to nothing, and no close stored what replaces it
	times      timesSet
	lost       error      // why pieces were dropped last
	lostSeq    uint64     // how often that happened
	kept       []keptMark // of writes that are not stored

	target ContentID // content for uploads
	fresh  bool      // target was never named by a transaction
	nextID uint64    // an unused number, for target

	streamAgain time.Time // not before this, after a failed upload

	// tail reports whether all that is written goes behind the end, wherever that is in
	// the transaction that stores it, which sets placed.
	tail   bool
	placed int64
}

// acquire counts one more user of ino's open file, which there is then.
func (fs *FS) acquire(ctx context.Context, ino Ino) (*openFile, error) {
	f, err := fs.session.Open.Acquire(ctx, ino, func() session.File { return &openFile{fs: fs, ino: ino} })
	if err != nil {
		return nil, err
	}
	return f.(*openFile), nil
}

// opened returns the open file of ino, or nil, without counting.
func (fs *FS) opened(ino Ino) *openFile {
	of, _ := fs.session.Open.Get(ino).(*openFile)
	return of
}

// eachOpen calls fn for every open file.
func (fs *FS) eachOpen(fn func(*openFile)) {
	fs.session.Open.Each(func(f session.File) { fn(f.(*openFile)) })
}

// Leave implements session.File.
func (of *openFile) Leave() { of.left.Store(true) }

// Written implements session.File.
func (of *openFile) Written() bool { return of.written.Load() }

// current reports whether the snapshot may be used. Under mu.
func (of *openFile) current() bool { return of.currentFor(of.least) }

// currentFor reports it for who saw the inode in a version: what others saw since then
// does not count, who would have a reader beside a fast writer load without end. Under mu.
func (of *openFile) currentFor(version uint64) bool {
	return of.snap != nil && of.snap.gen == of.gen.Load() && of.snap.inode.Version >= version &&
		of.fs.feed.Current(of.snap.at)
}

// size is that which a reader sees. Under mu, with a snapshot.
func (of *openFile) size() int64 { return max(of.snap.inode.Size, of.pieces.end()) }

// rlock returns with mu held for reading and a current snapshot, which can be read.
func (of *openFile) rlock(ctx context.Context) error {
	of.mu.RLock()
	for least := of.least; ; of.mu.RLock() {
		if of.currentFor(least) && of.snap.reader != nil {
			return nil
		}
		of.mu.RUnlock()
		if err := of.load(ctx, true); err != nil {
			return err
		}
	}
}

// lock returns with mu held and a current snapshot, perhaps of the inode alone.
func (of *openFile) lock(ctx context.Context) error {
	of.mu.Lock()
	for least := of.least; ; of.mu.Lock() {
		if of.currentFor(least) {
			return nil
		}
		of.mu.Unlock()
		if err := of.load(ctx, false); err != nil {
			return err
		}
	}
}

// stored returns the inode of a current snapshot.
func (of *openFile) stored(ctx context.Context) (*record.Inode, error) {
	of.mu.RLock()
	for least := of.least; ; of.mu.RLock() {
		if of.currentFor(least) {
			defer of.mu.RUnlock()
			return of.snap.inode, nil
		}
		of.mu.RUnlock()
		if err := of.load(ctx, false); err != nil {
			return nil, err
		}
	}
}

// follow makes s, the inode as our last flush left it, the snapshot, if nobody else
// changed what is stored since: the flush itself counts once in gen, and who
// commits after it has yet to count. s is nil if that inode is not known. Under mu.
func (of *openFile) follow(s *fileSnap) {
	if s == nil || of.current() || of.gen.Load() != s.gen || s.inode.Version < of.least {
		return
	}
	of.snap.release()
	of.snap = s
	s.refs.Store(1)
}

// load takes a new snapshot: one that can be read, or of the inode alone, which is enough
// to write: else each of many writers loads extents, again when one flushes.
func (of *openFile) load(ctx context.Context, readable bool) error {
	s := &fileSnap{gen: of.gen.Load(), at: time.Now()}
	s.refs.Store(1)
	err := of.fs.peek(ctx, func(r cluster.Reader) error { return s.read(ctx, r, of.fs.contents, of.ino, readable) })
	if err != nil {
		s.release()
		return err
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	old, written := of.snap, len(of.pieces) > 0
	if old != nil && old.inode.Version > s.inode.Version || written && of.epoch > s.inode.Epoch || !readable && of.current() {
		s.release() // another load was faster, and saw more or can be read
		return nil
	}
	of.snap = s
	old.release()
	if written && s.inode.Epoch != of.epoch {
		of.dropPieces(fmt.Errorf("inode %d was replaced: %w", of.ino, ErrStale))
	}
	return nil
}

// dropPieces forgets all that was written and not flushed. Under mu.
func (of *openFile) dropPieces(why error) {
	if len(of.pieces) > 0 {
		of.lost, of.lostSeq = why, of.lostSeq+1
		of.fs.losses.Add(1)
		for _, k := range of.kept {
			k.by.Lost(of.ino)
		}
	}
	for _, p := range of.pieces {
		of.freePiece(p)
	}
	of.pieces = nil
	of.writes, of.killPriv = of.captured, false
	of.releaseKept(slices.Clone(of.kept))
	of.retire()
}

// lostSince returns why pieces were dropped, if that happened after seq.
func (of *openFile) lostSince(seq uint64) error {
	if of.lostSeq > seq {
		return of.lost
	}
	return nil
}

// retire lets the active chunk go when its pieces do. Under mu.
func (of *openFile) retire() {
	if of.active != nil {
		of.releaseChunk(of.active)
		of.active = nil
	}
}

// readPart is a range of a read that is answered without the lock.
type readPart struct {
	p   []byte
	off int64 // in the blob, or in the file
	up  *blobUpload
}

// maxReadAttempts bounds how often a read begins anew: what it reads is changed in place.
const maxReadAttempts = 32

// read reads like io.ReaderAt.
func (of *openFile) read(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("%w: offset %d", ErrInvalid, off)
	}
	for attempt := 1; ; attempt++ {
		n, gen, err := of.tryRead(ctx, p, off)
		if err == nil || errors.Is(err, io.EOF) || ctx.Err() != nil {
			return n, err
		}
		if attempt == maxReadAttempts {
			return n, of.busy(ctx, err)
		}
		if !of.again(gen, err) {
			return n, err
		}
	}
}

// noSnapshot stands for the generation of a snapshot that could not be loaded.
const noSnapshot = math.MaxUint64

// again reports whether what ended with an error may succeed with another snapshot than that
// of gen, which is too old for pages not loaded yet and not used any more. Where none could be
// loaded, ErrStale says that the inode is gone.
func (of *openFile) again(gen uint64, err error) bool {
	switch {
	case gen == noSnapshot:
		return errors.Is(err, ErrConflict)
	case !errors.Is(err, ErrStale) && gen == of.gen.Load():
		return false
	}
	of.gen.CompareAndSwap(gen, gen+1)
	return true
}

// busy turns the ErrStale of a read, if another process changes the file again and again
// and it is there still, into ErrConflict: the same may succeed later.
func (of *openFile) busy(ctx context.Context, err error) error {
	if of.fs.feed.Complete() || !errors.Is(err, ErrStale) {
		return err
	}
	if _, e := of.stored(ctx); e != nil {
		return e
	}
	return fmt.Errorf("%w: inode %d changes faster than it can be read", ErrConflict, of.ino)
}

func (of *openFile) tryRead(ctx context.Context, p []byte, off int64) (n int, gen uint64, err error) {
	if err := of.rlock(ctx); err != nil {
		return 0, noSnapshot, err
	}
	snap, size := of.snap, of.size()
	gen = snap.gen
	if off >= size {
		of.mu.RUnlock()
		return 0, gen, io.EOF
	}
	if int64(len(p)) > size-off {
		p = p[:size-off]
		err = io.EOF
	}
	snap.refs.Add(1)
	defer snap.release()
	parts := of.planRead(p, off)
	of.mu.RUnlock()
	for i := range parts {
		e := of.readPart(ctx, snap, &parts[i])
		if parts[i].up != nil {
			of.fs.releaseBlobUpload(parts[i].up)
		}
		if e != nil {
			for _, rest := range parts[i+1:] {
				if rest.up != nil {
					of.fs.releaseBlobUpload(rest.up)
				}
			}
			return 0, gen, e
		}
	}
	return len(p), gen, err
}

// planRead copies what is in memory and returns the rest. Under mu.
func (of *openFile) planRead(p []byte, off int64) (parts []readPart) {
	end := off + int64(len(p))
	for i := of.pieces.find(off); i < len(of.pieces) && of.pieces[i].off < end; i++ {
		x := of.pieces[i]
		if x.off > off {
			parts = append(parts, readPart{p: p[:x.off-off], off: off})
			p, off = p[x.off-off:], x.off
		}
		k := min(x.end(), end) - off
		if x.chunk != nil {
			copy(p[:k], x.data[off-x.off:])
		} else {
			x.up.refs.Add(1)
			parts = append(parts, readPart{p: p[:k], off: x.upOff + off - x.off, up: x.up})
		}
		p, off = p[k:], off+k
	}
	if len(p) > 0 {
		parts = append(parts, readPart{p: p, off: off})
	}
	return parts
}

func (of *openFile) readPart(ctx context.Context, snap *fileSnap, part *readPart) error {
	if part.up != nil {
		of.mu.RLock()
		id := part.up.id
		of.mu.RUnlock()
		n, err := of.fs.quarantine.Read(ctx, id, part.p, part.off)
		if n == len(part.p) && (err == nil || errors.Is(err, io.EOF)) {
			return nil
		}
		if err == nil || errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: blob %v is too short", ErrCorrupt, id)
		}
		return fserr.Map(err)
	}
	stored := part.p[:max(0, min(int64(len(part.p)), snap.reader.Size()-part.off))]
	clear(part.p[len(stored):])
	if len(stored) == 0 {
		return nil
	}
	_, err := snap.reader.Read(ctx, stored, part.off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// keep notifies f's Keeper of a write, unless that is one that it has (Rewrite).
// Under mu, with the bytes in.
func (of *openFile) keep(ctx context.Context, f *File, p []byte, off int64, killPriv bool) {
	by, seq := f.again.by, f.again.seq
	if by == nil {
		if by = f.keeper; by == nil {
			return
		}
		seq = of.fs.kept.Add(1)
		by.Keep(&KeptWrite{Ino: of.ino, Epoch: of.snap.inode.Epoch, Off: off, Data: p, KillPriv: killPriv, Tag: writeTag(ctx), Seq: seq})
	}
	for i := range of.kept {
		if of.kept[i].by == by {
			of.kept[i].seq = seq
			return
		}
	}
	of.kept = append(of.kept, keptMark{by, seq})
}

// releaseKept notifies the Keepers that the writes up to these marks are over, and
// forgets those after which there were none. Under mu.
func (of *openFile) releaseKept(marks []keptMark) {
	switch len(marks) {
	case 0:
		return
	case 1:
		marks[0].by.Stored(of.ino, marks[0].seq)
	default:
		upTo := make(map[Keeper]uint64, len(marks))
		for _, m := range marks {
			upTo[m.by] = m.seq
		}
		ReleaseKept(of.ino, upTo)
	}
	of.kept = slices.DeleteFunc(of.kept, func(k keptMark) bool { return slices.Contains(marks, k) })
}

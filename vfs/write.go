package vfs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/tokens"
)

// uploadBytes is how much of a sequential stream makes one blob: long enough
// for the medium's full speed, short enough that several are in flight
// within the pool.
const uploadBytes = 8 << 20

// oneWrite is what a write asks for.
type oneWrite struct {
	p        []byte
	off      int64
	atEnd    bool // wherever that is, and not at off
	killPriv bool // it takes setuid and setgid off the file
}

// write does w in parts, and returns where it went and how much of it.
func (of *openFile) write(ctx context.Context, f *File, w oneWrite) (at int64, n int, err error) {
	at = w.off
	for first := true; first || n < len(w.p); first = false {
		part := w
		part.p = w.p[n:min(len(w.p), n+atomicWriteBytes)]
		part.off += int64(n)
		if len(part.p) == 0 {
			return at, 0, nil
		}
		from, err := of.writePart(ctx, f, part)
		if err != nil {
			return at, n, err
		}
		if first && w.atEnd {
			// The rest follows where the first part went; another appender
			// may come between only for writes over atomicWriteBytes.
			at, w.off, w.atEnd = from, from, false
		}
		n += len(part.p)
	}
	return at, n, nil
}

// appendBeside is a write to the end where another process may write there, too: the
// place is found in the transaction that stores the bytes, before it returns.
//
// ErrDone, with where it is not known, if the context's Token says that its bytes are there.
func (f *File) appendBeside(ctx context.Context, w oneWrite) (at int64, n int, err error) {
	token := tokens.Take(ctx) // for the bytes, not for what was written before them
	if err := f.of.flush(ctx); err != nil {
		return 0, 0, err
	}
	for first := true; n < len(w.p); first = false {
		part := w.p[n:min(len(w.p), n+atomicWriteBytes)]
		off, err := f.appendPart(ctx, token, part, w.killPriv)
		if err != nil {
			return at, n, err
		}
		if first {
			at, token = off, nil
		}
		n += len(part)
	}
	return at, n, nil
}

// appendPart stores p, through an openFile for nothing else. The token is for that alone:
// ctx has none, as room for p may take other files' bytes to be stored before.
func (f *File) appendPart(ctx context.Context, token *Token, p []byte, killPriv bool) (off int64, err error) {
	tail := &openFile{fs: f.fs, ino: f.of.ino, tail: true}
	f.of.mu.RLock()
	g := &File{fs: f.fs, of: tail, flags: f.flags, epoch: f.epoch, wrote: f.wrote}
	f.of.mu.RUnlock()
	if _, err = tail.writePart(ctx, g, oneWrite{p: p, atEnd: true, killPriv: killPriv}); err == nil {
		err = tail.flush(tokens.Again(ctx, token))
	}
	tail.mu.Lock()
	tail.dropPieces(err)
	tail.snap.release()
	tail.snap = nil
	off = tail.placed
	tail.mu.Unlock()
	if err != nil {
		return 0, err
	}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.of.written.Store(true)
	if !f.wrote {
		f.seen = f.of.lostSeq // as of openFile.wrote
	}
	f.epoch, f.wrote, f.unsaved = g.epoch, true, true
	return off, nil
}

// Rewrite makes a write again that by, which may be nil, has from a process before
// this one, and lets go of when it is stored. Those of one file come in their
// order, before anybody else writes to it, through a File for nothing else. It
// takes memory beyond what buffers may have: the process before had it too.
// What the process before stored is not written over what others stored since. ErrStale if
// the content was replaced since.
func (f *File) Rewrite(ctx context.Context, by Keeper, w *KeptWrite) error {
	f.fs.KeptBefore(w.Seq)
	off, data, err := f.unstored(ctx, by, w)
	if err != nil || len(data) == 0 {
		return err
	}
	n, err := f.of.stored(ctx)
	if err != nil {
		return err
	}
	if n.Epoch != w.Epoch {
		return fmt.Errorf("inode %d was replaced since it was written: %w", w.Ino, ErrStale)
	}
	f.again = keptMark{by, w.Seq}
	defer func() { f.again = keptMark{} }()
	_, _, err = f.write(ctx, oneWrite{p: data, off: off, killPriv: w.KillPriv})
	return err
}

// unstored returns the part of a write that by has which the process before did not store:
// others may have written over the rest since.
func (f *File) unstored(ctx context.Context, by Keeper, w *KeptWrite) (off int64, data []byte, err error) {
	if by == nil || f.fs.feed.Complete() {
		return w.Off, w.Data, nil
	}
	if f.before == nil {
		if f.before, err = f.fs.storedBefore(ctx, w.Ino); err != nil {
			return 0, nil, err
		}
	}
	n := min(max(f.before.Stored.Before(by.ID(), w.Seq)-w.Off, 0), int64(len(w.Data)))
	return w.Off + n, w.Data[n:], nil
}

// storedBefore returns the inode as the process before left it: it is stored once more, so
// that a transaction of that process which is on its way to the engine still is refused.
func (fs *FS) storedBefore(ctx context.Context, ino Ino) (n *record.Inode, err error) {
	err = fs.update(ctx, func(t cluster.Txn, _ *op) (err error) {
		if n, err = record.GetInode(t, ino); err != nil {
			return err
		}
		return record.PutInode(t, n)
	})
	if err != nil { // a store that is full takes nothing from that process either
		err = fs.view(ctx, func(r cluster.Reader) (err error) {
			n, err = record.GetInode(r, ino)
			return err
		})
	}
	return n, err
}

func (of *openFile) writePart(ctx context.Context, f *File, w oneWrite) (_ int64, err error) {
	p, off := w.p, w.off
	var mine []*chunk // never held while waiting for more, or for a move
	defer func() { of.fs.dirty.put(mine...) }()
	for {
		moving, err := of.lockForWrite(ctx, f)
		if err != nil {
			return off, err
		}
		if moving != nil {
			of.fs.dirty.put(mine...)
			mine = nil
			if err := await(ctx, moving); err != nil {
				return off, err
			}
			continue
		}
		if w.atEnd {
			off = of.size()
		}
		if off < 0 || off > MaxFileBytes-int64(len(p)) {
			of.mu.Unlock()
			return off, ErrFileTooLarge
		}
		if n := of.snap.inode; perm.FlagsOf(n)&perm.HeldFlags != 0 && f.flags&OpenRewrites == 0 {
			if err := perm.FlagsOf(n).CheckWrite(off, of.size()); err != nil {
				of.mu.Unlock()
				return off, err
			}
		}
		if !of.fs.cut.Enter() {
			of.mu.Unlock()
			of.fs.cut.Await()
			continue
		}
		if of.overwrite(p, off) {
			break
		}
		if of.room(mine) >= len(p) {
			mine = of.insert(p, off, mine)
			break
		}
		of.fs.cut.Leave()
		need, size := len(p), 0
		if of.active != nil {
			need -= of.active.room()
			size = 2 * len(of.active.buf) // a stream's chunks grow
		}
		of.mu.Unlock()
		of.fs.dirty.put(mine...)
		if f.flags&OpenRewrites != 0 {
			mine = of.fs.dirty.beyond(need, size)
		} else if mine, err = of.fs.takeChunks(ctx, of, need, size); err != nil {
			return off, err
		}
	}
	of.wrote(f, w.killPriv)
	of.keep(ctx, f, p, off, w.killPriv)
	of.fs.cut.Leave()
	if of.nextID != 0 {
		of.streamUpload(off)
	}
	of.mu.Unlock()
	return off, nil
}

// room is what the active chunk and mine can take. Under mu.
func (of *openFile) room(mine []*chunk) (n int) {
	if of.active != nil {
		n = of.active.room()
	}
	for _, c := range mine {
		n += c.room()
	}
	return n
}

// lockForWrite returns with mu held, a current snapshot, and a spare number, but
// for Rewrite: a store that is full gives none. While somebody moves the end, it
// returns without mu what is closed after that.
func (of *openFile) lockForWrite(ctx context.Context, f *File) (moving <-chan struct{}, err error) {
	for {
		if err := of.lock(ctx); err != nil {
			return nil, err
		}
		if moving := of.fs.session.Open.Moving(of.ino); moving != nil {
			of.mu.Unlock()
			return moving, nil
		}
		if f.wrote && f.epoch != of.snap.inode.Epoch {
			of.mu.Unlock()
			return nil, fmt.Errorf("inode %d was replaced since it was opened: %w", of.ino, ErrStale)
		}
		if of.nextID != 0 || f.flags&OpenRewrites != 0 {
			return nil, nil
		}
		of.mu.Unlock()
		if err := of.spareID(ctx); err != nil {
			return nil, err
		}
	}
}

// spareID sees to it that nextID is set.
func (of *openFile) spareID(ctx context.Context) error {
	id, err := of.fs.ids.Take(ctx)
	if err != nil {
		return err
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.nextID == 0 {
		of.nextID = id
	}
	return nil
}

// wrote records one write of f. Under mu, after the bytes are in.
func (of *openFile) wrote(f *File, killPriv bool) {
	of.written.Store(true)
	of.readIn.Store(0)
	n := of.snap.inode
	now := of.fs.cfg.Now().UnixNano()
	if of.dirtyNS == 0 {
		of.dirtyNS = now
	}
	if of.writes == 0 {
		of.base = n.Version
	}
	of.epoch, of.mtimeNS = n.Epoch, now
	of.writes++
	of.turn++
	of.killPriv = of.killPriv || killPriv
	if !f.wrote {
		f.seen = of.lostSeq // what was lost before was of others
	}
	f.epoch, f.wrote, f.unsaved, f.last = n.Epoch, true, true, of.turn
}

// overwrite stores p within a piece that may still change, if there is one
// around it. Under mu.
func (of *openFile) overwrite(p []byte, off int64) bool {
	i := of.pieces.find(off)
	if i == len(of.pieces) {
		return false
	}
	x := of.pieces[i]
	if x.off > off || x.end() < off+int64(len(p)) || !x.open() {
		return false
	}
	copy(x.data[off-x.off:], p)
	return true
}

// insert makes pieces of p, in the active chunk and then in those of mine,
// and returns what it did not take. Under mu.
func (of *openFile) insert(p []byte, off int64, mine []*chunk) []*chunk {
	i := of.cutPieces(off, off+int64(len(p)))
	for len(p) > 0 {
		if of.active == nil || of.active.room() == 0 {
			of.retire()
			of.active, mine = mine[0], mine[1:]
			of.active.refs++
		}
		c := of.active
		k := copy(c.buf[c.used:], p)
		if i > 0 && of.pieces[i-1].extends(c, off) {
			x := of.pieces[i-1]
			x.data = c.buf[c.used-len(x.data) : c.used+k]
			x.len += int64(k)
		} else {
			c.refs++
			of.insertPiece(i, &piece{off: off, len: int64(k), chunk: c, data: c.buf[c.used : c.used+k]})
			i++
		}
		c.used += k
		p, off = p[k:], off+int64(k)
	}
	return mine
}

// extends reports whether bytes for off, put next into c, continue the piece.
func (p *piece) extends(c *chunk, off int64) bool {
	return p.end() == off && p.open() && p.chunk == c && len(p.data) <= c.used &&
		&p.data[len(p.data)-1] == &c.buf[c.used-1]
}

// streamUpload starts to upload the run of pieces that ends with the one at
// off, if it is long enough. Under mu.
func (of *openFile) streamUpload(off int64) {
	j := of.pieces.find(off) + 1
	for j < len(of.pieces) && of.pieces[j].open() && of.pieces[j].off == of.pieces[j-1].end() {
		j++
	}
	i, length := j, int64(0)
	for i > 0 && of.pieces[i-1].open() && (i == j || of.pieces[i-1].end() == of.pieces[i].off) {
		i--
		length += of.pieces[i].len
	}
	if length >= of.fs.tune.uploadBytes && !time.Now().Before(of.streamAgain) {
		of.uploadRun(i, j)
	}
}

// takeChunks returns chunks for need bytes of of (see dirtyPool.try). When
// the pool is exhausted the writer flushes: its own file first, then all
// others; what it waits for after that are flushes by others, which need no
// buffers. While the engine refuses these, nothing comes back.
func (fs *FS) takeChunks(ctx context.Context, of *openFile, need, size int) ([]*chunk, error) {
	for {
		freed := fs.dirty.signal()
		if list := fs.dirty.try(need, size); list != nil {
			return list, nil
		}
		// The writer's own failure is its own to know: no buffers will come
		// back while the engine refuses them.
		if err := of.flush(ctx); err != nil {
			return nil, err
		}
		if list := fs.dirty.try(need, size); list != nil {
			return list, nil
		}
		var refused error
		fs.eachOpen(func(f *openFile) {
			if f != of && ctx.Err() == nil {
				if err := f.flush(ctx); err != nil {
					fs.log.Warn("flush under memory pressure failed", "inode", uint64(f.ino), "err", err)
					if !errors.Is(err, ErrStale) { // else its buffers are free
						refused = err
					}
				}
			}
		})
		if list := fs.dirty.try(need, size); list != nil {
			return list, nil
		}
		if refused != nil {
			return nil, fmt.Errorf("no memory for writes, since what others wrote cannot be stored: %w", refused)
		}
		if err := await(ctx, freed); err != nil {
			return nil, err
		}
	}
}

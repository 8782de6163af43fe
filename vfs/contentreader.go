package vfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// maxReadPages bounds the pages of extents that one reader keeps.
const maxReadPages = 4

// segment is a range of a content and the place of its bytes, references
// resolved.
type segment struct {
	off, len int64
	data     []byte // inline; else
	blob     cluster.BlobID
	blobOff  int64
}

func (s *segment) end() int64 { return s.off + s.len }

// readPage holds all segments within [from, to); the rest of it is holes.
type readPage struct {
	from, to int64
	segs     []segment
}

// contentReader reads the bytes that an inode had when it was made, whatever
// happens to the inode meanwhile. It is safe for concurrent use.
//
// The first page of extents is loaded with the inode; contents with more
// load theirs when they are needed, and give ErrStale if the content changed
// in place since, never a mixture.
type contentReader struct {
	fs      *FS
	ctx     context.Context
	ino     Ino
	content ContentID
	size    int64
	version uint64
	changes uint64 // of the pin

	mu     sync.Mutex
	pages  []*readPage
	next   int // page to replace
	pinned []ContentID
	closed bool
}

// overtakenError tells that a content was changing in place when it was pinned,
// or had changed since the snapshot: what is not read yet may be newer than it.
type overtakenError struct{ content ContentID }

func (e *overtakenError) Error() string {
	return fmt.Sprintf("content %d changes again and again", e.content)
}

// Unwrap: the caller may try again.
func (e *overtakenError) Unwrap() error { return ErrConflict }

// maxOvertaken bounds how often a view begins again for that. It waits for the
// change, and then the next one must come within microseconds.
const maxOvertaken = 100

// openContent begins reading n's content as of r's snapshot, which must be
// that of fs.view or fs.peek. ctx is that of all reading. An overtakenError is for
// these two.
func (fs *FS) openContent(ctx context.Context, r cluster.Reader, n *record.Inode) (*contentReader, error) {
	c := &contentReader{fs: fs, ctx: ctx, ino: n.Ino, content: n.Content, size: n.Size, version: n.Version}
	var changing bool
	c.changes, changing = fs.pins.Pin(n.Content)
	c.pinned = append(c.pinned, n.Content)
	if n.Content == 0 || n.Size == 0 {
		c.pages = []*readPage{{to: n.Size}}
		return c, nil
	}
	p, err := c.load(r, 0, extents.ReadPageInline)
	if err == nil && p.to < n.Size {
		// A change counts against the pages to come from the pin on, and must
		// not lie between the snapshot and the pin.
		err = c.notOvertaken(changing)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	c.pages = []*readPage{p}
	return c, nil
}

// notOvertaken looks at the inode as it is now. changing tells that a
// transaction which changes the content ran when it was pinned.
func (c *contentReader) notOvertaken(changing bool) error {
	if !changing {
		err := c.fs.kv.Peek(c.fs.durably(c.ctx), func(r cluster.Reader) error {
			n, err := record.GetInode(r, c.ino)
			if err == nil {
				changing = n.Content != c.content || n.Version != c.version
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if changing {
		return &overtakenError{c.content}
	}
	return nil
}

// openStored opens what the store holds of an inode. ErrStale.
func (fs *FS) openStored(ctx context.Context, ino Ino) (c *contentReader, err error) {
	err = fs.view(ctx, func(r cluster.Reader) error {
		n, err := record.GetInode(r, ino)
		if err != nil {
			return err
		}
		c, err = fs.openContent(ctx, r, n)
		return err
	})
	return c, err
}

// load reads the page that begins at from. inline bounds its inline bytes; the
// extent that goes beyond is the last one.
func (c *contentReader) load(r cluster.Reader, from int64, inline int) (*readPage, error) {
	list, more, err := extents.LoadPage(r, c.content, from, c.size, c.fs.tune.extentPage, inline)
	if err != nil {
		return nil, err
	}
	p := &readPage{from: from, to: c.size}
	if more {
		p.to = list[len(list)-1].End()
	}
	for i := range list {
		e := list[i].Clip(from, c.size)
		if e.Kind != record.ExtentRef {
			if err := p.add(newSegment(c.content, &e, e.Off)); err != nil {
				return nil, err
			}
			continue
		}
		full, err := c.loadRef(r, p, &e, inline)
		if err != nil {
			return nil, err
		}
		if full {
			break
		}
	}
	return p, nil
}

// loadRef adds what e refers to; full tells that the page ends within.
func (c *contentReader) loadRef(r cluster.Reader, p *readPage, e *record.Extent, inline int) (full bool, err error) {
	c.pin(e.Src)
	list, more, err := extents.LoadPage(r, e.Src, e.SrcOff, e.SrcOff+e.Len, max(c.fs.tune.extentPage-len(p.segs), 1), inline)
	if err != nil {
		return false, err
	}
	for i := range list {
		s := list[i].Clip(e.SrcOff, e.SrcOff+e.Len)
		if s.Kind == record.ExtentRef {
			return false, fmt.Errorf("%w: content %d refers to a reference in %d", ErrCorrupt, c.content, e.Src)
		}
		if err := p.add(newSegment(e.Src, &s, s.Off-e.SrcOff+e.Off)); err != nil {
			return false, err
		}
	}
	if more {
		last := p.segs[len(p.segs)-1]
		p.to = last.end()
	}
	return more, nil
}

// add appends a segment, which begins where the last one ends or behind:
// reading relies on it.
func (p *readPage) add(s segment) error {
	if n := len(p.segs); n > 0 && s.off < p.segs[n-1].end() {
		return fmt.Errorf("%w: extents overlap at %d", ErrCorrupt, s.off)
	}
	p.segs = append(p.segs, s)
	return nil
}

func newSegment(c ContentID, e *record.Extent, off int64) segment {
	s := segment{off: off, len: e.Len}
	if e.Kind == record.ExtentInline {
		s.data = e.Data
	} else {
		s.blob, s.blobOff = e.BlobID(c), e.BlobOff
	}
	return s
}

// pin protects a source until Close.
func (c *contentReader) pin(id ContentID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pinned {
		if p == id {
			return
		}
	}
	c.fs.pins.Pin(id)
	c.pinned = append(c.pinned, id)
}

// page returns the page that holds off.
func (c *contentReader) page(ctx context.Context, off int64) (*readPage, error) {
	inline := 0
	c.mu.Lock()
	for _, p := range c.pages {
		if p.from <= off && off < p.to {
			c.mu.Unlock()
			return p, nil
		}
		if p.to == off {
			inline = extents.ReadPageInline // in order
		}
	}
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("%w: content reader", ErrClosed)
	}
	var p *readPage
	err := c.fs.view(ctx, func(r cluster.Reader) (err error) {
		if !c.fs.feed.Complete() {
			n, err := record.GetInode(r, c.ino)
			if err != nil {
				return err
			}
			if n.Content != c.content || n.Version != c.version {
				return c.stale()
			}
		}
		p, err = c.load(r, off, inline)
		return err
	})
	if err != nil {
		return nil, err
	}
	if c.fs.pins.Changes(c.content) != c.changes {
		return nil, c.stale()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pages) < maxReadPages {
		c.pages = append(c.pages, p)
	} else {
		c.pages[c.next] = p
		c.next = (c.next + 1) % maxReadPages
	}
	return p, nil
}

func (c *contentReader) stale() error {
	return fmt.Errorf("inode %d changed while it was read: %w", c.ino, ErrStale)
}

// ReadAt reads like io.ReaderAt.
func (c *contentReader) ReadAt(p []byte, off int64) (int, error) { return c.readAt(c.ctx, p, off) }

func (c *contentReader) readAt(ctx context.Context, p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("%w: offset %d", ErrInvalid, off)
	}
	if off >= c.size {
		return 0, io.EOF
	}
	if rest := c.size - off; int64(len(p)) > rest {
		p, err = p[:rest], io.EOF
	}
	for n < len(p) {
		page, e := c.page(ctx, off+int64(n))
		if e != nil {
			return n, e
		}
		at := off + int64(n)
		part := p[n:min(int64(len(p)), page.to-off)]
		if e := c.readPage(ctx, page, part, at); e != nil {
			return n, e
		}
		n += len(part)
	}
	return n, err
}

// readPage fills p, which lies within page, from offset off on.
func (c *contentReader) readPage(ctx context.Context, page *readPage, p []byte, off int64) error {
	end := off + int64(len(p))
	for i := page.find(off); i < len(page.segs) && page.segs[i].off < end; i++ {
		s := &page.segs[i]
		if s.off > off {
			clear(p[:s.off-off])
			p, off = p[s.off-off:], s.off
		}
		k := min(s.end(), end) - off
		if err := c.readSegment(ctx, s, p[:k], off-s.off); err != nil {
			return err
		}
		p, off = p[k:], off+k
	}
	clear(p)
	return nil
}

func (c *contentReader) readSegment(ctx context.Context, s *segment, p []byte, off int64) error {
	if s.data != nil {
		copy(p, s.data[off:])
		return nil
	}
	n, err := c.fs.quarantine.Read(ctx, s.blob, p, s.blobOff+off)
	switch {
	case n == len(p) && (err == nil || errors.Is(err, io.EOF)):
		return nil
	case errors.Is(err, cluster.ErrNotFound):
		return c.missing(ctx, s, err)
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("%w: blob %v is too short", ErrCorrupt, s.blob)
	}
	return fserr.Map(err)
}

// missing tells a blob that was collected after another process replaced the
// content from one that is lost.
func (c *contentReader) missing(ctx context.Context, s *segment, cause error) error {
	err := c.fs.view(ctx, func(r cluster.Reader) error {
		n, err := record.GetInode(r, c.ino)
		if err == nil && (n.Content != c.content || n.Version != c.version) {
			err = c.stale()
		}
		return err
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: inode %d at %d: %w", ErrCorrupt, c.ino, s.off, cause)
}

// find returns the index of the first segment that ends behind off.
func (p *readPage) find(off int64) int {
	lo, hi := 0, len(p.segs)
	for lo < hi {
		if m := (lo + hi) / 2; p.segs[m].end() <= off {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// Close releases the bytes to the collector. A nil reader has none.
func (c *contentReader) Close() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		for _, id := range c.pinned {
			c.fs.pins.Unpin(id)
		}
		c.pinned, c.pages = nil, nil
	}
	return nil
}

var _ io.ReaderAt = (*contentReader)(nil)

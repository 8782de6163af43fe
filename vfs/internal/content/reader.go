package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// maxReadPages bounds the pages of extents that one reader keeps.
const maxReadPages = 4

// Reader reads the bytes that an inode had when it was made, whatever
// happens to the inode concurrently. It is safe for concurrent use.
//
// The first page of extents is loaded with the inode; contents with more
// load theirs when they are needed, and give ErrStale if the content changed
// in place since, never a mixture.
type Reader struct {
	s       *Store
	ctx     context.Context
	ino     record.Ino
	content record.ContentID
	size    int64
	version uint64
	changes uint64      // of the pin
	dropped atomic.Bool // the inode lost the content as it was when c was made

	mu     sync.Mutex
	pages  []*Page
	next   int // page to replace
	pinned []record.ContentID
	closed bool
}

// Open begins reading n's content as of r's snapshot, which must be
// that of View or Peek. ctx is that of all reading. An overtakenError is for
// these two.
func (s *Store) Open(ctx context.Context, r cluster.Reader, n *record.Inode) (*Reader, error) {
	c := &Reader{s: s, ctx: ctx, ino: n.Ino, content: n.Content, size: n.Size, version: n.Version}
	var changing bool
	c.changes, changing = s.Pins.Pin(n.Content)
	c.pinned = append(c.pinned, n.Content)
	if n.Content == 0 || n.Size == 0 {
		c.pages = []*Page{{To: n.Size}}
		return c, nil
	}
	p, err := c.load(r, 0, extents.ReadPageInline)
	if err == nil && p.To < n.Size {
		// A change counts against the pages to come from the pin on, and must
		// not lie between the snapshot and the pin.
		err = c.notOvertaken(changing)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	c.pages = []*Page{p}
	return c, nil
}

// notOvertaken looks at the inode as it is now. changing reports whether a
// transaction which changes the content ran when it was pinned.
func (c *Reader) notOvertaken(changing bool) error {
	if !changing {
		err := c.s.KV.Peek(c.s.Durably(c.ctx), func(r cluster.Reader) (err error) {
			changing, err = replaced(r, c.ino, c.content, c.version)
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

// OpenStored opens what the store holds of an inode; ErrStale.
func (s *Store) OpenStored(ctx context.Context, ino record.Ino) (c *Reader, err error) {
	err = s.View(ctx, func(r cluster.Reader) error {
		n, err := record.GetInode(r, ino)
		if err != nil {
			return err
		}
		c, err = s.Open(ctx, r, n)
		return err
	})
	return c, err
}

// load reads the page that begins at from. inline bounds its inline bytes; the
// extent that goes beyond is the last one.
func (c *Reader) load(r cluster.Reader, from int64, inline int) (*Page, error) {
	list, more, err := extents.LoadPage(r, c.content, from, c.size, extents.PageBounds{Extents: c.s.ExtentPage, InlineBytes: inline})
	if err != nil {
		return nil, err
	}
	p := &Page{From: from, To: c.size}
	if more {
		p.To = list[len(list)-1].End()
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

// loadRef adds what e refers to; full reports whether the page ends within.
func (c *Reader) loadRef(r cluster.Reader, p *Page, e *record.Extent, inline int) (full bool, err error) {
	if err := c.pin(e.Src); err != nil {
		return false, err
	}
	list, more, err := extents.LoadPage(r, e.Src, e.SrcOff, e.SrcOff+e.Len, extents.PageBounds{Extents: max(c.s.ExtentPage-len(p.Segs), 1), InlineBytes: inline})
	if err != nil {
		return false, err
	}
	for i := range list {
		s := list[i].Clip(e.SrcOff, e.SrcOff+e.Len)
		if s.Kind == record.ExtentRef {
			return false, fmt.Errorf("%w: content %d refers to a reference in %d", fserr.ErrCorrupt, c.content, e.Src)
		}
		if err := p.add(newSegment(e.Src, &s, s.Off-e.SrcOff+e.Off)); err != nil {
			return false, err
		}
	}
	if more {
		last := p.Segs[len(p.Segs)-1]
		p.To = last.End()
	}
	return more, nil
}

// pin protects a source until Close; ErrClosed after that, when nobody would unpin it.
func (c *Reader) pin(id record.ContentID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	if !slices.Contains(c.pinned, id) {
		c.s.Pins.Pin(id)
		c.pinned = append(c.pinned, id)
	}
	return nil
}

var errClosed = fmt.Errorf("%w: content reader", fserr.ErrClosed)

// Page returns the page that holds off.
func (c *Reader) Page(ctx context.Context, off int64) (*Page, error) {
	inline := 0
	c.mu.Lock()
	for _, p := range c.pages {
		if p.From <= off && off < p.To {
			c.mu.Unlock()
			return p, nil
		}
		if p.To == off {
			inline = extents.ReadPageInline // in order
		}
	}
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	var p *Page
	err := c.s.View(ctx, func(r cluster.Reader) (err error) {
		if !c.s.Feed.Complete() {
			if err := c.checkUnchanged(r); err != nil {
				return err
			}
		}
		p, err = c.load(r, off, inline)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed { // while it was loaded
		return nil, errClosed
	}
	if c.s.Pins.Changes(c.content) != c.changes {
		return nil, c.stale()
	}
	if len(c.pages) < maxReadPages {
		c.pages = append(c.pages, p)
	} else {
		c.pages[c.next] = p
		c.next = (c.next + 1) % maxReadPages
	}
	return p, nil
}

func (c *Reader) stale() error {
	return fmt.Errorf("inode %d changed while it was read: %w", c.ino, fserr.ErrStale)
}

// Size returns the length of the content in bytes.
func (c *Reader) Size() int64 { return c.size }

// Version returns that of the inode when the Reader was made.
func (c *Reader) Version() uint64 { return c.version }

// ReadAt reads like io.ReaderAt.
func (c *Reader) ReadAt(p []byte, off int64) (int, error) { return c.Read(c.ctx, p, off) }

// Read reads like io.ReaderAt, for ctx.
func (c *Reader) Read(ctx context.Context, p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("%w: offset %d", fserr.ErrInvalid, off)
	}
	if off >= c.size {
		return 0, io.EOF
	}
	if rest := c.size - off; int64(len(p)) > rest {
		p, err = p[:rest], io.EOF
	}
	for n < len(p) {
		page, e := c.Page(ctx, off+int64(n))
		if e != nil {
			return n, e
		}
		at := off + int64(n)
		part := p[n:min(int64(len(p)), page.To-off)]
		if e := c.fill(ctx, page, part, at); e != nil {
			return n, e
		}
		n += len(part)
	}
	return n, err
}

// fill fills p, which lies within page, from offset off on.
func (c *Reader) fill(ctx context.Context, page *Page, p []byte, off int64) error {
	end := off + int64(len(p))
	for i := page.Find(off); i < len(page.Segs) && page.Segs[i].Off < end; i++ {
		s := &page.Segs[i]
		if s.Off > off {
			clear(p[:s.Off-off])
			p, off = p[s.Off-off:], s.Off
		}
		k := min(s.End(), end) - off
		if err := c.readSegment(ctx, s, p[:k], off-s.Off); err != nil {
			return err
		}
		p, off = p[k:], off+k
	}
	clear(p)
	return nil
}

func (c *Reader) readSegment(ctx context.Context, s *Segment, p []byte, off int64) error {
	if s.Data != nil {
		copy(p, s.Data[off:])
		return nil
	}
	n, err := c.s.Blobs.ReadSummed(ctx, cluster.SummedBlob{ID: s.Blob, CRC: s.BlobCRC}, p, s.BlobOff+off)
	switch {
	case n == len(p) && (err == nil || errors.Is(err, io.EOF)):
		return nil
	case errors.Is(err, cluster.ErrNotFound):
		return c.missing(ctx, s, err)
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("%w: blob %v is too short", fserr.ErrCorrupt, s.Blob)
	}
	return fserr.Map(err)
}

// Splice puts up to n bytes at off into a pipe, as cluster.BlobSplicer does. What
// it does not take, Read reads.
func (c *Reader) Splice(w int, off, n int64) (int64, error) {
	if off < 0 || off >= c.size {
		return 0, io.EOF
	}
	page, err := c.Page(c.ctx, off)
	if err != nil {
		return 0, err
	}
	i := page.Find(off)
	if i == len(page.Segs) || page.Segs[i].Off > off || page.Segs[i].Data != nil {
		return 0, cluster.ErrNoSplice
	}
	s := &page.Segs[i]
	return c.s.Blobs.Splice(c.ctx, s.Blob, w, s.BlobOff+off-s.Off, min(n, s.End()-off))
}

// missing distinguishes a blob that was collected after another process replaced the
// content from one that is lost.
func (c *Reader) missing(ctx context.Context, s *Segment, cause error) error {
	if err := c.s.View(ctx, c.checkCurrent); err != nil {
		return err
	}
	return fmt.Errorf("%w: inode %d at %d: %w", fserr.ErrCorrupt, c.ino, s.Off, cause)
}

// Close releases the bytes to the collector. A nil reader has none.
func (c *Reader) Close() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		for _, id := range c.pinned {
			c.s.Pins.Unpin(id)
		}
		c.pinned, c.pages = nil, nil
	}
	return nil
}

var _ io.ReaderAt = (*Reader)(nil)

// DataAt returns the first stored range that ends behind off; it begins at
// or behind the end of the content if there is none.
func (c *Reader) DataAt(ctx context.Context, off int64) (from, to int64, err error) {
	for off < c.size {
		p, err := c.Page(ctx, off)
		if err != nil {
			return 0, 0, err
		}
		if i := p.Find(off); i < len(p.Segs) {
			return p.Segs[i].Off, p.Segs[i].End(), nil
		}
		off = p.To
	}
	return record.MaxFileBytes, record.MaxFileBytes, nil
}

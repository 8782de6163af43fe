package vfs

import (
	"context"
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/changeclock"
)

const (
	// firstAttrs is for how many entries at least attributes are read ahead when they
	// are asked for; it doubles while they are, up to maxAttrs.
	firstAttrs = 32
	maxAttrs   = 1024
	// stepBack is how many entries before the next one a reader may go back
	// within a page: those of a reply that it had no room for.
	stepBack = 512
)

// DirStream lists one directory for a reader that comes back for each few
// entries: what a page of the directory held beyond them is kept, where no other
// process can change it (FS.Exclusive). It is for one goroutine at a time, and
// needs no closing.
type DirStream struct {
	fs    *FS
	dir   Ino
	limit int // of the last page

	page   []DirEntry
	start  string // position before the page
	next   int    // of page, not given out yet
	full   bool   // more may follow the page
	begun  uint64 // changes of the directory, before the page was read
	quiet  bool   // none was under way
	search bool   // who had it read may search the directory, and have attributes

	// Attributes of page[from:to] were read when the clock stood at stamp.
	from, to, attrs int
	stamp, mark     uint64
}

// OpenDirStream returns a stream at no position in particular.
func (fs *FS) OpenDirStream(dir Ino) *DirStream { return &DirStream{fs: fs, dir: dir} }

// Read is FS.ReadDir of the stream's directory. What fn is given is as new as
// the call: entries that were kept are read again if the directory changed
// meanwhile, and attributes if they did. fn must not keep e. An entry for
// which fn returned an error comes again.
func (s *DirStream) Read(ctx context.Context, cred *Cred, o ReadDirOptions, fn func(e *DirEntry) error) error {
	if !s.fs.feed.Complete() { // nothing is kept: no more is read than is taken
		return s.fs.ReadDir(ctx, cred, s.dir, o, func(e DirEntry) error { return fn(&e) })
	}
	for loads := 0; ; loads++ {
		if loads > 0 || !s.seek(o.After) {
			if err := s.load(ctx, cred, o); err != nil {
				return err
			}
		}
		for s.next < len(s.page) {
			if o.Attrs && s.search {
				if err := s.fillAttr(ctx, s.next, o.Few); err != nil {
					return err
				}
			}
			e := &s.page[s.next]
			if err := fn(e); err != nil {
				if errors.Is(err, cluster.ErrStop) {
					return nil
				}
				return err
			}
			o.After = e.Pos
			s.next++
		}
		if !s.full {
			return nil
		}
	}
}

// Holds reports whether a Read of what follows after need not ask the store for names.
func (s *DirStream) Holds(after string) bool { return s.seek(after) }

// seek reports whether the page holds what follows after, and goes there.
func (s *DirStream) seek(after string) bool {
	if !s.quiet {
		return false
	}
	if begun, _ := s.fs.Changes(s.dir); begun != s.begun {
		return false
	}
	for i := s.next; i >= max(0, s.next-stepBack); i-- {
		if s.position(i) == after {
			s.next = i
			return i < len(s.page) || !s.full
		}
	}
	return false
}

// position is that before page[i].
func (s *DirStream) position(i int) string {
	if i == 0 {
		return s.start
	}
	return s.page[i-1].Pos
}

// load reads the page behind o.After. The longer the listing, the larger it is.
func (s *DirStream) load(ctx context.Context, cred *Cred, o ReadDirOptions) error {
	if o.After == "" {
		s.limit, s.attrs = 0, 0
	}
	s.limit = min(max(firstPage, o.Few, 2*s.limit), maxPage)
	begun, ended := s.fs.Changes(s.dir)
	page, search, err := s.fs.readPage(ctx, cred, s.dir, ReadDirOptions{After: o.After}, s.limit)
	if err != nil {
		s.page, s.quiet = nil, false
		return err
	}
	s.page, s.start, s.next, s.full = page, o.After, 0, len(page) == s.limit
	s.begun, s.quiet, s.search = begun, begun == ended, search
	s.from, s.to = 0, 0
	return nil
}

// fillAttr sets the attributes of page[i] to what they are now; few are asked for.
func (s *DirStream) fillAttr(ctx context.Context, i, few int) error {
	if i < s.from || i >= s.to {
		if err := s.loadAttrs(ctx, i, few); err != nil {
			return err
		}
	}
	e := &s.page[i]
	switch {
	case e.Attr == nil:
		return nil
	case s.holds(e):
		if ns, ok := s.fs.reads.Get(uint64(e.Ino), e.Attr.Atime.UnixNS()); ok {
			e.Attr.Atime = TimeNS(ns)
		}
		return nil
	}
	a, err := s.fs.attrFor(ctx, e.Ino)
	switch {
	case errors.Is(err, ErrStale):
		e.Attr = nil // it vanished concurrently
	case err != nil:
		return err
	default:
		e.Attr = &a
	}
	return nil
}

// holds reports whether the attributes of e are still what they were read as.
func (s *DirStream) holds(e *DirEntry) bool {
	fs := s.fs
	if fs.opened(e.Ino) != nil || fs.session.Open.LeftSince(s.mark, e.Ino) {
		return false // its bytes may not be flushed
	}
	return fs.attrs.Clock == nil || fs.attrs.Clock.Quiet(changeclock.InodeSlot(e.Ino), s.stamp)
}

// loadAttrs reads the attributes of page[from] and of some that follow, few or more.
func (s *DirStream) loadAttrs(ctx context.Context, from, few int) error {
	s.attrs = min(max(firstAttrs, few, 2*s.attrs), maxAttrs)
	s.from, s.to = from, min(from+s.attrs, len(s.page))
	s.stamp, s.mark = s.fs.attrs.Clock.Stamp(), s.fs.session.Open.Mark()
	list := s.page[s.from:s.to]
	err := s.fs.view(ctx, func(r cluster.Reader) error {
		for i := range list {
			list[i].Attr = nil
		}
		return s.fs.fillAttrs(r, list)
	})
	if err != nil {
		s.to = s.from
	}
	return err
}

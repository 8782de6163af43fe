package fusemount

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/fusemount/internal/fuseabi"
	"ogw/fusemount/ledger"
	"ogw/vfs"
	"ogw/vfs/lock"
)

// ErrOtherMount is returned by TakeOver for a mount that another version, or
// other options, made: its programs would be served wrongly.
var ErrOtherMount = errors.New("the mount was agreed upon with the kernel in another way")

// survival is what makes a mount survive its server: see doc.go. It is nil for
// mounts that do not.
type survival struct {
	f    *rawFS
	book *ledger.Ledger // requests use it as they are; others, withBook
	life sync.RWMutex   // held while others use book
	gone bool           // guarded by life: book is closed

	number uint64 // of the mount

	// opens are the requests that opened what was open at the take-over. They
	// may not have been answered.
	opens map[uint64]uint64
}

// openRecord is what a handle was opened with, as the ledger has it.
func openRecord(flags vfs.OpenFlags, killPriv, direct bool) uint64 {
	r := uint64(flags &^ vfs.OpenTrunc)
	if killPriv {
		r |= recordKillPriv
	}
	if direct {
		r |= recordDirect
	}
	return r
}

const (
	recordSync     = uint64(vfs.OpenSync) // for stable; File.WriteAt is not to sync each piece of a write
	recordKillPriv = 1 << 32
	recordDirect   = 1 << 33
	recordLost     = 1 << 34 // writes did not survive, and the writer does not know
	recordNoAtime  = 1 << 35 // O_NOATIME
	recordWrote    = 1 << 36 // the rest is the number of the content that was written through it
	recordEpochLow = 37      // where the low bits of that number are
)

// survive makes the mount one that survives: what happens from now on is in book.
func (f *rawFS) survive(book *ledger.Ledger) {
	f.client = lockClient(book.Mount()) // also of the next server
	f.surv = &survival{f: f, book: book, number: book.Mount(), opens: make(map[uint64]uint64)}
	f.fs.KeptBefore(book.Journal.Last())
	f.files.book, f.dirs.book = book.Files, book.Dirs
	f.fs.Locks().SetJournal(f.client, f.surv.locked)
}

// Reserve implements vfs.Keeper.
func (s *survival) Reserve(ctx context.Context, n int) (done func(), err error) {
	err = s.book.Journal.Reserve(ctx, n, func(ctx context.Context, ino uint64) error { return s.f.fs.Flush(ctx, vfs.Ino(ino)) })
	return func() { s.book.Journal.Unreserve(n) }, err
}

// Keep implements vfs.Keeper.
func (s *survival) Keep(w *vfs.KeptWrite) {
	err := s.book.Journal.Keep(&ledger.Write{
		Ino: uint64(w.Ino), Epoch: w.Epoch, Off: w.Off, Data: w.Data, Unique: w.Tag, KillPriv: w.KillPriv, Seq: w.Seq,
	})
	if err != nil { // Reserve saw to it that there is room
		s.f.opt.Logger.Error("a write would not survive the server", "inode", w.Ino, "err", err)
	}
	if w.Tag != 0 {
		s.book.Writes.Done(w.Tag, len(w.Data))
	}
}

// Stored implements vfs.Keeper.
func (s *survival) Stored(ino vfs.Ino, seq uint64) {
	s.withBook(func(b *ledger.Ledger) { b.Journal.Stored(uint64(ino), seq) })
}

// Lost implements vfs.Keeper.
func (s *survival) Lost(ino vfs.Ino) {
	s.f.files.each(func(fh uint64, h *fileHandle) {
		if h.ino == ino && h.bound.Load() {
			s.withBook(func(b *ledger.Ledger) { b.Files.Mark(fh, recordLost) })
		}
	})
}

// bind records to which content a handle wrote, before the first write is answered.
func (s *survival) bind(ctx context.Context, fh uint64, h *fileHandle) {
	if s == nil || h.bound.Load() {
		return
	}
	if epoch, wrote, err := h.file.Epoch(ctx); err == nil && wrote {
		s.book.Files.Mark(fh, recordWrote|epoch<<recordEpochLow)
		h.bound.Store(true)
	}
}

// Oldest implements vfs.Keeper.
func (s *survival) Oldest(ino vfs.Ino) (seq uint64, ok bool) {
	s.withBook(func(b *ledger.Ledger) { seq, ok = b.Journal.Oldest(uint64(ino)) })
	return seq, ok
}

// ID implements vfs.Keeper.
func (s *survival) ID() uint64 { return s.number }

// withBook calls fn, unless the superblock does not survive, or is gone.
func (s *survival) withBook(fn func(b *ledger.Ledger)) {
	if s == nil {
		return
	}
	s.life.RLock()
	defer s.life.RUnlock()
	if !s.gone {
		fn(s.book)
	}
}

// end closes the book.
func (s *survival) end() {
	s.life.Lock()
	defer s.life.Unlock()
	s.gone = true
	if err := s.book.Close(); err != nil {
		s.f.opt.Logger.Error("the memory of a mount that is gone", "err", err)
	}
}

// locked is the journal of locks.
func (s *survival) locked(ino uint64, space lock.Space, held []lock.Lock) {
	list := make([]ledger.Lock, 0, len(held))
	for _, l := range held {
		list = append(list, ledger.Lock{
			Owner: binary.BigEndian.Uint64([]byte(l.Owner.ID)), Start: l.Start, End: l.End, PID: l.PID, Exclusive: l.Type == lock.Exclusive,
		})
	}
	s.withBook(func(b *ledger.Ledger) {
		if err := b.Locks.Set(ino, uint8(space), list); err != nil {
			s.f.opt.Logger.Error("a lock would not survive the server", "inode", ino, "err", err)
		}
	})
}

// wrote returns how much a request that is sent again wrote already.
func (s *survival) wrote(h *fuse.InHeader) (n int, done bool) {
	if s == nil || h.Unique&resentBit == 0 {
		return 0, false
	}
	return s.book.Writes.Find(h.Unique &^ resentBit)
}

// answering has what a request changes be found until answered is called, however many others
// come meanwhile: it waits before it is answered.
func (s *survival) answering(h *fuse.InHeader) (answered func()) {
	if s == nil {
		return func() {}
	}
	unique := h.Unique &^ resentBit
	s.book.Writes.Begin(unique)
	return func() { s.book.Writes.End(unique) }
}

// note records that a request that is about to be answered changed n bytes, for
// wrote.
func (s *survival) note(h *fuse.InHeader, n int) {
	if s != nil {
		s.book.Writes.Done(h.Unique&^resentBit, n)
	}
}

// opened returns the number of what a request that is sent again opened already.
func (s *survival) opened(h *fuse.InHeader) (fh uint64, done bool) {
	if s == nil || h.Unique&resentBit == 0 {
		return 0, false
	}
	fh, done = s.opens[h.Unique&^resentBit]
	return fh, done
}

// lose notes that writes to ino did not survive, for whoever has it open to
// write, until each of them got it.
func (f *rawFS) lose(ino vfs.Ino, why error) {
	writers := 0
	f.files.each(func(fh uint64, h *fileHandle) {
		if h.ino == ino && h.record&uint64(vfs.OpenWrite) != 0 {
			writers++
			f.surv.withBook(func(b *ledger.Ledger) { b.Files.Mark(fh, recordLost) }) // the superblock may have ended
			h.lost.Store(true)
		}
	})
	f.opt.Logger.Error("writes that were answered are lost; who has the file open to write gets EIO", "inode", ino, "writers", writers, "err", why)
}

// tellLost returns what fsync or close returns when Sync returned err: once an error if
// writes through the handle may not have survived a server.
func (f *rawFS) tellLost(fh uint64, h *fileHandle, err error) error {
	if h.lost.Swap(false) {
		err = vfs.ErrIO
	} else if !errors.Is(err, vfs.ErrStale) {
		return err
	}
	f.surv.withBook(func(b *ledger.Ledger) { b.Files.Unmark(fh, recordLost) })
	return err
}

// once is the context of a request that must not happen twice.
func (f *rawFS) once(ctx context.Context, h *fuse.InHeader) context.Context {
	if f.surv == nil {
		return ctx
	}
	unique := h.Unique &^ resentBit
	token := new(vfs.Token)
	// The beginning of the ID chooses the place of its record.
	binary.NativeEndian.PutUint64(token.ID[:], (unique^f.surv.book.Mount())*0x9E3779B97F4A7C15)
	binary.NativeEndian.PutUint64(token.ID[8:], unique)
	binary.BigEndian.PutUint16(token.ID[:], uint16(unique/2))
	return vfs.WithToken(ctx, token)
}

// negotiated takes note of what the answer to INIT agreed to.
func (f *rawFS) negotiated(reply []byte) {
	answer := new(fuse.InitOut)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(answer)), unsafe.Sizeof(*answer)), reply[fuseabi.OutHeaderSize:])
	f.agreed(answer.Flags64())
}

// agreed takes note of what kernel and server can both do.
func (f *rawFS) agreed(flags uint64) {
	f.direct = flags&fuse.CAP_DIRECT_IO_ALLOW_MMAP != 0 && !f.opt.Writeback
	f.unopened = flags&fuse.CAP_NO_OPENDIR_SUPPORT != 0 && f.listings.life > 0
}

// name is the superblock's, for its Holder.
func (s *survival) name() string { return mountName(s.book.Mount()) }

// mountName is what the Holder knows a superblock by.
func mountName(number uint64) string { return fmt.Sprintf("%016x", number) }

// setDevice records the number of the superblock, by which its mounts are found.
func (s *survival) setDevice(device string) {
	s.withBook(func(b *ledger.Ledger) { b.SetDevice(device) })
}

// listing notes that a listing begins of a directory with a change time, goes on, or ends.
func (s *survival) listing(l ledger.Listing, ctime int64, some bool) {
	switch {
	case s == nil:
	case ctime != 0:
		s.book.Listings.Begin(l, ctime)
	case some:
		s.book.Listings.GoOn(l)
	default:
		s.book.Listings.End(l)
	}
}

// listingBegan returns the change time of the directory when a listing began, if it is known.
func (s *survival) listingBegan(l ledger.Listing) (ctime int64, known bool) {
	if s == nil {
		return 0, false
	}
	return s.book.Listings.Began(l)
}

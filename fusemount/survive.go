package fusemount

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

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
	book *ledger.Ledger

	// opens are the requests that opened what was open at the take-over. They
	// may not have been answered.
	opens map[uint64]uint64

	mu   sync.Mutex
	lost map[vfs.Ino]struct{} // files whose writes did not survive, until their writers know
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
	recordKillPriv = 1 << 32
	recordDirect   = 1 << 33
)

// survive makes the mount one that survives: what happens from now on is in book.
func (f *rawFS) survive(book *ledger.Ledger) {
	f.surv = &survival{f: f, book: book, opens: make(map[uint64]uint64), lost: make(map[vfs.Ino]struct{})}
	f.files.book, f.dirs.book = book.Files, book.Dirs
	f.fs.Locks().SetJournal(f.client, f.surv.locked)
}

// Reserve implements vfs.Keeper.
func (s *survival) Reserve(ctx context.Context, n int) (done func(), err error) {
	err = s.book.Journal.Reserve(ctx, n, func(ctx context.Context, ino uint64) error { return s.f.fs.Flush(ctx, vfs.Ino(ino)) })
	return func() { s.book.Journal.Unreserve(n) }, err
}

// Keep implements vfs.Keeper.
func (s *survival) Keep(w *vfs.KeptWrite) uint64 {
	mark, err := s.book.Journal.Keep(&ledger.Write{
		Ino: uint64(w.Ino), Epoch: w.Epoch, Off: w.Off, Data: w.Data, Unique: w.Tag, KillPriv: w.KillPriv,
	})
	if err != nil { // Reserve saw to it that there is room
		s.f.opt.Logger.Error("a write would not survive the server", "inode", w.Ino, "err", err)
	}
	if w.Tag != 0 {
		s.book.Appends.Done(w.Tag, len(w.Data))
	}
	return mark
}

// Stored implements vfs.Keeper.
func (s *survival) Stored(ino vfs.Ino, mark uint64) { s.book.Journal.Stored(uint64(ino), mark) }

// locked is the journal of locks.
func (s *survival) locked(ino uint64, space lock.Space, held []lock.Lock) {
	list := make([]ledger.Lock, 0, len(held))
	for _, l := range held {
		list = append(list, ledger.Lock{
			Owner: binary.BigEndian.Uint64([]byte(l.Owner.ID)), Start: l.Start, End: l.End, PID: l.PID, Exclusive: l.Type == lock.Exclusive,
		})
	}
	if err := s.book.Locks.Set(ino, uint8(space), list); err != nil {
		s.f.opt.Logger.Error("a lock would not survive the server", "inode", ino, "err", err)
	}
}

// appended tells what a request that is sent again appended already.
func (s *survival) appended(h *fuse.InHeader) (n int, done bool) {
	if s == nil || h.Unique&resentBit == 0 {
		return 0, false
	}
	return s.book.Appends.Find(h.Unique &^ resentBit)
}

// opened returns the number of what a request that is sent again opened already.
func (s *survival) opened(h *fuse.InHeader) (fh uint64, done bool) {
	if s == nil || h.Unique&resentBit == 0 {
		return 0, false
	}
	fh, done = s.opens[h.Unique&^resentBit]
	return fh, done
}

// isLost tells whether writes to ino did not survive. told ends that: the writer
// learns of it.
func (s *survival) isLost(ino vfs.Ino, told bool) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, lost := s.lost[ino]
	if told {
		delete(s.lost, ino)
	}
	return lost
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

// connectSurviving is connect of a superblock that survives: what the kernel and
// we agree upon is kept before the kernel knows.
func (c *connection) connectSurviving(fd int, api fuse.RawFileSystem, options *fuse.MountOptions) error {
	c.loop = newLoop(c.raw, fd, api, options)
	book, err := ledger.New()
	if err != nil {
		return err
	}
	c.raw.survive(book)
	b, err := c.loop.buffer()
	if err != nil {
		return err
	}
	defer c.loop.release(b)
	in := c.loop.read(b)
	if in == nil {
		return errors.New("the kernel sends no INIT")
	}
	out := b[answerAt:]
	n, st := c.loop.proto.HandleRequest([][]byte{in}, [][]byte{out})
	if !st.Ok() || n < outHeaderSize {
		return fmt.Errorf("INIT: %v", st)
	}
	c.raw.negotiated(out[:n])
	if err := book.SetInit(in, out[:n]); err != nil {
		return err
	}
	if err := c.raw.opt.Holder.Hold(c.raw.surv.name(), fd, book.FD()); err != nil {
		return err
	}
	c.raw.inv.server.Store(notifierBox{c.loop})
	c.loop.write(out[:n], 0, opInit)
	c.loop.start()
	return nil
}

// endSurviving waits for the end of the connection and cleans up; false, if it
// is left to the next server.
func (c *connection) endSurviving() bool {
	if !c.loop.wait() {
		return false
	}
	unix.Close(c.loop.fd)
	c.raw.OnUnmount()
	if s := c.raw.surv; s != nil {
		c.raw.opt.Holder.Drop(s.name())
		if err := s.book.Close(); err != nil {
			c.raw.opt.Logger.Error("the memory of a mount that is gone", "err", err)
		}
	}
	return true
}

// TakeOver goes on with a superblock that another server left, by its /dev/fuse
// and its memory, which it takes over in any case. It returns its mounts. That
// server must be gone: the caller has the lock of its store. opt is as it was for
// Mount; nothing must have removed orphans from the store (vfs.Config.Restore).
// It returns ErrOtherMount or ledger.ErrFormat if it cannot serve the
// superblock, which stays as it is then.
func (m *Mounts) TakeOver(opt Options, device, memory int) (_ []*Server, err error) {
	opt = opt.withDefaults(m.fs.Exclusive())
	book, err := ledger.Open(memory)
	if err != nil {
		return nil, errors.Join(err, unix.Close(memory), unix.Close(device))
	}
	c := &connection{set: m, raw: newRawFS(context.Background(), m.fs, opt), served: make(chan struct{}), fd: -1, device: book.Device()}
	c.raw.conn = c
	c.raw.primary.Store(m.empty())
	c.loop = newLoop(c.raw, device, observe(c.raw), mountOptions(opt, m.fs.Exclusive()))
	if err = c.loop.agree(book); err == nil {
		c.fd, err = unix.FcntlInt(uintptr(device), unix.F_DUPFD_CLOEXEC, 0)
	}
	if err != nil {
		c.raw.holds.Close()
		return nil, errors.Join(err, book.Close(), unix.Close(device))
	}
	clean := book.Clean()
	book.SetClean(false)
	if !clean {
		c.raw.pages.distrust()
	}
	c.raw.restore(book)
	c.cancel = m.fs.Watch(&c.raw.inv)
	go c.raw.inv.run()
	go c.raw.sizes.run()
	c.raw.inv.server.Store(notifierBox{c.loop})
	_, out := book.Init()
	c.loop.write(out, 0, opInit) // in case the kernel still waits for it
	if st := c.loop.notify(notifyResend, nil); !st.Ok() && !clean {
		opt.Logger.Warn("requests that the server before had read are not sent again: their callers hang until the mount is aborted; Linux 6.9 can", "err", st.String())
	}
	m.adopt(c)
	c.loop.start()
	go c.serve()
	go c.raw.tellAgain(c.loop, !clean)
	c.shareable = book.Shareable()
	var list []*Server
	for _, dir := range mountsOf(c.device) {
		s := c.newServer(dir.path)
		s.id = dir.id
		c.add(s)
		list = append(list, s)
	}
	if err := m.watch(); err != nil {
		opt.Logger.Warn("the end of a mount that somebody else unmounts is seen late", "err", err)
	}
	return list, nil
}

// negotiated takes note of what the answer to INIT agreed to.
func (f *rawFS) negotiated(reply []byte) {
	answer := new(fuse.InitOut)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(answer)), unsafe.Sizeof(*answer)), reply[outHeaderSize:])
	f.direct = answer.Flags64()&fuse.CAP_DIRECT_IO_ALLOW_MMAP != 0 && !f.opt.Writeback
}

// agree has the protocol server know what was agreed upon with the kernel.
func (p *loop) agree(book *ledger.Ledger) error {
	in, want := book.Init()
	if len(in) < inHeaderSize || len(want) < outHeaderSize+int(unsafe.Sizeof(fuse.InitOut{})) {
		return fmt.Errorf("%w: there is no INIT in it", ledger.ErrFormat)
	}
	// What the kernel offers and the answer did not take stays untaken.
	init := new(fuse.InitIn)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(init)), unsafe.Sizeof(*init)), in)
	answer := new(fuse.InitOut)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(answer)), unsafe.Sizeof(*answer)), want[outHeaderSize:])
	const extended = 1 << 30 // FUSE_INIT_EXT: Flags2 counts
	init.Flags &= answer.Flags | extended
	init.Flags2 &= answer.Flags2
	masked := unsafe.Slice((*byte)(unsafe.Pointer(init)), unsafe.Sizeof(*init))[:min(len(in), int(unsafe.Sizeof(*init)))]
	out := make([]byte, outHeaderSize+4096)
	n, st := p.proto.HandleRequest([][]byte{masked}, [][]byte{out})
	if !st.Ok() {
		return fmt.Errorf("%w: INIT: %v", ErrOtherMount, st)
	}
	p.f.negotiated(want)
	if !bytes.Equal(out[:n], want) {
		return fmt.Errorf("%w: this version or these options would answer INIT with %x, it was %x", ErrOtherMount, out[outHeaderSize:n], want[outHeaderSize:])
	}
	return nil
}

// restore takes up what the server before had: open files, their writes that
// were not stored, directories, locks. A file that cannot be opened again is
// logged; its programs get EBADF.
func (f *rawFS) restore(book *ledger.Ledger) {
	begin := time.Now()
	// What has lost its last name the kernel may know. If it does, FORGET takes
	// it back, whatever the count; if not, the end of the superblock does.
	if err := f.fs.Orphans(f.ctx, func(ino vfs.Ino) error { return f.holds.Restore(f.ctx, ino, 1) }); err != nil {
		f.opt.Logger.Error("what was removed while programs had it is lost to them", "err", err)
	}
	if err := f.holds.Restore(f.ctx, f.opt.Root, 1); err != nil {
		f.opt.Logger.Error("the root directory of a mount is gone", "inode", f.opt.Root, "err", err)
	}
	owners := map[uint64][]lockOwner{}
	book.Owners.Each(func(fh uint64, space uint8, id uint64) {
		owners[fh] = append(owners[fh], lockOwner{lock.Space(space), id})
	})
	opens := map[uint64]uint64{}
	files := 0
	book.Files.Each(func(fh, ino, record, unique uint64) {
		c := *vfs.Root
		c.Trusted = true
		if record&recordKillPriv != 0 {
			c.UID = 1 // whoever it was, not the superuser
		}
		file, err := f.fs.Open(f.ctx, &c, vfs.Ino(ino), vfs.OpenFlags(uint32(record))|vfs.OpenRestored)
		if err != nil {
			f.opt.Logger.Error("a file that programs have open is lost", "inode", ino, "err", err)
			book.Files.Remove(fh)
			return
		}
		files++
		opens[unique] = fh
		h := &fileHandle{ino: vfs.Ino(ino), file: file, direct: record&recordDirect != 0}
		h.wrote.Store(record&uint64(vfs.OpenWrite) != 0) // nobody knows: the next flush stores it
		for _, o := range owners[fh] {
			h.owners.add(o)
		}
		f.sizes.opened(h.ino)
		f.files.put(fh, h)
	})
	dirs := 0
	book.Dirs.Each(func(fh, ino, _, unique uint64) {
		dirs++
		opens[unique] = fh
		f.dirs.put(fh, &dirHandle{ino: vfs.Ino(ino), from: f.fs.OpenDirStream(vfs.Ino(ino)), restored: true})
	})
	type held struct {
		ino   uint64
		space lock.Space
		lock  lock.Lock
	}
	var locks []held
	book.Locks.Each(func(ino uint64, space uint8, l ledger.Lock) {
		h := held{ino, lock.Space(space), lock.Lock{Owner: f.owner(l.Owner), Start: l.Start, End: l.End, PID: l.PID}}
		if l.Exclusive {
			h.lock.Type = lock.Exclusive
		}
		locks = append(locks, h)
	})
	for _, l := range locks {
		if err := f.fs.Locks().Reclaim(l.ino, l.space, l.lock); err != nil {
			f.opt.Logger.Error("a lock is lost", "inode", l.ino, "pid", l.lock.PID, "err", err)
		}
	}
	f.survive(book) // from here on, changes are recorded
	f.surv.opens = opens
	writes := f.rewrite(book)
	f.files.each(func(h *fileHandle) { h.file.KeepWith(f.surv) })
	f.opt.Logger.Info("taken over", "files", files, "directories", dirs, "locks", len(locks), "writes", writes,
		"took", time.Since(begin).Round(time.Microsecond))
}

// rewrite makes the writes again that the server before answered and did not
// store. Those that fail are lost, and their writers are told.
func (f *rawFS) rewrite(book *ledger.Ledger) (count int) {
	type target struct {
		file *vfs.File
		mark uint64
	}
	targets := map[vfs.Ino]*target{}
	fail := func(ino vfs.Ino, err error) {
		f.opt.Logger.Error("writes that were answered are lost; their writers get EIO", "inode", ino, "err", err)
		f.surv.mu.Lock()
		defer f.surv.mu.Unlock()
		f.surv.lost[ino] = struct{}{}
	}
	_ = book.Journal.Each(func(w *ledger.Write, mark uint64) error { // fn returns none
		count++
		ino := vfs.Ino(w.Ino)
		t := targets[ino]
		if t == nil {
			t = &target{}
			targets[ino] = t
			var err error
			if t.file, err = f.fs.Open(f.ctx, vfs.Root, ino, vfs.OpenRead|vfs.OpenWrite|vfs.OpenRewrites); err != nil {
				fail(ino, err)
			}
		}
		t.mark = mark
		if w.Unique != 0 {
			book.Appends.Done(w.Unique, len(w.Data))
		}
		if t.file == nil || f.surv.isLost(ino, false) {
			return nil
		}
		err := t.file.Rewrite(f.ctx, &vfs.KeptWrite{Ino: ino, Epoch: w.Epoch, Off: w.Off, Data: w.Data, KillPriv: w.KillPriv})
		if err != nil {
			fail(ino, err)
		}
		return nil
	})
	for ino, t := range targets {
		if t.file != nil {
			if err := f.fs.Flush(f.ctx, ino); err != nil {
				fail(ino, err)
			}
			if err := t.file.Close(f.ctx); err != nil {
				fail(ino, err)
			}
		}
		book.Journal.Stored(uint64(ino), t.mark)
	}
	return count
}

// tellAgain follows a take-over. Names are looked up again, so that it is known
// which inodes the kernel has. If the server before was killed, the kernel may
// not have been told what other doors had changed then.
func (f *rawFS) tellAgain(p *loop, killed bool) {
	if st := p.notify(notifyIncEpoch, nil); !st.Ok() {
		f.opt.Logger.Debug("names that other doors changed at the end of the server before may be old for as long as names last", "err", st.String())
	}
	if killed {
		f.files.each(func(h *fileHandle) { f.inv.changed(h.ino, true) })
	}
}

// Leave stops serving the mount, if it survives, and all that share its
// superblock, for the next server to take over. Programs that use it wait from
// now on. It returns false for one that does not survive.
func (s *Server) Leave() bool {
	c := s.conn
	if c.loop == nil {
		return false
	}
	if c.loop.leaving.Load() {
		return true // with another one of the superblock
	}
	complete := c.loop.leave()
	c.cancel()
	c.raw.inv.close()
	c.raw.sizes.close()
	c.raw.surv.book.SetClean(complete)
	return true
}

// Survives tells whether the mount survives its server.
func (s *Server) Survives() bool { return s.conn.loop != nil }

// name is the superblock's, for its Holder.
func (s *survival) name() string { return fmt.Sprintf("%016x", s.book.Mount()) }

// setDevice records the number of the superblock, by which its mounts are found.
func (s *survival) setDevice(device string) {
	if s != nil {
		s.book.SetDevice(device)
	}
}

// mountPlace is where a mount is, and its ID.
type mountPlace struct {
	path string
	id   uint64
}

// mountsOf returns the mounts of a superblock that are in the tree. What is
// mounted over another hides that.
func mountsOf(device string) (list []mountPlace) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range strings.SplitSeq(string(table), "\n") {
		if f := strings.Fields(line); len(f) >= 7 && f[2] == device {
			p := mountPlace{path: unescapeMount(f[4])}
			p.id = idAt(p.path)
			list = append(list, p)
		}
	}
	return list
}

// idAt returns the ID of the mount at path, 0 if it is not known. It asks no
// server: the root of a mount is not looked up.
func idAt(path string) (id uint64) {
	done := make(chan struct{})
	go onOwnThread(func() {
		defer close(done)
		if ownDescriptors(-1) != nil {
			return
		}
		if fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0); err == nil {
			id, _ = mountID(fd)
			unix.Close(fd)
		}
	})
	<-done
	return id
}

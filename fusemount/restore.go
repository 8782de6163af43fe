package fusemount

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"ogw/fusemount/ledger"
	"ogw/vfs"
	"ogw/vfs/lock"
)

// restore takes up what the server before had: open files, directories, locks.
// A file that cannot be opened again is logged; its programs get EBADF. Changes
// from here on are recorded.
func (t *taking) restore() {
	f, book := t.raw, t.book
	if book == nil {
		return
	}
	begin := time.Now()
	if err := f.holds.Restore(f.ctx, f.opt.Root, 1); err != nil {
		f.opt.Logger.Error("the root directory of a mount is gone", "inode", f.opt.Root, "err", err)
	}
	opens := map[uint64]uint64{}
	files := t.restoreFiles(opens)
	dirs := 0
	book.Dirs.Each(func(fh, ino, _, unique uint64) {
		dirs++
		opens[unique] = fh
		f.dirs.put(fh, &dirHandle{ino: vfs.Ino(ino), from: f.fs.OpenDirStream(vfs.Ino(ino)), restored: true})
	})
	locks := t.restoreLocks()
	f.survive(book)
	f.surv.opens = opens
	f.opt.Logger.Info("taken over", "device", t.device, "files", files, "directories", dirs, "locks", locks,
		"took", time.Since(begin).Round(time.Microsecond))
}

func (t *taking) restoreFiles(opens map[uint64]uint64) (count int) {
	f, book := t.raw, t.book
	owners := map[uint64][]lockOwner{}
	book.Owners.Each(func(fh uint64, space uint8, id uint64) {
		owners[fh] = append(owners[fh], lockOwner{lock.Space(space), id})
	})
	book.Files.Each(func(fh, ino, record, unique uint64) {
		c := *vfs.Root
		c.Trusted = true
		if record&recordKillPriv != 0 {
			c.UID = 1 // whoever it was, not the superuser
		}
		file, err := f.fs.Open(f.ctx, &c, vfs.Ino(ino), vfs.OpenFlags(uint32(record))|vfs.OpenFlagged)
		if err != nil {
			f.opt.Logger.Error("a file that programs have open is lost", "inode", ino, "err", err)
			book.Files.Remove(fh)
			return
		}
		count++
		opens[unique] = fh
		h := &fileHandle{ino: vfs.Ino(ino), file: file, direct: record&recordDirect != 0}
		h.wrote.Store(record&uint64(vfs.OpenWrite) != 0) // nobody knows: the next flush stores it
		for _, o := range owners[fh] {
			h.owners.add(o)
		}
		f.sizes.opened(h.ino)
		f.files.put(fh, h)
	})
	return count
}

func (t *taking) restoreLocks() (count int) {
	f := t.raw
	t.book.Locks.Each(func(ino uint64, space uint8, l ledger.Lock) {
		count++
		held := lock.Lock{Owner: f.owner(l.Owner), Start: l.Start, End: l.End, PID: l.PID}
		if l.Exclusive {
			held.Type = lock.Exclusive
		}
		if err := f.fs.Locks().Reclaim(ino, lock.Space(space), held); err != nil {
			f.opt.Logger.Error("a lock is lost", "inode", ino, "pid", l.PID, "err", err)
		}
	})
	return count
}

// storers bounds how many files are stored at a time at a take-over.
const storers = 16

// rewriting is a file whose writes are made again.
type rewriting struct {
	file *vfs.File // nil: it cannot be opened
	err  error
	from map[*taking]uint64 // whose programs wrote it: the last mark
}

// replay makes the writes again that the server before answered and did not
// store, of all superblocks in the order in which they were made to a file. Those
// that fail are lost, and their writers are told.
func replay(fs *vfs.FS, list []*taking) {
	type kept struct {
		t    *taking
		w    ledger.Write
		mark uint64
	}
	var writes []kept
	for _, t := range list {
		if t.book == nil {
			continue
		}
		_ = t.book.Journal.Each(func(w *ledger.Write, mark uint64) error { // fn returns none
			writes = append(writes, kept{t, *w, mark})
			return nil
		})
	}
	slices.SortStableFunc(writes, func(a, b kept) int { return cmp.Compare(a.w.Seq, b.w.Seq) })
	files := map[vfs.Ino]*rewriting{}
	for i := range writes {
		k := &writes[i]
		r := files[vfs.Ino(k.w.Ino)]
		if r == nil {
			r = &rewriting{from: make(map[*taking]uint64)}
			files[vfs.Ino(k.w.Ino)] = r
			r.file, r.err = fs.Open(k.t.raw.ctx, vfs.Root, vfs.Ino(k.w.Ino), vfs.OpenRead|vfs.OpenWrite|vfs.OpenRewrites)
		}
		r.write(k.t, &k.w, k.mark)
	}
	begin := time.Now()
	var all sync.WaitGroup
	slots := make(chan struct{}, storers)
	for ino, r := range files {
		slots <- struct{}{}
		all.Go(func() {
			r.store(fs, ino)
			<-slots
		})
	}
	all.Wait()
	for _, t := range list {
		for ino := range files {
			t.changed[ino] = struct{}{}
		}
		t.raw.files.each(func(h *fileHandle) { h.file.KeepWith(t.raw.surv) })
	}
	if len(writes) > 0 {
		list[0].raw.opt.Logger.Info("writes of the server before are stored", "writes", len(writes), "files", len(files),
			"took", time.Since(begin).Round(time.Microsecond))
	}
}

// write makes one write again.
func (r *rewriting) write(t *taking, w *ledger.Write, mark uint64) {
	r.from[t] = mark
	if w.Unique != 0 {
		t.book.Writes.Done(w.Unique, len(w.Data))
	}
	if r.err == nil {
		r.err = r.file.Rewrite(t.raw.ctx, &vfs.KeptWrite{Ino: vfs.Ino(w.Ino), Epoch: w.Epoch, Off: w.Off, Data: w.Data, KillPriv: w.KillPriv})
	}
}

// store stores what was written. Only then the journals let go of it.
func (r *rewriting) store(fs *vfs.FS, ino vfs.Ino) {
	if r.file != nil {
		r.err = cmp.Or(r.err, fs.Flush(context.Background(), ino), r.file.Close(context.Background()))
	}
	for t, mark := range r.from {
		if r.err != nil {
			t.raw.surv.lose(ino, r.err)
		}
		t.book.Journal.Stored(uint64(ino), mark)
	}
}

// lose notes that writes to ino did not survive.
func (s *survival) lose(ino vfs.Ino, why error) {
	s.f.opt.Logger.Error("writes that were answered are lost; their writers get EIO", "inode", ino, "err", why)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[ino] = struct{}{}
}

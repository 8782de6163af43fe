package fusemount

import (
	"errors"
	"fmt"
	"time"

	"ogw/fusemount/ledger"
	"ogw/vfs"
	"ogw/vfs/lock"
)

// restore takes up what the server before had: open files, directories, locks.
// A file that is gone is logged; its programs get EBADF. After an error of the store that
// may be over, the superblock is not served, and the ledger has all of it. Changes from here
// on are recorded.
func (t *taking) restore() {
	f, book := t.raw, t.book
	if book == nil {
		return
	}
	f.client = lockClient(book.Mount()) // what its locks are known by, at all gateways
	begin := time.Now()
	if err := f.holds.Restore(f.ctx, f.opt.Root, 1); err != nil {
		t.lost("the root directory of a mount", f.opt.Root, err)
	}
	opens := map[uint64]uint64{}
	files := t.restoreFiles(opens)
	dirs := 0
	f.listings.goOn()
	book.Dirs.Each(func(fh, ino, _, unique uint64) {
		dirs++
		opens[unique] = fh
		f.dirs.put(fh, &dirHandle{ino: vfs.Ino(ino)})
	})
	locks := t.restoreLocks()
	f.survive(book)
	f.surv.opens = opens
	f.opt.Logger.Info("taken over", "device", t.device, "files", files, "directories", dirs, "locks", locks,
		"took", time.Since(begin).Round(time.Microsecond))
}

func (t *taking) restoreFiles(opens map[uint64]uint64) (count int) {
	f, book := t.raw, t.book
	t.unopened = make(map[uint64]vfs.Ino)
	owners := map[uint64][]lockOwner{}
	book.Owners.Each(func(fh uint64, space uint8, id uint64) {
		owners[fh] = append(owners[fh], lockOwner{lock.Space(space), id})
	})
	book.Files.Each(func(fh, ino, record, unique uint64) {
		c := vfs.Root.Checked()
		if record&recordKillPriv != 0 {
			c = vfs.CheckedCred(vfs.NobodyUID, vfs.NobodyUID) // whoever it was, not the superuser
		}
		file, err := f.fs.Open(f.ctx, c, vfs.Ino(ino), vfs.OpenFlags(uint32(record&^recordSync))|vfs.OpenFlagged)
		if err != nil {
			if t.lost("a file that programs have open", vfs.Ino(ino), err) {
				book.Files.Remove(fh)
			} else {
				t.unopened[fh] = vfs.Ino(ino)
			}
			return
		}
		count++
		opens[unique] = fh
		h := &fileHandle{ino: vfs.Ino(ino), file: file, direct: record&recordDirect != 0, record: record &^ recordLost}
		h.untold = !f.beside && !f.opt.Writeback && record&uint64(vfs.OpenWrite) == 0 // maybe
		h.lost.Store(record&recordLost != 0)
		if record&uint64(vfs.OpenWrite) != 0 {
			f.cached.counts(h)
			h.writes.Store(1) // nobody knows: the next flush stores it
		}
		if err := t.resume(fh, h, record); err != nil {
			t.lost("what programs wrote to a file", h.ino, err)
		}
		for _, o := range owners[fh] {
			_, _ = f.lockers.use(f.ctx, h, fh, o) // nothing ends yet
			if h.untold {
				f.fs.Locks().Untold(ino, f.owner(o.id))
			}
		}
		f.sizes.opened(h.ino)
		f.pages.doubt(h.ino) // nothing is known of them
		f.files.put(fh, h)
	})
	return count
}

// lost reports whether err means that something is gone for good. Else the superblock is not
// served: a server that meets no error can do better.
func (t *taking) lost(what string, ino vfs.Ino, err error) bool {
	if stays(err) {
		t.raw.opt.Logger.Error(what+" is lost", "inode", ino, "err", err)
		return true
	}
	t.err = errors.Join(t.err, fmt.Errorf("%s, inode %d: %w", what, ino, err))
	return false
}

// resume has a handle bound to the content that was written through it: to the one
// that is there if all that is known is that somebody wrote to the file.
func (t *taking) resume(fh uint64, h *fileHandle, record uint64) error {
	bound := record&recordWrote != 0
	if !bound {
		if _, kept := t.book.Journal.Oldest(uint64(h.ino)); !kept || record&uint64(vfs.OpenWrite) == 0 {
			return nil
		}
	}
	epoch, _, err := h.file.Epoch(t.raw.ctx)
	if err != nil {
		return err
	}
	if bound {
		epoch = lastEpoch(epoch, record>>recordEpochLow)
	} else {
		t.book.Files.Mark(fh, recordWrote|epoch<<recordEpochLow)
	}
	h.file.Resume(epoch)
	h.bound.Store(true)
	return nil
}

// lastEpoch returns the last number up to now that has these low bits.
func lastEpoch(now, low uint64) uint64 {
	const span = 1 << (64 - recordEpochLow)
	return now - (now-low)%span
}

// restoreLocks takes back what programs hold. What another one has by now, and what was of an
// open file that is closed, is not theirs any more, at the next restart neither.
func (t *taking) restoreLocks() (count int) {
	f := t.raw
	type file struct {
		ino   uint64
		space uint8
	}
	kept, lost, opens := map[file][]ledger.Lock{}, map[file]bool{}, t.lockers()
	t.book.Locks.Each(func(ino uint64, space uint8, l ledger.Lock) {
		k := file{ino, space}
		if !opens[locker{vfs.Ino(ino), lockOwner{lock.Space(space), l.Owner}}] {
			lost[k] = true
			return
		}
		count++
		held := lock.Lock{Owner: f.owner(l.Owner), Start: l.Start, End: l.End, PID: l.PID}
		if l.Exclusive {
			held.Type = lock.Exclusive
		}
		if err := f.fs.Locks().Reclaim(f.ctx, ino, lock.Space(space), held); err != nil {
			f.opt.Logger.Error("a lock is lost", "inode", ino, "pid", l.PID, "err", err)
			if errors.Is(err, lock.ErrWouldBlock) {
				lost[k] = true
				return
			}
		}
		kept[k] = append(kept[k], l)
	})
	for k := range lost {
		if err := t.book.Locks.Set(k.ino, k.space, kept[k]); err != nil {
			f.opt.Logger.Error("a lock that is lost stays on the books", "inode", k.ino, "err", err)
		}
	}
	return count
}

// lockers are the owners that lock through files that programs have open.
func (t *taking) lockers() map[locker]bool {
	opens := map[locker]bool{}
	t.book.Owners.Each(func(fh uint64, space uint8, owner uint64) {
		ino, open := t.unopened[fh]
		if h := t.raw.files.get(fh); h != nil {
			ino, open = h.ino, true
		}
		if open {
			opens[locker{ino, lockOwner{lock.Space(space), owner}}] = true
		}
	})
	return opens
}

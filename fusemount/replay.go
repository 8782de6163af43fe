package fusemount

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ogw/fusemount/ledger"
	"ogw/vfs"
)

const (
	// storers bounds how many files are stored at a time at a take-over.
	storers = 16
	// The pause between two tries to store what the server before answered doubles
	// from the one to the other.
	storePause    = time.Second
	maxStorePause = time.Minute
)

// keptWrite is a write that a server before answered and did not store.
type keptWrite struct {
	t *taking
	w ledger.Write
}

// rewriting is a file whose writes are made again.
type rewriting struct {
	fs   rewriter
	log  *slog.Logger
	ino  vfs.Ino
	file *vfs.File          // nil: it cannot be opened
	from map[*taking]uint64 // whose programs wrote it: the last Seq
	// gone is why bytes have no place any more: their writers get the error.
	gone error
	// err is why the rest was not made again. It stays in the journals.
	err error
}

// replay makes the writes again that the server before answered and did not
// store, of all superblocks in the order in which they were made to a file. What
// cannot be stored now, because the store is full or read-only, stays in buffers
// and in the journals until it can. A superblock some of whose writes not even
// buffers can take is not served.
func replay(fs rewriter, list []*taking) {
	if len(list) == 0 {
		return
	}
	begin, log := time.Now(), list[0].raw.opt.Logger
	writes := keptWrites(list)
	files := map[vfs.Ino]*rewriting{}
	for i := range writes {
		k := &writes[i]
		r := files[vfs.Ino(k.w.Ino)]
		if r == nil {
			r = &rewriting{fs: fs, log: log, ino: vfs.Ino(k.w.Ino), from: make(map[*taking]uint64)}
			r.open(k.t.raw.ctx)
			files[r.ino] = r
		}
		r.write(k)
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, storers)
	for _, r := range files {
		if r.refuse() {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			r.finish()
			<-slots
		})
	}
	all.Wait()
	for _, t := range list {
		for ino := range files {
			t.changed[ino] = struct{}{}
		}
		t.raw.files.each(func(_ uint64, h *fileHandle) { h.file.KeepWith(t.raw.surv) })
	}
	if len(writes) > 0 {
		log.Info("writes of the server before are made again", "writes", len(writes), "files", len(files),
			"took", time.Since(begin).Round(time.Microsecond))
	}
}

// keptWrites are the writes of all journals in their order.
func keptWrites(list []*taking) (writes []keptWrite) {
	for _, t := range list {
		if t.book != nil {
			t.book.Journal.Each(func(w *ledger.Write) { writes = append(writes, keptWrite{t, *w}) })
		}
	}
	slices.SortStableFunc(writes, func(a, b keptWrite) int { return cmp.Compare(a.w.Seq, b.w.Seq) })
	return writes
}

// stays reports whether an error means that bytes have no place any more. Others
// may be over when the store has room again, or may be written to.
func stays(err error) bool {
	return slices.ContainsFunc([]error{vfs.ErrStale, vfs.ErrNotExist, vfs.ErrIsDir, vfs.ErrInvalid, vfs.ErrCorrupt, vfs.ErrFileTooLarge},
		func(e error) bool { return errors.Is(err, e) })
}

func (r *rewriting) open(ctx context.Context) {
	file, err := r.fs.Open(ctx, vfs.Root, r.ino, vfs.OpenRead|vfs.OpenWrite|vfs.OpenRewrites)
	if err == nil {
		r.file = file
		return
	}
	r.note(err)
}

// note remembers an error.
func (r *rewriting) note(err error) {
	if stays(err) {
		r.gone = err
	} else if err != nil {
		r.err = err
	}
}

// write makes one write again.
func (r *rewriting) write(k *keptWrite) {
	r.from[k.t] = k.w.Seq
	if k.w.Unique != 0 {
		k.t.book.Writes.Again(k.w.Unique, len(k.w.Data))
	}
	if r.err == nil && r.file != nil {
		r.note(r.file.Rewrite(k.t.raw.ctx, k.t.raw.surv, &vfs.KeptWrite{
			Ino: r.ino, Epoch: k.w.Epoch, Off: k.w.Off, Data: k.w.Data, KillPriv: k.w.KillPriv, Seq: k.w.Seq}))
	}
}

// refuse reports whether some were not made again: the superblocks that they came
// through are not served.
func (r *rewriting) refuse() bool {
	if r.err == nil {
		return false
	}
	for t := range r.from {
		t.err = errors.Join(t.err, fmt.Errorf("writes to inode %d that were answered cannot be made again: %w", r.ino, r.err))
	}
	return true
}

// finish stores what was made again, or sees to it that it is stored later.
func (r *rewriting) finish() {
	if !r.store() {
		r.log.Error("writes that were answered cannot be stored yet; they are kept until they can", "inode", r.ino, "err", r.err)
		go r.storeLater()
	}
}

// store reports whether nothing is left to do.
func (r *rewriting) store() bool {
	ctx := context.Background()
	if r.file != nil {
		err := r.fs.Flush(ctx, r.ino)
		if err != nil && !stays(err) {
			r.err = err
			return false
		}
		// Behind a failure that stays, it drops what the buffers have. What was
		// replaced in them, the handles that wrote it report it.
		if closed := r.file.Close(ctx); err != nil || !errors.Is(closed, vfs.ErrStale) {
			r.note(cmp.Or(err, closed))
		}
	}
	upTo := make(map[vfs.Keeper]uint64)
	for t, last := range r.from {
		if r.gone != nil {
			t.raw.lose(r.ino, r.gone)
		}
		upTo[t.raw.surv] = last
	}
	vfs.ReleaseKept(r.ino, upTo)
	return true
}

// storeLater tries until it succeeds, or the server ends.
func (r *rewriting) storeLater() {
	for pause := storePause; !errors.Is(r.err, vfs.ErrClosed); pause = min(2*pause, maxStorePause) {
		time.Sleep(pause)
		if r.store() {
			r.log.Info("writes that were answered are stored", "inode", r.ino)
			return
		}
	}
}

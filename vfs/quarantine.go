package vfs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

const (
	// maxDamaged bounds the quarantine; what is damaged beyond it is an error
	// to its readers and a line in the log, as ever, but is deleted with its
	// file.
	maxDamaged = 1000
	// noteTimeout bounds how long a reader of damage waits for the note.
	noteTimeout = 10 * time.Second
)

// DamagedBlob is a blob in quarantine: it failed verification, and there is no
// second copy. Reading its damaged blocks is an I/O error; the others can be
// read. Its bytes stay where they are, when its files are gone too, until they
// are released: for who can save or mend them.
type DamagedBlob struct {
	Blob   string    `json:"blob"` // as cluster.BlobID.String
	Size   int64     `json:"size"` // bytes
	Path   string    `json:"path"` // where the engine has it
	Detail string    `json:"detail,omitempty"`
	Error  string    `json:"error"`
	By     string    `json:"by"` // what found it: "scrub", "read" or "check"
	Found  time.Time `json:"found"`
	// Aside tells that its files are deleted or overwritten: only the
	// quarantine keeps it.
	Aside bool `json:"aside"`
	// Files are stored paths of files that use it, at most maxDamagedFiles.
	Files []string `json:"files,omitempty"`

	ID cluster.BlobID `json:"id"`
}

// quarantine keeps damaged blobs. Their records are in the store, and list is a
// copy of them: complete where no other process changes the store, elsewhere
// as of the last refresh. Besides, list has what the store did not take.
//
// Of a blob that nothing names any more, either the record is Aside or the blob
// is deleted: the transaction that marks the record decides which (setAside).
// So the record of a blob in use may be dropped at any time, when it reads well
// again; that of one set aside goes after the blob.
type quarantine struct {
	fs         *FS
	confirming sync.Mutex // one reader at a time reads all of a blob

	// writing is held over a transaction and the change of list that goes with
	// it, so that list follows the store.
	writing sync.Mutex

	mu   sync.Mutex
	list map[cluster.BlobID]record.Damaged
	told bool // that there is no room
}

func (q *quarantine) init(ctx context.Context, fs *FS) error {
	q.fs = fs
	return q.load(ctx)
}

// refresh brings the list up to date with what other processes did.
func (q *quarantine) refresh(ctx context.Context) error {
	if q.fs.feed.Complete() {
		return nil
	}
	return q.load(ctx)
}

func (q *quarantine) load(ctx context.Context) error {
	q.writing.Lock()
	defer q.writing.Unlock()
	var list map[cluster.BlobID]record.Damaged
	from, to := record.Table(record.TabDamaged)
	err := q.fs.kv.View(cluster.Strict(ctx), func(r cluster.Reader) error {
		list = make(map[cluster.BlobID]record.Damaged)
		return r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
			if id, err := record.ParseDamagedKey(k); err == nil { // else Check tells
				list[id] = record.DecodeDamaged(v)
			}
			return nil
		})
	})
	if err != nil {
		return fserr.Map(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, rec := range q.list {
		if _, stored := list[id]; rec.Unsaved && !stored {
			list[id] = rec
		}
	}
	q.list = list
	return nil
}

// snapshot is what memory holds.
func (q *quarantine) snapshot() map[cluster.BlobID]record.Damaged {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.list)
}

// get returns a copy of what the list has of a blob, nil if it is not there.
func (q *quarantine) get(id cluster.BlobID) *record.Damaged {
	q.mu.Lock()
	defer q.mu.Unlock()
	if rec, ok := q.list[id]; ok {
		return &rec
	}
	return nil
}

func (q *quarantine) set(id cluster.BlobID, rec *record.Damaged) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if rec != nil {
		q.list[id] = *rec
		return
	}
	delete(q.list, id)
	q.told = false
}

// room tells whether id can be taken in, and is not yet.
func (q *quarantine) room(id cluster.BlobID, cause error) bool {
	q.mu.Lock()
	_, known := q.list[id]
	full := !known && len(q.list) >= maxDamaged
	tell := full && !q.told
	q.told = q.told || full
	q.mu.Unlock()
	if tell {
		q.fs.log.Error("a stored blob is damaged, and the quarantine is full: this one and others are only reported",
			"blob", id.String(), "err", cause)
	}
	return !known && !full
}

// foundBy names who looks for damage; without a name, it is a reader.
func foundBy(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, finderKey{}, who)
}

type finderKey struct{}

func finder(ctx context.Context) string {
	if who, ok := ctx.Value(finderKey{}).(string); ok {
		return who
	}
	return "read"
}

// readBlob reads from a blob. Of damage that it meets it takes note before it
// returns, once the medium itself is known to have it.
func (fs *FS) readBlob(ctx context.Context, id cluster.BlobID, p []byte, off int64) (int, error) {
	n, err := fs.blobs.ReadAt(ctx, id, p, off)
	if errors.Is(err, cluster.ErrCorrupt) || errors.Is(err, cluster.ErrUnavailable) {
		fs.quarantine.suspect(ctx, id, err)
	}
	return n, err
}

// suspect verifies a blob that gave cause. A flood of errors, from a disk that
// is gone, is not to read everything again and again: who finds another at it
// leaves this to the next reader.
func (q *quarantine) suspect(ctx context.Context, id cluster.BlobID, cause error) {
	if !q.room(id, cause) || !q.confirming.TryLock() {
		return
	}
	defer q.confirming.Unlock()
	err := cluster.VerifyBlob(ctx, q.fs.blobs, id)
	if !errors.Is(err, cluster.ErrCorrupt) {
		return
	}
	if err := q.note(ctx, id, err); err != nil {
		q.fs.log.Error("the note of a damaged blob is not stored, it is tried again", "blob", id.String(), "err", err)
	}
}

// note takes a blob into quarantine, durably; after an error until this process
// ends, unless run can store it before.
func (q *quarantine) note(ctx context.Context, id cluster.BlobID, cause error) error {
	if !q.room(id, cause) {
		return nil
	}
	rec := record.Damaged{Error: cause.Error(), By: finder(ctx), Found: q.fs.cfg.Now().UTC()}
	// What the caller is about, its time and its token, does not concern this.
	ctx, cancel := context.WithTimeout(context.Background(), noteTimeout)
	defer cancel()
	if at, err := q.fs.blobs.Locate(ctx, id); err == nil && len(at) > 0 {
		rec.Path = at[0].Path
	}
	_ = q.fs.blobs.List(ctx, id, func(b cluster.BlobInfo) error { // it counts without its size, too
		if b.ID == id {
			rec.Size = b.Size
		}
		return cluster.ErrStop
	})
	_, err := q.write(ctx, id, func(old *record.Damaged) *record.Damaged {
		if old != nil { // another process was first
			return old
		}
		return &rec
	})
	q.fs.log.Error("a stored blob is damaged and in quarantine: its files cannot be read whole",
		"blob", id.String(), "path", rec.Path, "found_by", rec.By, "err", cause)
	return err
}

// write changes a record in the store and on the list: change gets what it is,
// nil if there is none, and returns what it shall be. It may run again. What
// the store does not take is on the list alone, for save to try again; what it
// does not drop stays there.
func (q *quarantine) write(ctx context.Context, id cluster.BlobID, change func(old *record.Damaged) *record.Damaged) (*record.Damaged, error) {
	q.writing.Lock()
	defer q.writing.Unlock()
	var rec *record.Damaged
	err := q.fs.kv.Update(ctx, func(t cluster.Txn) error {
		key := record.DamagedKey(id)
		stored, err := t.Get(key)
		if err != nil {
			return err
		}
		old := q.get(id)
		if stored != nil {
			is := record.DecodeDamaged(stored)
			old = &is
		} else if old != nil && !old.Unsaved {
			old = nil // another process dropped it
		}
		if rec = change(old); rec == nil {
			return t.Delete(key)
		}
		v, err := rec.Encode()
		if err != nil {
			return err
		}
		return t.Set(key, v)
	})
	if err != nil {
		if rec = change(q.get(id)); rec == nil {
			return nil, fserr.Map(err)
		}
	}
	if rec != nil {
		rec.Unsaved = err != nil
	}
	q.set(id, rec)
	return rec, fserr.Map(err)
}

// save stores what the store did not take before.
func (q *quarantine) save(ctx context.Context) error {
	for id, rec := range q.snapshot() {
		if !rec.Unsaved {
			continue
		}
		if _, err := q.write(ctx, id, func(old *record.Damaged) *record.Damaged { return old }); err != nil {
			return err
		}
	}
	return nil
}

// dropBlobs deletes blobs that nothing names any more, but those in quarantine:
// these are set aside. It returns how many it deleted.
func (fs *FS) dropBlobs(ctx context.Context, ids ...cluster.BlobID) (deleted int, err error) {
	kept, err := fs.quarantine.setAside(ctx, ids)
	if err != nil {
		return 0, err
	}
	if len(kept) > 0 {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id cluster.BlobID) bool { return slices.Contains(kept, id) })
	}
	return len(ids), fs.blobs.Delete(ctx, ids...)
}

// setAside marks those of ids that are in quarantine, and returns them.
func (q *quarantine) setAside(ctx context.Context, ids []cluster.BlobID) (kept []cluster.BlobID, err error) {
	known, err := q.find(ctx, ids)
	if err != nil {
		return nil, err
	}
	for id, rec := range known {
		if !rec.Aside || rec.Unsaved {
			is, err := q.write(ctx, id, func(old *record.Damaged) *record.Damaged {
				if old != nil {
					old.Aside = true
				}
				return old
			})
			if err != nil {
				return nil, err
			}
			if is == nil {
				continue // dropped meanwhile: there is nothing to keep
			}
		}
		kept = append(kept, id)
	}
	return kept, nil
}

// find returns those of ids that are in quarantine, also where other processes
// take blobs in.
func (q *quarantine) find(ctx context.Context, ids []cluster.BlobID) (map[cluster.BlobID]record.Damaged, error) {
	found := make(map[cluster.BlobID]record.Damaged)
	q.mu.Lock()
	for _, id := range ids {
		if rec, ok := q.list[id]; ok && (q.fs.feed.Complete() || rec.Unsaved) {
			found[id] = rec
		}
	}
	q.mu.Unlock()
	if q.fs.feed.Complete() || len(ids) == 0 {
		return found, nil
	}
	keys := make([][]byte, len(ids))
	for i, id := range ids {
		keys[i] = record.DamagedKey(id)
	}
	err := q.fs.kv.View(ctx, func(r cluster.Reader) error {
		values, err := r.GetMany(keys)
		for i, v := range values {
			if v != nil {
				found[ids[i]] = record.DecodeDamaged(v)
			}
		}
		return err
	})
	return found, fserr.Map(err)
}

// recheck drops what is gone, and what reads well again. With remove that goes
// for what was set aside, which nobody needs then. It returns what reads well
// or is gone, dropped or not: a store that takes no writes is for the log.
func (q *quarantine) recheck(ctx context.Context, remove bool) (well map[cluster.BlobID]bool, err error) {
	well = make(map[cluster.BlobID]bool)
	for id, seen := range q.snapshot() {
		err := cluster.VerifyBlob(ctx, q.fs.blobs, id)
		if err := ctx.Err(); err != nil {
			return well, err
		}
		gone := errors.Is(err, cluster.ErrNotFound)
		switch {
		case errors.Is(err, cluster.ErrCorrupt), err == nil && seen.Aside && !remove:
			continue
		case err == nil && seen.Aside:
			err = q.fs.blobs.Delete(ctx, id)
			gone = err == nil
		case gone:
			err = nil
		}
		if err == nil {
			well[id] = true
			_, err = q.write(cluster.Relaxed(ctx), id, func(old *record.Damaged) *record.Damaged {
				if old != nil && old.Aside && !gone { // set aside meanwhile, and kept
					return old
				}
				return nil
			})
		}
		if err != nil {
			q.fs.log.Warn("a blob stays in quarantine that may have left it", "blob", id.String(), "err", err)
		}
	}
	return well, nil
}

package vfs

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"ogw/cluster"
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

// damagedRecord is what is stored of one, as JSON (key 'z').
type damagedRecord struct {
	Size   int64     `json:"size"`
	Path   string    `json:"path"`
	Error  string    `json:"error"`
	By     string    `json:"by"`
	Found  time.Time `json:"found"`
	Aside  bool      `json:"aside,omitempty"`
	Traced bool      `json:"traced,omitempty"` // Inodes are known
	Inodes []Ino     `json:"inodes,omitempty"`
}

// decodeDamaged never fails: that a blob is in quarantine counts for more than
// what its record says.
func decodeDamaged(v []byte) damagedRecord {
	var rec damagedRecord
	if err := json.Unmarshal(v, &rec); err != nil {
		return damagedRecord{Error: fmt.Sprintf("damaged; so is the note about it: %v", err)}
	}
	return rec
}

func damagedKey(id cluster.BlobID) []byte { return key2(tabDamaged, id.Content, id.Seq) }

func parseDamagedKey(k []byte) (id cluster.BlobID, err error) {
	if len(k) != 17 || k[0] != tabDamaged {
		return id, fmt.Errorf("%w: quarantine key %x", ErrCorrupt, k)
	}
	return cluster.BlobID{Content: binary.BigEndian.Uint64(k[1:]), Seq: binary.BigEndian.Uint64(k[9:])}, nil
}

// quarantine keeps damaged blobs. Their records are in the store; memory has a
// copy of them, which is complete where no other process changes the store.
type quarantine struct {
	fs         *FS
	confirming sync.Mutex // one reader at a time reads all of a blob

	mu   sync.Mutex
	list map[cluster.BlobID]damagedRecord
	told bool // that there is no room
}

func (q *quarantine) init(ctx context.Context, fs *FS) error {
	q.fs = fs
	return q.load(ctx)
}

// load brings memory up to date.
func (q *quarantine) load(ctx context.Context) error {
	var list map[cluster.BlobID]damagedRecord
	from, to := table(tabDamaged)
	err := q.fs.kv.View(cluster.Strict(ctx), func(r cluster.Reader) error {
		list = make(map[cluster.BlobID]damagedRecord)
		return r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
			if id, err := parseDamagedKey(k); err == nil { // else Check tells
				list[id] = decodeDamaged(v)
			}
			return nil
		})
	})
	if err != nil {
		return mapErr(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = list
	return nil
}

// snapshot is what memory holds.
func (q *quarantine) snapshot() map[cluster.BlobID]damagedRecord {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.list)
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
		q.fs.log.Error("cannot take note of a damaged blob", "blob", id.String(), "err", err)
	}
}

// note takes a blob into quarantine, durably.
func (q *quarantine) note(ctx context.Context, id cluster.BlobID, cause error) error {
	if !q.room(id, cause) {
		return nil
	}
	rec := damagedRecord{Error: cause.Error(), By: finder(ctx), Found: q.fs.cfg.Now().UTC()}
	if at, err := q.fs.blobs.Locate(ctx, id); err == nil && len(at) > 0 {
		rec.Path = at[0].Path
	}
	err := q.fs.blobs.List(ctx, id, func(b cluster.BlobInfo) error {
		if b.ID == id {
			rec.Size = b.Size
		}
		return cluster.ErrStop
	})
	if err != nil {
		return mapErr(err)
	}
	// What the caller is about, its time and its token, does not concern this.
	ctx, cancel := context.WithTimeout(context.Background(), noteTimeout)
	defer cancel()
	if err := q.put(ctx, id, func(damagedRecord) damagedRecord { return rec }, true); err != nil {
		return err
	}
	q.fs.log.Error("a stored blob is damaged and in quarantine: its files cannot be read whole",
		"blob", id.String(), "path", rec.Path, "found_by", rec.By, "err", cause)
	return nil
}

// put changes a record, or makes one.
func (q *quarantine) put(ctx context.Context, id cluster.BlobID, change func(damagedRecord) damagedRecord, make bool) error {
	var rec damagedRecord
	found := false
	err := q.fs.kv.Update(ctx, func(t cluster.Txn) error {
		rec = damagedRecord{}
		old, err := t.Get(damagedKey(id))
		if found = old != nil; err != nil || !found && !make {
			return err
		}
		if found {
			rec = decodeDamaged(old)
		}
		rec = change(rec)
		v, err := json.Marshal(&rec)
		if err != nil {
			return err
		}
		return t.Set(damagedKey(id), v)
	})
	if err != nil || !found && !make {
		return mapErr(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list[id] = rec
	return nil
}

// drop takes blobs off the list.
func (q *quarantine) drop(ctx context.Context, ids ...cluster.BlobID) error {
	if len(ids) == 0 {
		return nil
	}
	err := q.fs.kv.Update(ctx, func(t cluster.Txn) error {
		for _, id := range ids {
			if err := t.Delete(damagedKey(id)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return mapErr(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range ids {
		delete(q.list, id)
	}
	q.told = false
	return nil
}

// dropBlobs deletes blobs that nothing names any more, but those in quarantine:
// these are set aside.
func (fs *FS) dropBlobs(ctx context.Context, ids ...cluster.BlobID) error {
	kept, err := fs.quarantine.setAside(ctx, ids)
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id cluster.BlobID) bool { return slices.Contains(kept, id) })
	}
	return fs.blobs.Delete(ctx, ids...)
}

// setAside marks those of ids that are in quarantine, and returns them.
func (q *quarantine) setAside(ctx context.Context, ids []cluster.BlobID) (kept []cluster.BlobID, err error) {
	for _, id := range ids {
		q.mu.Lock()
		rec, known := q.list[id]
		q.mu.Unlock()
		if !known && !q.fs.Exclusive() {
			rec, known, err = q.lookUp(ctx, id)
			if err != nil {
				return nil, err
			}
		}
		if !known {
			continue
		}
		if !rec.Aside {
			aside := func(rec damagedRecord) damagedRecord { rec.Aside = true; return rec }
			if err := q.put(ctx, id, aside, false); err != nil {
				return nil, err
			}
		}
		kept = append(kept, id)
	}
	return kept, nil
}

// lookUp asks the store, where other processes take blobs in too.
func (q *quarantine) lookUp(ctx context.Context, id cluster.BlobID) (rec damagedRecord, found bool, err error) {
	err = q.fs.kv.View(ctx, func(r cluster.Reader) error {
		v, err := r.Get(damagedKey(id))
		if found = v != nil; found {
			rec = decodeDamaged(v)
		}
		return err
	})
	return rec, found, mapErr(err)
}

// isAside tells whether the quarantine alone keeps a blob.
func (q *quarantine) isAside(ctx context.Context, id cluster.BlobID) (bool, error) {
	rec, found, err := q.lookUp(ctx, id)
	return found && rec.Aside, err
}

// recheck drops what is gone, and what reads well again. With remove that goes
// for what was set aside, which nobody needs then.
func (q *quarantine) recheck(ctx context.Context, remove bool) error {
	var healed []cluster.BlobID
	for id, rec := range q.snapshot() {
		err := cluster.VerifyBlob(ctx, q.fs.blobs, id)
		switch {
		case errors.Is(err, cluster.ErrNotFound):
			healed = append(healed, id)
		case err == nil && rec.Aside && remove:
			if err := q.fs.blobs.Delete(ctx, id); err != nil {
				return mapErr(err)
			}
			healed = append(healed, id)
		case err == nil && !rec.Aside:
			healed = append(healed, id)
		case err != nil && !errors.Is(err, cluster.ErrCorrupt):
			return mapErr(err)
		}
	}
	return q.drop(ctx, healed...)
}

package quarantine

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/feed"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

const (
	// MaxDamaged bounds the quarantine; what is damaged beyond it is an error
	// to its readers and a line in the log, as ever, but is deleted with its
	// file.
	MaxDamaged = 1000
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
	// Aside reports whether its files are deleted or overwritten: only the
	// quarantine keeps it.
	Aside bool `json:"aside"`
	// Files are stored paths of files that use it, at most MaxDamagedFiles.
	Files []string `json:"files,omitempty"`

	ID cluster.BlobID `json:"id"`
}

// Blobs are the blobs of a store, of which the damaged ones are in quarantine.
// Their records are in the store, and list is a
// copy of them: complete where no other process changes the store, elsewhere
// as of the last refresh. Besides, list has what the store did not take.
//
// Of a blob that nothing names any more, either the record is Aside or the blob
// is deleted: the transaction that marks the record decides which (setAside).
// So the record of a blob in use may be dropped at any time, when it reads well
// again; that of one set aside goes after the blob.
type Blobs struct {
	Config
	confirming sync.Mutex // one reader at a time reads all of a blob

	// writing is held over a transaction and the change of list that goes with
	// it, so that list follows the store.
	writing sync.Mutex

	mu   sync.Mutex
	list map[cluster.BlobID]record.Damaged
	told bool // that there is no room
}

// Config is what Blobs stand on.
type Config struct {
	KV     cluster.KV
	Engine cluster.Blobs
	Feed   *feed.Feed // knows whether other processes change the quarantine
	Files  Files
	Log    *slog.Logger
	Now    func() time.Time
}

// Files returns which files use blobs.
type Files interface {
	// Users adds to found, for each blob that it has, the inodes that use it.
	// It may walk all inodes.
	Users(ctx context.Context, found map[cluster.BlobID][]record.Ino) error
	// KeyOf returns the stored path of an inode.
	KeyOf(ctx context.Context, ino record.Ino) (string, error)
}

// New returns the Blobs of a store, to be loaded.
func New(c Config) *Blobs { return &Blobs{Config: c} }

// Refresh brings the list up to date with what other processes did.
func (q *Blobs) Refresh(ctx context.Context) error {
	if q.Feed.Complete() {
		return nil
	}
	return q.Load(ctx)
}

// Load reads the list.
func (q *Blobs) Load(ctx context.Context) error {
	q.writing.Lock()
	defer q.writing.Unlock()
	var list map[cluster.BlobID]record.Damaged
	from, to := record.Table(record.TabDamaged)
	err := q.KV.View(cluster.Strict(ctx), func(r cluster.Reader) error {
		list = make(map[cluster.BlobID]record.Damaged)
		return r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
			if id, err := record.ParseDamagedKey(k); err == nil { // else Check reports it
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
func (q *Blobs) snapshot() map[cluster.BlobID]record.Damaged {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.list)
}

// Get returns a copy of what the list has of a blob, nil if it is not there.
func (q *Blobs) Get(id cluster.BlobID) *record.Damaged {
	q.mu.Lock()
	defer q.mu.Unlock()
	if rec, ok := q.list[id]; ok {
		return &rec
	}
	return nil
}

func (q *Blobs) set(id cluster.BlobID, rec *record.Damaged) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if rec != nil {
		q.list[id] = *rec
		return
	}
	delete(q.list, id)
	q.told = false
}

// room reports whether id can be taken in, and is not yet.
func (q *Blobs) room(id cluster.BlobID, cause error) bool {
	q.mu.Lock()
	_, known := q.list[id]
	full := !known && len(q.list) >= MaxDamaged
	tell := full && !q.told
	q.told = q.told || full
	q.mu.Unlock()
	if tell {
		q.Log.Error("a stored blob is damaged, and the quarantine is full: this one and others are only reported",
			"blob", id.String(), "err", cause)
	}
	return !known && !full
}

// Note takes a blob into quarantine, durably; after an error until this process
// ends, unless run can store it before.
func (q *Blobs) Note(ctx context.Context, id cluster.BlobID, cause error) error {
	if !q.room(id, cause) {
		return nil
	}
	rec := record.Damaged{Error: cause.Error(), By: finder(ctx), Found: q.Now().UTC()}
	// What the caller is about, its time and its token, does not concern this.
	ctx, cancel := context.WithTimeout(context.Background(), noteTimeout)
	defer cancel()
	if at, err := q.Engine.Locate(ctx, id); err == nil && len(at) > 0 {
		rec.Path = at[0].Path
	}
	_ = q.Engine.List(ctx, id, func(b cluster.BlobInfo) error { // it counts without its size, too
		if b.ID == id {
			rec.Size = b.Size
		}
		return cluster.ErrStop
	})
	_, err := q.Write(ctx, id, func(old *record.Damaged) *record.Damaged {
		if old != nil { // another process was first
			return old
		}
		return &rec
	})
	q.Log.Error("a stored blob is damaged and in quarantine: its files cannot be read whole",
		"blob", id.String(), "path", rec.Path, "found_by", rec.By, "err", cause)
	return err
}

// Write changes a record in the store and on the list: change gets what it is,
// nil if there is none, and returns what it shall be. It may run again. What
// the store does not take is on the list alone, for save to try again; what it
// does not drop stays there.
func (q *Blobs) Write(ctx context.Context, id cluster.BlobID, change func(old *record.Damaged) *record.Damaged) (*record.Damaged, error) {
	q.writing.Lock()
	defer q.writing.Unlock()
	var rec *record.Damaged
	err := q.KV.Update(ctx, func(t cluster.Txn) error {
		key := record.DamagedKey(id)
		stored, err := t.Get(key)
		if err != nil {
			return err
		}
		old := q.Get(id)
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
		if rec = change(q.Get(id)); rec == nil {
			return nil, fserr.Map(err)
		}
	}
	if rec != nil {
		rec.Unsaved = err != nil
	}
	q.set(id, rec)
	return rec, fserr.Map(err)
}

// Save stores what the store did not take before.
func (q *Blobs) Save(ctx context.Context) error {
	for id, rec := range q.snapshot() {
		if !rec.Unsaved {
			continue
		}
		if _, err := q.Write(ctx, id, func(old *record.Damaged) *record.Damaged { return old }); err != nil {
			return err
		}
	}
	return nil
}

// Recheck drops what is gone, and what reads well again. With remove that goes
// for what was set aside, which nobody needs then. It returns what reads well
// or is gone, dropped or not: a store that takes no writes is for the log.
func (q *Blobs) Recheck(ctx context.Context, remove bool) (well map[cluster.BlobID]bool, err error) {
	well = make(map[cluster.BlobID]bool)
	for id, seen := range q.snapshot() {
		err := cluster.VerifyBlob(ctx, q.Engine, id)
		if err := ctx.Err(); err != nil {
			return well, err
		}
		gone := errors.Is(err, cluster.ErrNotFound)
		switch {
		case errors.Is(err, cluster.ErrCorrupt), err == nil && seen.Aside && !remove:
			continue
		case err == nil && seen.Aside:
			err = q.Engine.Delete(ctx, id)
			gone = err == nil
		case gone:
			err = nil
		}
		if err == nil {
			well[id] = true
			_, err = q.Write(cluster.Relaxed(ctx), id, func(old *record.Damaged) *record.Damaged {
				if old != nil && old.Aside && !gone { // set aside meanwhile, and kept
					return old
				}
				return nil
			})
		}
		if err != nil {
			q.Log.Warn("a blob stays in quarantine that may have left it", "blob", id.String(), "err", err)
		}
	}
	return well, nil
}

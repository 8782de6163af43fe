package quarantine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/cluster/pause"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

const (
	// MaxFiles bounds the files that are named for one blob: there are
	// more only where it was copied by reference.
	MaxFiles = 16
	// traceEvery is how soon the files of new damage are looked for, and
	// traceRest how much longer than that takes nobody looks again: it walks
	// all inodes.
	traceEvery = 2 * time.Second
	traceRest  = 10
)

// errInUse: a damaged blob cannot be released while files use it.
var errInUse = fmt.Errorf("files use it: overwrite or delete them first: %w", fserr.ErrBusy)

// List lists what is known, with places and files.
func (q *Blobs) List(ctx context.Context) []DamagedBlob {
	list := q.Damaged()
	for i := range list {
		d := &list[i]
		if at, err := q.Engine.Locate(ctx, d.ID); err == nil && len(at) > 0 {
			d.Path, d.Detail = at[0].Path, at[0].Detail
		}
		for _, ino := range q.Inodes(d.ID) {
			if key, err := q.Files.KeyOf(ctx, ino); err == nil && !d.Aside {
				d.Files = append(d.Files, key)
			}
		}
	}
	return list
}

// Damaged lists what memory holds.
func (q *Blobs) Damaged() []DamagedBlob {
	list := []DamagedBlob{}
	for id, r := range q.snapshot() {
		list = append(list, DamagedBlob{ID: id, Blob: id.String(), Size: r.Size, Path: r.Path, Error: r.Error,
			By: r.By, Found: r.Found, Aside: r.Aside})
	}
	slices.SortFunc(list, func(a, b DamagedBlob) int {
		return cmp.Or(a.Found.Compare(b.Found), cmp.Compare(a.Blob, b.Blob))
	})
	return list
}

// Inodes returns the inodes that are known to use a blob.
func (q *Blobs) Inodes(id cluster.BlobID) []record.Ino {
	if rec := q.Get(id); rec != nil {
		return rec.Inodes
	}
	return nil
}

// Release deletes damaged blobs that were set aside: those named, or without
// names all of them. It returns how many they were, and their bytes, which
// come back to the medium like those of any deleted file. fserr.ErrNotExist for what
// is not in quarantine, fserr.ErrBusy for what files use; then nothing is released.
func (q *Blobs) Release(ctx context.Context, ids ...cluster.BlobID) (blobs int, bytes int64, err error) {
	if err := q.Refresh(ctx); err != nil {
		return 0, 0, err
	}
	known := q.snapshot()
	all := len(ids) == 0
	if all {
		for id, rec := range known {
			if rec.Aside {
				ids = append(ids, id)
			}
		}
	}
	for _, id := range ids {
		switch rec, ok := known[id]; {
		case !ok:
			return 0, 0, fmt.Errorf("blob %v is not in quarantine: %w", id, fserr.ErrNotExist)
		case !rec.Aside:
			return 0, 0, fmt.Errorf("blob %v: %w", id, errInUse)
		default:
			blobs++
			bytes += rec.Size
		}
	}
	// The record goes last: a crash in between leaves one of a blob that is
	// gone, which the next look at it drops.
	if err := q.Engine.Delete(ctx, ids...); err != nil {
		return 0, 0, fserr.Map(err)
	}
	for _, id := range ids {
		if _, err := q.Write(cluster.Relaxed(ctx), id, func(*record.Damaged) *record.Damaged { return nil }); err != nil {
			return 0, 0, err
		}
	}
	if err := q.KV.Sync(ctx); err != nil {
		return 0, 0, fserr.Map(err)
	}
	q.Log.Info("damaged blobs are released from quarantine", "blobs", blobs, "bytes", bytes)
	return blobs, bytes, nil
}

// Run looks for the files of what is found, and stores what could not be.
func (q *Blobs) Run(ctx context.Context) {
	failing := false
	for rest := traceEvery; pause.For(ctx, rest) == nil; {
		begun := time.Now()
		err := q.Trace(ctx, false)
		if err == nil {
			err = q.Save(ctx)
		}
		if err != nil && ctx.Err() == nil && !failing {
			q.Log.Warn("cannot find the files of damaged blobs or store them, it is tried again", "err", err)
		}
		failing = err != nil
		rest = max(traceEvery, traceRest*time.Since(begun))
	}
}

// Trace finds the files that use damaged blobs: of those found since the last
// time, or of all. After an error to store them they are on the list.
func (q *Blobs) Trace(ctx context.Context, all bool) error {
	found := make(map[cluster.BlobID][]record.Ino)
	for id, rec := range q.snapshot() {
		if !rec.Aside && (all || !rec.Traced) {
			found[id] = nil
		}
	}
	if len(found) == 0 {
		return nil
	}
	err := q.Files.Users(ctx, found)
	if err != nil {
		return err
	}
	for id, inodes := range found {
		slices.Sort(inodes)
		before := q.Get(id)
		if before == nil || before.Traced && slices.Equal(before.Inodes, inodes) {
			continue
		}
		_, e := q.Write(cluster.Relaxed(ctx), id, func(old *record.Damaged) *record.Damaged {
			if old != nil {
				old.Traced, old.Inodes = true, inodes
			}
			return old
		})
		err = cmp.Or(err, e)
		for _, ino := range inodes {
			if key, err := q.Files.KeyOf(ctx, ino); err == nil && !slices.Contains(before.Inodes, ino) {
				q.Log.Error("a file uses a damaged blob", "file", key, "blob", id.String())
			}
		}
	}
	return err
}

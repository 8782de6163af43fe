package vfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

const (
	// maxDamagedFiles bounds the files that are named for one blob: there are
	// more only where it was copied by reference.
	maxDamagedFiles = 16
	// traceEvery is how soon the files of new damage are looked for, and
	// traceRest how much longer than that takes nobody looks again: it walks
	// all inodes.
	traceEvery = 2 * time.Second
	traceRest  = 10
	// tracePage is how many inodes one snapshot covers.
	tracePage = 4096
)

// errInUse: a damaged blob cannot be released while files use it.
var errInUse = fmt.Errorf("files use it: overwrite or delete them first: %w", ErrBusy)

// Quarantine lists the damaged blobs, the oldest finding first. With trace it
// looks for the files of those that were found since that was last done, which
// takes as long as a walk over all inodes.
func (fs *FS) Quarantine(ctx context.Context, trace bool) ([]DamagedBlob, error) {
	q := &fs.quarantine
	if err := q.refresh(ctx); err != nil {
		return nil, err
	}
	if trace {
		if err := q.trace(ctx, false); err != nil {
			return nil, err
		}
	}
	return q.describe(ctx), nil
}

// describe lists what is known, with places and files.
func (q *quarantine) describe(ctx context.Context) []DamagedBlob {
	list := q.blobs()
	for i := range list {
		d := &list[i]
		if at, err := q.fs.blobs.Locate(ctx, d.ID); err == nil && len(at) > 0 {
			d.Path, d.Detail = at[0].Path, at[0].Detail
		}
		for _, ino := range q.inodes(d.ID) {
			if key, err := q.fs.KeyOf(ctx, ino); err == nil && !d.Aside {
				d.Files = append(d.Files, key)
			}
		}
	}
	return list
}

// blobs lists what memory holds.
func (q *quarantine) blobs() []DamagedBlob {
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

func (q *quarantine) inodes(id cluster.BlobID) []Ino {
	if rec := q.get(id); rec != nil {
		return rec.Inodes
	}
	return nil
}

// Release deletes damaged blobs that were set aside: those named, or without
// names all of them. It returns how many they were, and their bytes, which
// come back to the medium like those of any deleted file. ErrNotExist for what
// is not in quarantine, ErrBusy for what files use; then nothing is released.
func (fs *FS) Release(ctx context.Context, ids ...cluster.BlobID) (blobs int, bytes int64, err error) {
	q := &fs.quarantine
	if err := q.refresh(ctx); err != nil {
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
			return 0, 0, fmt.Errorf("blob %v is not in quarantine: %w", id, ErrNotExist)
		case !rec.Aside:
			return 0, 0, fmt.Errorf("blob %v: %w", id, errInUse)
		default:
			blobs++
			bytes += rec.Size
		}
	}
	// The record goes last: a crash in between leaves one of a blob that is
	// gone, which the next look at it drops.
	if err := fs.blobs.Delete(ctx, ids...); err != nil {
		return 0, 0, fserr.Map(err)
	}
	for _, id := range ids {
		if _, err := q.write(cluster.Relaxed(ctx), id, func(*record.Damaged) *record.Damaged { return nil }); err != nil {
			return 0, 0, err
		}
	}
	if err := fs.kv.Sync(ctx); err != nil {
		return 0, 0, fserr.Map(err)
	}
	fs.log.Info("damaged blobs are released from quarantine", "blobs", blobs, "bytes", bytes)
	return blobs, bytes, nil
}

// run looks for the files of what is found, and stores what could not be.
func (q *quarantine) run(ctx context.Context) {
	failing := false
	for rest := traceEvery; sleep(ctx, rest); {
		begun := time.Now()
		err := q.trace(ctx, false)
		if err == nil {
			err = q.save(ctx)
		}
		if err != nil && ctx.Err() == nil && !failing {
			q.fs.log.Warn("cannot find the files of damaged blobs or store them, it is tried again", "err", err)
		}
		failing = err != nil
		rest = max(traceEvery, traceRest*time.Since(begun))
	}
}

// trace finds the files that use damaged blobs: of those found since the last
// time, or of all. After an error to store them they are on the list.
func (q *quarantine) trace(ctx context.Context, all bool) error {
	t := q.newTracer()
	for id, rec := range q.snapshot() {
		if !rec.Aside && (all || !rec.Traced) {
			t.found[id] = nil
		}
	}
	if len(t.found) == 0 {
		return nil
	}
	err := t.run(ctx)
	if err != nil {
		return err
	}
	for id, inodes := range t.found {
		slices.Sort(inodes)
		before := q.get(id)
		if before == nil || before.Traced && slices.Equal(before.Inodes, inodes) {
			continue
		}
		_, e := q.write(cluster.Relaxed(ctx), id, func(old *record.Damaged) *record.Damaged {
			if old != nil {
				old.Traced, old.Inodes = true, inodes
			}
			return old
		})
		err = cmp.Or(err, e)
		for _, ino := range inodes {
			if key, err := q.fs.KeyOf(ctx, ino); err == nil && !slices.Contains(before.Inodes, ino) {
				q.fs.log.Error("a file uses a damaged blob", "file", key, "blob", id.String())
			}
		}
	}
	return err
}

// tracer walks all inodes for those whose contents use damaged blobs.
type tracer struct {
	q        *quarantine
	found    map[cluster.BlobID][]Ino
	contents map[ContentID]bool // that may use one: their own, and by reference
}

// newTracer looks for the blobs that are put into found.
func (q *quarantine) newTracer() *tracer {
	return &tracer{q: q, found: make(map[cluster.BlobID][]Ino), contents: make(map[ContentID]bool)}
}

func (t *tracer) run(ctx context.Context) error {
	fs := t.q.fs
	err := fs.view(ctx, func(r cluster.Reader) error {
		for id := range t.found {
			source := ContentID(id.Content)
			t.contents[source] = true
			prefix := record.RefPrefix(source)
			err := r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
				if len(k) == 17 {
					_, user := record.ParseRefKey(k)
					t.contents[user] = true
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	from, to := record.Table(record.TabInode)
	for from != nil {
		var users []Ino
		err := fs.view(ctx, func(r cluster.Reader) error {
			users = nil
			n, start := 0, from
			from = nil
			return r.Scan(start, to, cluster.ScanOptions{Limit: tracePage}, func(k, v []byte) error {
				if n++; n == tracePage {
					from = append(slices.Clone(k), 0)
				}
				// One that cannot be read is Check's to report.
				if x, err := record.DecodeInode(record.InoOfKey(k), v); err == nil && t.contents[x.Content] {
					users = append(users, x.Ino)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		for _, ino := range users {
			if err := t.look(ctx, ino); err != nil && !errors.Is(err, ErrStale) && !errors.Is(err, ErrCorrupt) {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// look finds which damaged blobs a file uses.
func (t *tracer) look(ctx context.Context, ino Ino) error {
	fs := t.q.fs
	rd, err := fs.openStored(ctx, ino)
	if err != nil {
		return err
	}
	defer rd.Close()
	for off := int64(0); off < rd.size; {
		p, err := rd.page(ctx, off)
		if err != nil {
			return err
		}
		for i := range p.segs {
			id := p.segs[i].blob
			users, damaged := t.found[id]
			if damaged && p.segs[i].data == nil && len(users) < maxDamagedFiles && !slices.Contains(users, ino) {
				t.found[id] = append(users, ino)
			}
		}
		off = p.to
	}
	return nil
}

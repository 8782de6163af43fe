package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/occ"
	"ogw/cluster/local/internal/diskspace"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/metafs"
	"ogw/cluster/local/internal/record"
	"ogw/cluster/local/internal/segment"
)

const (
	// listPage is how many blobs List reads at a time; in between it holds
	// nothing.
	listPage = 1000
)

// Blobs is the data half.
type Blobs struct {
	dir      string
	host     string
	log      *slog.Logger
	now      func() time.Time // of blobs, for those who list them
	store    record.StoreID
	disk     fileio.Disk
	gate     *occ.Gate
	index    index
	health   *metafs.Health
	space    *diskspace.Guard
	handles  *fileio.Handles
	windows  *fileio.Windows
	places   *placeCache
	sums     *pageSums
	buffers  *buffers
	segments *segment.Store

	collector *collector
	reaper    *reaper
	sweeper   *sweeper

	// indexing is held for reading by who changes the index and, because of that, the live
	// bytes of a segment, and by the collector when it begins to count these.
	indexing sync.RWMutex

	// changing is held by who changes the place of a blob that exists:
	// Delete, and the collector when it moves one.
	changing sync.Mutex

	mu     sync.Mutex
	active map[cluster.BlobID]struct{} // being created
}

var _ cluster.Blobs = (*Blobs)(nil)

// filePath is where a blob with a file of its own is.
func (b *Blobs) filePath(id cluster.BlobID) string {
	return record.BlobFile(b.dir, id)
}

func (b *Blobs) begin(ctx context.Context) error {
	if err := b.gate.Enter(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		b.gate.Leave()
		return err
	}
	return nil
}

// Create implements cluster.Blobs.
func (b *Blobs) Create(ctx context.Context, id cluster.BlobID, sizeHint int64) (cluster.BlobWriter, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.gate.Leave()
	if sizeHint > cluster.MaxBlobBytes {
		return nil, errTooLong
	}
	if err := b.health.Disk.Err(); err != nil {
		return nil, err
	}
	if err := b.admit(max(sizeHint, 0)); err != nil {
		return nil, err
	}
	if err := b.reserve(id); err != nil {
		return nil, err
	}
	return newWriter(b, id, sizeHint), nil
}

// admit refuses data when the disk is full. Segments made ahead give way if
// that makes room enough, for data of any kind.
func (b *Blobs) admit(bytes int64) error {
	err := b.space.AdmitData(bytes)
	if err == nil || !b.space.Roomy(-b.segments.IdleBytes(), diskspace.ForMetadata) {
		return err
	}
	for err != nil && b.segments.Shed() {
		if b.space.Measure() != nil {
			return err
		}
		err = b.space.AdmitData(bytes)
	}
	return err
}

// reserve makes the caller the only writer of id, which must not exist.
func (b *Blobs) reserve(id cluster.BlobID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.active[id]; ok {
		return fmt.Errorf("%w: %v", cluster.ErrExists, id)
	}
	_, err := b.index.get(id)
	switch {
	case err == nil:
		return fmt.Errorf("%w: %v", cluster.ErrExists, id)
	case !errors.Is(err, cluster.ErrNotFound):
		return err
	}
	b.active[id] = struct{}{}
	return nil
}

func (b *Blobs) release(id cluster.BlobID) {
	b.mu.Lock()
	delete(b.active, id)
	b.mu.Unlock()
}

// indexed reports whether the index has, or may have, a blob in the file of id.
func (b *Blobs) indexed(id cluster.BlobID) bool {
	p, err := b.index.get(id)
	if err == nil {
		return p.Segment == 0
	}
	return !errors.Is(err, cluster.ErrNotFound)
}

// reapOrphan has the file of id removed, unless somebody knows it. Who creates the blob
// from then on spares the file. A writer is active until its blob is in the index, so the
// order of the questions counts.
func (b *Blobs) reapOrphan(id cluster.BlobID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.active[id]; ok || b.indexed(id) {
		return false
	}
	return b.reaper.add(b.filePath(id))
}

// createFile opens the file of a new blob. One that is there is a leftover of a crash, or
// of a blob that had the same ID and was deleted.
func (b *Blobs) createFile(id cluster.BlobID) (fileio.File, error) {
	path := b.filePath(id)
	spared := b.reaper.spare(path)
	f, err := b.disk.Create(path)
	if errors.Is(err, os.ErrExist) {
		f, err = b.replaceFile(path)
	}
	if err != nil && spared {
		b.reaper.add(path)
	}
	return f, ioerr.Map(err)
}

// replaceFile opens a new file in the place of one that is in nobody's index, once that is
// durable.
func (b *Blobs) replaceFile(path string) (fileio.File, error) {
	if err := b.index.sync(); err != nil {
		return nil, err
	}
	if err := b.unlink(path); err != nil {
		return nil, err
	}
	return b.disk.Create(path)
}

// unlink removes a file that the index does not name. A reader that had looked its place up
// before may have opened it until then, and an idle handle keeps the file's space, and its
// content for who reads another one of that name.
func (b *Blobs) unlink(path string) error {
	err := b.disk.Remove(path)
	b.handles.Drop(path)
	return err
}

// Delete implements cluster.Blobs.
func (b *Blobs) Delete(ctx context.Context, ids ...cluster.BlobID) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	defer b.gate.Leave()
	return b.health.Disk.Run(func() error { return b.delete(ids) })
}

func (b *Blobs) delete(ids []cluster.BlobID) error {
	b.indexing.RLock()
	defer b.indexing.RUnlock()
	b.changing.Lock()
	defer b.changing.Unlock()
	var found []indexEntry
	seen := make(map[cluster.BlobID]struct{}, len(ids))
	for _, id := range ids {
		if _, ok := seen[id]; ok {
			continue
		}
		seen[id] = struct{}{}
		p, err := b.index.get(id)
		if errors.Is(err, cluster.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		found = append(found, indexEntry{id, p})
	}
	if len(found) == 0 {
		return nil
	}
	gone := make([]cluster.BlobID, len(found))
	for i := range found {
		gone[i] = found[i].id
	}
	if err := b.index.remove(gone); err != nil {
		return err
	}
	for i := range found {
		b.forget(&found[i])
	}
	return nil
}

// forget gives back the space of a blob that left the index.
func (b *Blobs) forget(e *indexEntry) {
	b.places.drop(e.id)
	if e.Segment != 0 {
		b.segments.AddLive(e.Segment, -record.Bytes(e.Size))
		return
	}
	path := b.filePath(e.id)
	b.handles.Drop(path)
	b.reaper.add(path)
}

// List implements cluster.Blobs.
func (b *Blobs) List(ctx context.Context, from cluster.BlobID, fn func(cluster.BlobInfo) error) error {
	return b.walk(ctx, from, func(e *indexEntry) error { return fn(e.info()) })
}

func (e *indexEntry) info() cluster.BlobInfo {
	return cluster.BlobInfo{ID: e.id, Size: e.Size, Modified: e.Modified}
}

// walk calls fn for the entries of the index, as List does.
func (b *Blobs) walk(ctx context.Context, from cluster.BlobID, fn func(*indexEntry) error) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	defer b.gate.Leave()
	for after := false; ; after = true {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := b.index.page(from, after, listPage)
		if err != nil {
			return err
		}
		for i := range page {
			if err := fn(&page[i]); err != nil {
				if errors.Is(err, cluster.ErrStop) {
					return nil
				}
				return err
			}
		}
		if len(page) < listPage {
			return nil
		}
		from = page[len(page)-1].id
	}
}

// Locate implements cluster.Blobs.
func (b *Blobs) Locate(ctx context.Context, id cluster.BlobID) ([]cluster.Location, error) {
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	defer b.gate.Leave()
	p, err := b.index.get(id)
	if err != nil {
		return nil, err
	}
	path, detail := b.filePath(id), "own file"
	if p.Segment != 0 {
		path = b.segments.Path(p.Segment)
		detail = fmt.Sprintf("segment, offset %d", p.Offset)
	}
	return []cluster.Location{{Node: b.host, Path: path, Detail: detail, Primary: true}}, nil
}

// Usage implements cluster.Blobs.
func (b *Blobs) Usage(ctx context.Context) (cluster.Usage, error) {
	if err := b.begin(ctx); err != nil {
		return cluster.Usage{}, err
	}
	defer b.gate.Leave()
	return b.space.Usage()
}

// Close implements cluster.Blobs.
func (b *Blobs) Close() error { return b.index.kv.closing(b.close) }

func (b *Blobs) close() error {
	if !b.gate.Close() {
		return cluster.ErrClosed
	}
	b.sweeper.stop()
	b.collector.stop()
	b.segments.Stop()
	b.reaper.stop()
	err := b.segments.Close()
	b.handles.Close()
	b.windows.Close()
	return ioerr.Map(err)
}

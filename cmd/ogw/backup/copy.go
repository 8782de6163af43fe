package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"ogw/httpapi/admin"
)

// jobsInFlight bounds the groups of blobs that are being read and written.
const jobsInFlight = packsInFlight

// Options of Run.
type Options struct {
	Secrets admin.AddBackup
	Keys    []string // IDs of Secrets.Keys
	Rate    int64    // bytes a second to the repository; 0: no limit
	// Progress is called now and then. May be nil.
	Progress func(Progress)
}

// Progress is how far a backup or a restore is.
type Progress struct {
	Step    string // "instant", "metadata", "compare", "blobs", "publish", "verify"
	Records int64
	Blobs   int64 // done, of AllBlobs
	Bytes   int64 // of them, of AllBytes
	// AllBlobs and AllBytes are known when the metadata are done.
	AllBlobs, AllBytes int64
	Moved              int64
}

// run is one backup.
type run struct {
	o       Options
	repo    *Repository
	lock    Lock
	held    *held
	session uint64
	snap    Snapshot
	full    bool
	jobKeys int // maxJobKeys, except in tests

	uploads *uploads
	out     *layerWriter
	old     entries
	resume  []*packLists
	names   nameSorter
	pack    *packBuilder
	packs   atomic.Uint32

	progress struct {
		sync.Mutex
		Progress
	}
	moved, readBack atomic.Int64
	damage          damage
}

// errParent means that the catalog of the backup before is damaged.
var errParent = errors.New("the list of the backup before")

// Run makes a backup of a store, and returns its snapshot. What it moved before
// an error, the next one finds.
func Run(ctx context.Context, repo *Repository, source Source, o Options) (*Snapshot, error) {
	ctx, lock, err := repo.Lock(ctx, NewHolder("backup"))
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	b := &run{o: o, repo: repo, lock: lock}
	err = b.from(ctx, source)
	if errors.Is(err, errParent) {
		// It takes a new instant: of this one, what that list had may be released.
		b = &run{o: o, repo: repo, lock: lock, snap: Snapshot{Alone: err.Error()}}
		err = b.from(ctx, source)
	}
	if err != nil {
		return nil, err
	}
	return &b.snap, nil
}

// from makes the backup.
func (b *run) from(ctx context.Context, source Source) error {
	b.names, b.jobKeys = nameSorter{limit: sortRun}, maxJobKeys
	defer b.names.close()
	b.snap.Format, b.snap.Began, b.snap.Keys = formatVersion, time.Now().UTC(), b.o.Keys
	b.session, _ = strconv.ParseUint(randomHex(), 16, 64)
	b.step("instant")
	return hold(ctx, source, b.o.Secrets, func(ctx context.Context, h *held) error {
		b.held, b.uploads = h, newUploads(ctx, packsInFlight, newPace(b.o.Rate))
		defer b.uploads.end()
		return b.copy(ctx)
	})
}

func (b *run) step(name string) { b.tell(func(p *Progress) { p.Step = name }) }

func (b *run) tell(change func(*Progress)) {
	b.progress.Lock()
	defer b.progress.Unlock()
	change(&b.progress.Progress)
	b.progress.Moved = b.moved.Load()
	if b.o.Progress != nil {
		b.o.Progress(b.progress.Progress)
	}
}

func (b *run) copy(ctx context.Context) (err error) {
	b.snap.FSID, b.snap.StoreFormat = fmt.Sprintf("%016x", b.held.FSID), b.held.Format
	b.snap.Time, b.snap.Version, b.snap.Settled, b.snap.WriterWait = b.held.Time, b.held.Version, b.held.Settled, b.held.Wait
	read := func(n int) { b.readBack.Add(int64(n)) }
	layers, err := b.follow(ctx, read)
	if err != nil {
		return err
	}
	b.full = fullLayer(layers)
	resumed, err := b.repo.sessions(ctx)
	if err != nil {
		return err
	}
	for _, s := range resumed {
		packs, bytes, err := b.repo.packsOf(ctx, s)
		if err != nil {
			return err
		}
		b.snap.Resumed += bytes
		b.resume = append(b.resume, &packLists{storage: b.repo, session: s, packs: packs, read: read})
	}
	mark, err := json.Marshal(NewHolder("backup"))
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%016x", b.session)
	if err := b.repo.Put(ctx, sessionDir+name, mark, false); err != nil {
		return err
	}
	if b.out, err = newLayerWriter(b.repo, b.uploads, name, func(n int) { b.moved.Add(int64(n)) }); err != nil {
		return err
	}
	b.step("metadata")
	if err := b.metadata(ctx); err != nil {
		return err
	}
	b.tell(func(p *Progress) { p.Step, p.AllBlobs, p.AllBytes = "blobs", b.names.count, b.names.bytes })
	if err := b.blobs(ctx); err != nil {
		return err
	}
	if err := b.dropBefore(ctx, nil); err != nil {
		return err
	}
	if err := b.out.flush(); err != nil {
		return err
	}
	b.step("publish")
	if err := b.uploads.wait(); err != nil {
		return err
	}
	if b.full {
		layers = nil
	}
	b.snap.Layers = append(layers, b.out.layer)
	b.finished()
	if err := b.publish(ctx); err != nil {
		return err
	}
	for _, s := range append(resumed, b.session) {
		if err := b.repo.Delete(ctx, fmt.Sprintf("%s%016x", sessionDir, s)); err != nil {
			return err
		}
	}
	return nil
}

// publish makes it a backup, if nobody else had the repository meanwhile: a machine that
// stands still loses its lock without noticing, and who takes it removes a catalog that no
// snapshot needs. It may stand still between the question and the answer, too, so it asks
// again, and takes the snapshot back.
func (b *run) publish(ctx context.Context) error {
	if err := b.lock.Renew(ctx); err != nil {
		return err
	}
	err := b.repo.publish(ctx, &b.snap)
	if e := b.lock.Renew(ctx); err == nil || errors.Is(e, ErrLockLost) {
		err = e
	}
	if errors.Is(err, ErrLockLost) || errors.Is(context.Cause(ctx), ErrLockLost) {
		err = errors.Join(err, b.repo.Delete(context.WithoutCancel(ctx), snapshotName(b.snap.ID)))
	}
	return err
}

// finished notes how it went.
func (b *run) finished() {
	b.snap.Finished = time.Now().UTC()
	b.snap.Moved, b.snap.ReadBack = b.moved.Load(), b.readBack.Load()
	b.snap.DamagedBlobs, b.snap.Damaged = b.damage.count, b.damage.names
}

// follow names the snapshot, and opens the layers that it goes on from.
func (b *run) follow(ctx context.Context, read func(bytes int)) ([]Layer, error) {
	parent, err := b.parent(ctx)
	if err != nil {
		return nil, err
	}
	b.snap.ID = snapshotID(b.held.Time, parent.ID)
	if b.snap.Alone != "" {
		parent.Layers = nil
	}
	old, err := openLayers(ctx, b.repo, parent.Layers, nil, read)
	b.old = parentEntries{old}
	return parent.Layers, parentError(err)
}

// parent returns the newest snapshot of the same store, an empty one if there is none.
func (b *run) parent(ctx context.Context) (*Snapshot, error) {
	ids, err := b.repo.ids(ctx)
	if err != nil {
		return nil, err
	}
	for i := len(ids) - 1; i >= 0; i-- {
		s, err := b.repo.Load(ctx, ids[i])
		if err != nil {
			return nil, fmt.Errorf("the backup before cannot be read; if it is lost, remove it (ogw backup remove): %w", err)
		}
		if s.FSID == b.snap.FSID {
			return s, nil
		}
	}
	return &Snapshot{}, nil
}

// parentEntries are those of the backup before.
type parentEntries struct{ entries }

func (p parentEntries) head(ctx context.Context) (*entry, error) {
	e, err := p.entries.head(ctx)
	return e, parentError(err)
}

func parentError(err error) error {
	if errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %w", errParent, err)
	}
	return err
}

// fullLayer reports whether the next layer is to be a full one.
func fullLayer(layers []Layer) bool {
	if len(layers) == 0 || len(layers) == maxLayers {
		return true
	}
	var later int64
	for i := range layers[1:] {
		later += layers[1+i].bytes()
	}
	return later > layers[0].bytes()/2
}

// dropBefore passes over the old entries before key (nil: all), which are gone.
func (b *run) dropBefore(ctx context.Context, key []byte) error {
	for {
		e, err := b.old.head(ctx)
		if err != nil || e == nil || key != nil && !before(e.key, key) {
			return err
		}
		b.old.pop()
		if !b.full {
			if err := b.out.add(&entry{key: e.key, kind: entryDeleted}); err != nil {
				return err
			}
		}
	}
}

// was returns the old entry of key, or nil.
func (b *run) was(ctx context.Context, key []byte) (*entry, error) {
	e, err := b.old.head(ctx)
	if err != nil || e == nil || !bytes.Equal(e.key, key) {
		return nil, err
	}
	b.old.pop()
	return e, nil
}

// found returns the entry of a piece that a backup moved which did not finish,
// or nil.
func (b *run) found(ctx context.Context, key []byte, s sum, length int) (*entry, error) {
	for _, r := range b.resume {
		e, err := seek(ctx, r, key)
		if err != nil {
			return nil, err
		}
		if e != nil && e.piece.same(s, length) {
			return e, nil
		}
	}
	return nil, nil
}

func (b *run) metadata(ctx context.Context) error {
	err := b.held.eachPage(ctx, func(page *admin.BackupPage) error {
		for i := range page.Keys {
			if err := b.pair(ctx, page.Keys[i], page.Values[i]); err != nil {
				return err
			}
		}
		for _, x := range page.Blobs {
			if err := b.names.add(x); err != nil {
				return err
			}
		}
		b.tell(func(p *Progress) { p.Records = b.snap.Records })
		b.snap.Secrets = page.Secrets
		return nil
	})
	if err != nil {
		return err
	}
	return b.flushPack()
}

func (b *run) pair(ctx context.Context, k, v []byte) error {
	b.snap.Records++
	b.snap.Bytes += int64(len(k) + len(v))
	key := append([]byte{keyPair}, k...)
	if err := b.dropBefore(ctx, key); err != nil {
		return err
	}
	old, err := b.was(ctx, key)
	if err != nil {
		return err
	}
	if len(v) <= smallValue {
		if !b.full && old != nil && old.kind == entryValue && bytes.Equal(old.value, v) {
			return nil
		}
		return b.out.add(&entry{key: key, kind: entryValue, value: v})
	}
	s := valueSum(v)
	if old != nil && old.kind == entryPiece && old.piece.same(s, len(v)) {
		if !b.full {
			return nil
		}
		return b.out.add(old)
	}
	if e, err := b.found(ctx, key, s, len(v)); e != nil || err != nil {
		if err != nil {
			return err
		}
		return b.out.add(e)
	}
	if b.pack != nil && !b.pack.fits(key, len(v)) {
		if err := b.flushPack(); err != nil {
			return err
		}
	}
	if b.pack == nil {
		b.pack = b.newPack()
	}
	return b.out.add(&entry{key: key, kind: entryPiece, piece: b.pack.add(key, v, s)})
}

func (b *run) newPack() *packBuilder {
	return &packBuilder{session: b.session, n: b.packs.Add(1) - 1}
}

// flushPack writes the pack of values.
func (b *run) flushPack() error {
	p := b.pack
	if b.pack = nil; p == nil {
		return nil
	}
	data := p.build()
	b.moved.Add(int64(len(data)))
	return b.uploads.put(b.repo, packName(p.session, p.n), data)
}

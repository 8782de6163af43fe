package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"ogw/cluster"
	"ogw/cluster/internal/occ"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// Open opens the store in o.Dir, or makes one there. It returns ErrLocked
// when another process has it open, and ErrFormat when the folder holds
// something else or the store of a newer version.
func Open(ctx context.Context, o Options) (*cluster.Cluster, error) {
	o.setDefaults()
	if o.SegmentBytes != 0 && (o.SegmentBytes%pageBytes != 0 || o.SegmentBytes < recordBytes(smallMax)) {
		return nil, fmt.Errorf("%w: segments of %d bytes", cluster.ErrInvalid, o.SegmentBytes)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var cleanup cleanups
	defer func() { cleanup.run() }()
	if o.fs == nil {
		dir, err := filepath.Abs(o.Dir)
		if err != nil {
			return nil, mapError(err)
		}
		o.Dir = dir
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, mapError(err)
		}
		if err := syncDir(vfs.Default, filepath.Dir(dir)); err != nil {
			o.Logger.Warn("cannot sync the folder above the data folder", "err", err)
		}
		lock, err := lockFolder(dir)
		if err != nil {
			return nil, err
		}
		cleanup.add(lock.Close)
		warnNetworkFS(dir, o.Logger)
		o.fs = vfs.Default
	}
	store, err := ensureFormat(o.fs, o.Dir)
	if err != nil {
		return nil, err
	}
	if o.disk == nil {
		o.disk = newOSDisk(o.Dir)
	}
	space := &spaceGuard{fs: o.fs, dir: o.Dir}
	if err := space.measure(); err != nil {
		o.Logger.Warn("cannot measure free space", "dir", o.Dir, "err", err)
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = segmentBytes(space.total.Load())
	}
	kv, err := openKV(&o, store, space)
	if err != nil {
		return nil, err
	}
	cleanup.add(kv.Close)
	blobs, err := openBlobs(&o, kv, store)
	if err != nil {
		return nil, err
	}
	kv.onClose = cleanup.take(0)
	cleanup = nil
	kv.patience.opened.Store(true)
	return &cluster.Cluster{KV: kv, Blobs: blobs, Name: "local", Exclusive: true}, nil
}

// cleanups undo a half-done Open, the last first.
type cleanups []func() error

func (c *cleanups) add(f func() error) { *c = append(*c, f) }

// take returns the first cleanup: the lock, if there is one.
func (c cleanups) take(i int) func() error {
	if len(c) < 2 {
		return nil
	}
	return c[i]
}

func (c cleanups) run() {
	for i := len(c) - 1; i >= 0; i-- {
		_ = c[i]()
	}
}

func openKV(o *Options, store storeID, space *spaceGuard) (*KV, error) {
	h := &health{log: o.Logger}
	ballast := newBallast(o.disk, o.Dir, space, o.Logger)
	space.held = ballast.held
	patience := newPatience(h, space)
	patience.addRelease(ballast.release)
	cache := pebble.NewCache(o.CacheBytes)
	defer cache.Unref()
	dir := o.fs.PathJoin(o.Dir, metaDir)
	compactions := newScheduler()
	po := pebbleOptions(patientFS{o.fs, patience}, h, cache, compactions, space.total.Load())
	if o.memTable != 0 {
		po.MemTableSize = o.memTable
	}
	db, err := pebble.Open(dir, po)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, mapError(err))
	}
	compactions.begin()
	kv := newKV(db, h, space)
	kv.patience, kv.ballast = patience, ballast
	ballast.start()
	if err := checkStore(kv, store); err != nil {
		_ = kv.Close()
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return kv, nil
}

// checkStore makes sure that FORMAT and the metadata belong together.
func checkStore(kv *KV, store storeID) error {
	value, closer, err := kv.db.Get(storeKey)
	if errors.Is(err, pebble.ErrNotFound) {
		// Fresh, or the power went before this was durable.
		it, err := kv.db.NewIter(nil)
		if err != nil {
			return mapError(err)
		}
		empty := !it.First()
		if err := it.Close(); err != nil {
			return mapError(err)
		}
		if !empty {
			return fmt.Errorf("%w: the metadata carry no store ID", cluster.ErrFormat)
		}
		if err := kv.applyInternal(func(b *pebble.Batch) error { return b.Set(storeKey, store[:], nil) }); err != nil {
			return err
		}
		return kv.syncAll()
	}
	if err != nil {
		return mapError(err)
	}
	defer closer.Close()
	if string(value) != string(store[:]) {
		return fmt.Errorf("%w: the metadata belong to store %x, the folder to %s", cluster.ErrFormat, value, store)
	}
	return nil
}

func openBlobs(o *Options, kv *KV, store storeID) (*Blobs, error) {
	if err := makeFolders(o); err != nil {
		return nil, err
	}
	segments, err := newSegments(o.disk, filepath.Join(o.Dir, segmentDir), store, o.SegmentBytes, o.Logger)
	if err != nil {
		return nil, err
	}
	segments.alloc.space = kv.space
	kv.patience.addRelease(segments.alloc.shed)
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	b := &Blobs{
		dir:      o.Dir,
		host:     host,
		store:    store,
		disk:     o.disk,
		gate:     occ.NewGate(),
		index:    index{kv},
		space:    kv.space,
		handles:  newHandles(o.disk),
		places:   newPlaceCache(),
		sums:     newPageSums(),
		buffers:  newBuffers(),
		segments: segments,
		active:   make(map[cluster.BlobID]struct{}),
	}
	every := o.collectEvery
	if every == 0 {
		every = collectEvery
	}
	if b.collector, err = newCollector(b, every, o.Logger); err != nil {
		return nil, err
	}
	b.reaper = newReaper(o.disk, b.index.sync, o.Logger)
	b.sweeper = newSweeper(b, o.Logger)
	return b, nil
}

// makeFolders makes all folders once, so that no blob waits for that.
func makeFolders(o *Options) error {
	dirs := []string{filepath.Join(o.Dir, segmentDir), filepath.Join(o.Dir, blobDir)}
	for i := range blobFanOut {
		dirs = append(dirs, filepath.Join(o.Dir, blobDir, fmt.Sprintf("%02x", i)))
	}
	if _, err := o.disk.list(dirs[len(dirs)-1]); err == nil {
		return nil // made last, so the others are there
	}
	for _, dir := range dirs {
		if err := o.disk.mkdir(dir); err != nil {
			return mapError(err)
		}
	}
	for _, dir := range []string{filepath.Join(o.Dir, blobDir), o.Dir} {
		if err := o.disk.syncDir(dir); err != nil {
			return mapError(err)
		}
	}
	return nil
}

// warnNetworkFS tells operators what a network file system cannot promise.
func warnNetworkFS(dir string, log *slog.Logger) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC, 0xff534d42, unix.SMB2_SUPER_MAGIC:
		log.Warn("the data folder is on a network file system: its lock and its durability are only as good as that server's", "dir", dir)
	}
}

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ogw/cluster"
	"ogw/cluster/internal/occ"
	"ogw/cluster/local/internal/diskspace"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/metafs"
	"ogw/cluster/local/internal/record"
	"ogw/cluster/local/internal/segment"
	"ogw/cluster/local/internal/tail"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// Open opens the store in o.Dir, or makes one there. It returns ErrLocked
// when another process has it open, and ErrFormat when the folder holds
// something else or the store of a newer version; with o.MustExist ErrNoStore.
func Open(ctx context.Context, o Options) (*cluster.Cluster, error) {
	o.setDefaults()
	if o.SegmentBytes != 0 && (o.SegmentBytes%fileio.PageBytes != 0 || o.SegmentBytes < record.Bytes(smallMax)) {
		return nil, fmt.Errorf("%w: segments of %d bytes", cluster.ErrInvalid, o.SegmentBytes)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	files, err := limitFiles(o.openFiles)
	if err != nil {
		return nil, err
	}
	var cleanup cleanups
	defer func() { cleanup.run() }()
	if o.fs == nil {
		dir, err := filepath.Abs(o.Dir)
		if err != nil {
			return nil, ioerr.Map(err)
		}
		o.Dir = dir
		if err := makeFolder(dir, &o); err != nil {
			return nil, err
		}
		if err := fileio.SyncDir(vfs.Default, filepath.Dir(dir)); err != nil {
			o.Logger.Warn("cannot sync the folder above the data folder", "err", err)
		}
		lock, err := lockFolder(dir)
		if err != nil {
			return nil, err
		}
		cleanup.add(lock.Close)
		if err := checkFileSystem(dir, o.fsType, o.NetworkFS, o.Logger); err != nil {
			return nil, err
		}
		if err := makeStorePrivate(dir, o.Logger); err != nil {
			return nil, err
		}
		o.fs = fileio.PrivateFS{FS: vfs.Default}
	}
	store, err := ensureFormat(o.fs, o.Dir)
	if err != nil {
		return nil, err
	}
	handles := fileio.NewHandles(files.data)
	if o.disk == nil {
		disk := fileio.NewOS(o.Dir)
		disk.Relieve = handles.CloseIdle
		o.disk = disk
	}
	handles.Disk = o.disk
	space := diskspace.New(o.fs, o.Dir)
	if err := space.Measure(); err != nil {
		o.Logger.Warn("cannot measure free space", "dir", o.Dir, "err", err)
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = segmentBytes(space.DiskBytes())
	}
	kv, err := openKV(&o, store, space, files.meta, handles.CloseIdle)
	if err != nil {
		return nil, err
	}
	cleanup.add(kv.Close)
	blobs, err := openBlobs(&o, kv, store, handles)
	if err != nil {
		return nil, err
	}
	kv.onClose = cleanup.take(0)
	cleanup = nil
	kv.spaceWait.StoreIsOpen()
	return &cluster.Cluster{KV: kv, Blobs: blobs, Name: "local", Exclusive: true, Writable: kv.writable}, nil
}

// findStore fails where there is no store. What else is wrong is found later, with the
// folder locked.
func findStore(dir string) error {
	if _, err := findFormat(vfs.Default, dir); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: folder %s has no %s file", cluster.ErrNoStore, dir, record.FormatFile)
	}
	return nil
}

// makeFolder makes the data folder, or looks who may change the one there is.
func makeFolder(dir string, o *Options) error {
	if o.MustExist {
		if err := findStore(dir); err != nil {
			return err
		}
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(dir, fileio.FolderMode); err != nil {
			return ioerr.Map(err)
		}
		return ioerr.Map(os.Chmod(dir, fileio.FolderMode)) // whatever the umask took
	}
	return checkFolder(dir, o.Logger)
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

func openKV(o *Options, store record.StoreID, space *diskspace.Guard, files int, relieve func() bool) (*KV, error) {
	h := metafs.NewHealth(o.Logger)
	reserve := diskspace.NewReserveFile(o.disk, filepath.Join(o.Dir, record.ReserveFile), space, o.Logger)
	wait := metafs.NewSpaceWait(h, space)
	wait.AddRelease(reserve.Release)
	cache := pebble.NewCache(o.CacheBytes)
	defer cache.Unref()
	dir := o.fs.PathJoin(o.Dir, record.MetaDir)
	logs := metafs.NewLogFS(o.fs, dir)
	rollback := metafs.NewRollbackGuard(logs, o.Dir, relieve, o.Logger)
	if err := rollback.Begin(store); err != nil {
		return nil, err
	}
	compactions := newScheduler()
	po := pebbleOptions(metafs.Stack(rollback, wait, h), h, cache, compactions, space.DiskBytes())
	values := new(separation)
	po.Experimental.ValueSeparationPolicy = values.policy
	po.MaxOpenFiles = files
	if o.MemTableBytes != 0 {
		po.MemTableSize = min(po.MemTableSize, uint64(o.MemTableBytes))
	}
	if o.memTable != 0 {
		po.MemTableSize = o.memTable
	}
	options, err := metafs.FindOptions(o.fs, dir)
	if err != nil {
		return nil, err
	}
	db, err := pebble.Open(dir, po)
	if err != nil {
		rollback.Refuse()
		if errors.Is(err, unix.EAGAIN) {
			// Pebble's own lock: somebody removed ours, or replaced it.
			return nil, fmt.Errorf("%w: folder %s, process unknown", cluster.ErrLocked, o.Dir)
		}
		return nil, fmt.Errorf("open %s: %w", dir, ioerr.MapOpen(err))
	}
	wait.PebbleIsOpen()
	kv := newKV(db, h, space, o.Logger)
	if o.patience != 0 {
		h.Disk.SetLimit(o.patience)
		kv.closeMax, kv.stallMax = 2*o.patience, o.patience/2
	}
	kv.spaceWait, kv.reserveFile, kv.logs, kv.values = wait, reserve, logs, values
	kv.marker.kv, kv.marker.guard = kv, rollback
	kv.tail = tail.New(tail.Config{FS: o.fs, Path: o.fs.PathJoin(o.Dir, record.TailFile), DiskBytes: space.DiskBytes(), Log: o.Logger,
		Half: o.tailHalf, Rest: o.tailRest})
	kv.durability.unloggedMax = int(po.MemTableSize) / unloggedShare
	if o.tailAlone != 0 {
		kv.durability.aloneMin = o.tailAlone
	}
	reserve.Start()
	made, err := metafs.FindOptions(o.fs, dir)
	if err == nil {
		err = kv.tail.Begin(made.Newest())
	}
	if err == nil {
		err = checkStore(o, kv, store, options)
	}
	if err != nil {
		_ = kv.Close()
		rollback.Refuse()
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	compactions.begin()
	kv.marker.start(o.markEvery)
	return kv, nil
}

// checkStore makes sure that the metadata are those of FORMAT and of the data,
// and writes to them only then.
//
// options are Pebble's OPTIONS files before it was opened.
func checkStore(o *Options, kv *KV, store record.StoreID, options metafs.OptionsFiles) error {
	value, closer, err := kv.db.Get(record.StoreKey)
	fresh := errors.Is(err, pebble.ErrNotFound)
	switch {
	case fresh:
		if err := checkFreshStore(o, kv); err != nil {
			return err
		}
	case err != nil:
		return ioerr.Map(err)
	default:
		found := string(value)
		if err := closer.Close(); err != nil {
			return ioerr.Map(err)
		}
		if found != string(store[:]) {
			return fmt.Errorf("%w: the metadata belong to store %x, the folder to %s", cluster.ErrFormat, found, store)
		}
	}
	if err := kv.health.Failure(); err != nil {
		return err
	}
	if err := kv.marker.guard.Check(kv.db); err != nil {
		return err
	}
	// Before the store is accepted: a start that fails, or is killed, leaves
	// what the next one needs.
	if !fresh {
		if err := kv.replayTail(options); err != nil {
			return err
		}
	}
	if err := kv.marker.guard.Accept(kv.db); err != nil {
		return err
	}
	if err := kv.tail.Remove(); err != nil {
		return err // what it holds is old
	}
	if !fresh {
		return nil
	}
	if err := kv.applyInternal(func(b *pebble.Batch) error { return b.Set(record.StoreKey, store[:], nil) }); err != nil {
		return err
	}
	return kv.syncAll()
}

// checkFreshStore refuses metadata without a store ID, unless they are new, or
// the power went before it was durable: then nothing came after it.
func checkFreshStore(o *Options, kv *KV) error {
	it, err := kv.db.NewIter(nil)
	if err != nil {
		return ioerr.Map(err)
	}
	empty := !it.First()
	if err := it.Close(); err != nil {
		return ioerr.Map(err)
	}
	if !empty {
		return fmt.Errorf("%w: the metadata carry no store ID", cluster.ErrFormat)
	}
	for _, dir := range []string{record.SegmentDir, record.BlobDir} { // made after the ID
		if _, err := o.fs.Stat(o.fs.PathJoin(o.Dir, dir)); err == nil {
			return metafs.ErrMetadataGone
		}
	}
	return nil
}

func openBlobs(o *Options, kv *KV, store record.StoreID, handles *fileio.Handles) (*Blobs, error) {
	if err := makeFolders(o); err != nil {
		return nil, err
	}
	segments, err := segment.Open(segment.Config{Disk: o.disk, Dir: filepath.Join(o.Dir, record.SegmentDir), Store: store,
		Bytes: o.SegmentBytes, Space: kv.space, Log: o.Logger})
	if err != nil {
		return nil, err
	}
	kv.spaceWait.AddRelease(segments.Shed)
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	b := &Blobs{
		dir:      o.Dir,
		host:     host,
		log:      o.Logger,
		now:      o.now,
		store:    store,
		disk:     o.disk,
		gate:     occ.NewGate(),
		index:    index{kv},
		health:   kv.health,
		space:    kv.space,
		handles:  handles,
		windows:  fileio.NewWindows(windowsBytes, fileio.NewPresence(o.disk, o.Dir)),
		places:   newPlaceCache(),
		sums:     newPageSums(),
		buffers:  newBuffers(),
		segments: segments,
		active:   make(map[cluster.BlobID]struct{}),
	}
	if err := b.recallDoubts(); err != nil {
		return nil, err
	}
	every := o.collectEvery
	if every == 0 {
		every = collectEvery
	}
	b.collector = newCollector(b, every, o.Logger)
	b.reaper = newReaper(b.unlink, b.index.sync, o.Logger)
	b.sweeper = newSweeper(b, o.Logger)
	return b, nil
}

// makeFolders makes all folders once, so that no blob waits for that.
func makeFolders(o *Options) error {
	dirs := []string{filepath.Join(o.Dir, record.SegmentDir), filepath.Join(o.Dir, record.BlobDir)}
	for i := range record.BlobFanOut {
		dirs = append(dirs, record.BlobFolder(o.Dir, i))
	}
	if _, err := o.disk.List(dirs[len(dirs)-1]); err != nil { // made last: else the others are there
		for _, dir := range dirs {
			if err := o.disk.Mkdir(dir); err != nil {
				return ioerr.Map(err)
			}
		}
	}
	// Also of who made them, and was killed before it came to this.
	for _, dir := range []string{filepath.Join(o.Dir, record.BlobDir), o.Dir} {
		if err := o.disk.SyncDir(dir); err != nil {
			return ioerr.Map(err)
		}
	}
	return nil
}

package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"ogw/cluster"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// markEvery is how old the mark may be while there are changes; what is
// younger is not noticed when it is missing after a crash. Close writes it.
const markEvery = 5 * time.Second

// witness keeps the mark, and compares with it at the start. It stands between
// Pebble and the file system, to know the files. Until the store was accepted
// it lets Pebble remove nothing, and if it is refused, takes back what Pebble
// made: whoever puts the right files back finds the store as it was.
type witness struct {
	vfs.FS
	dir     string // the data folder
	log     *slog.Logger
	relieve func() bool // see openWith

	mu       sync.Mutex
	accepted bool
	made     []string        // by Open
	removed  []string        // by Open, not yet done
	writing  map[string]bool // tables and values that are not whole yet
	prints   map[string]filePrint

	// After Open, used by one goroutine at a time.
	store storeID
	state uint64
	at    uint64 // version of the newest mark
	quit  chan struct{}
	done  chan struct{}
}

func newWitness(fs vfs.FS, dir string, log *slog.Logger) *witness {
	return &witness{FS: fs, dir: dir, log: log, writing: map[string]bool{}, prints: map[string]filePrint{}}
}

// marked tells whether the mark has a print of the file.
func marked(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, valueSuffix)
}

// Create implements vfs.FS.
func (w *witness) Create(name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := openWith(w.relieve, func() (vfs.File, error) { return w.FS.Create(name, why) })
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.accepted {
		w.made = append(w.made, name)
	}
	base := path.Base(name)
	if strings.HasPrefix(base, optionsTemp) {
		if _, err := io.WriteString(f, optionsTrace); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if !marked(base) {
		return f, nil
	}
	delete(w.prints, base)
	w.writing[base] = true
	return &witnessedFile{f, w, base}, nil
}

// optionsTemp begins the name of an OPTIONS file that is being made.
const optionsTemp = "temporary."

// ReuseForWrite implements vfs.FS.
func (w *witness) ReuseForWrite(old, name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	w.mu.Lock()
	accepted := w.accepted
	w.mu.Unlock()
	if accepted {
		return w.FS.ReuseForWrite(old, name, why)
	}
	f, err := w.Create(name, why)
	if err == nil {
		err = w.Remove(old)
	}
	return f, err
}

// witnessedFile tells when the file is whole.
type witnessedFile struct {
	vfs.File
	witness *witness
	name    string
}

// Close implements vfs.File.
func (f *witnessedFile) Close() error {
	err := f.File.Close()
	f.witness.mu.Lock()
	defer f.witness.mu.Unlock()
	delete(f.witness.writing, f.name)
	return err
}

// Remove implements vfs.FS.
func (w *witness) Remove(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.accepted {
		w.removed = append(w.removed, name)
		return nil
	}
	delete(w.prints, path.Base(name))
	return w.FS.Remove(name)
}

// Rename implements vfs.FS.
func (w *witness) Rename(old, name string) error {
	err := w.FS.Rename(old, name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && !w.accepted {
		w.made = append(w.made, name)
	}
	return err
}

// Lock implements vfs.FS.
func (w *witness) Lock(name string) (io.Closer, error) {
	_, missing := w.FS.Stat(name)
	l, err := w.FS.Lock(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && errors.Is(missing, os.ErrNotExist) && !w.accepted {
		w.made = append(w.made, name)
	}
	return l, err
}

// Unwrap implements vfs.FS.
func (w *witness) Unwrap() vfs.FS { return w.FS }

// begin compares the files with the mark, before Pebble opens them.
func (w *witness) begin(store storeID) error {
	w.store = store
	if err := w.checkMarker(); err != nil {
		return err
	}
	m, err := readMark(w.FS, w.dir)
	if errors.Is(err, cluster.ErrCorrupt) {
		w.log.Warn("the metadata cannot be compared with what they were", "err", err)
		return nil
	}
	if err != nil || m == nil {
		return err
	}
	if m.store != store {
		return fmt.Errorf("%w: file %s belongs to store %s, the folder to %s",
			cluster.ErrFormat, w.PathJoin(w.dir, markFile), m.store, store)
	}
	w.state, w.prints = m.state, m.files
	gone, err := m.check(w.FS, w.PathJoin(w.dir, metaDir))
	if err != nil {
		return err
	}
	if gone {
		w.write() // the numbers may be given again
	}
	return nil
}

// checkMarker looks for the file that names the manifest. Without it, Pebble
// would begin a new one, perhaps over one that is there; as it should where the
// first start ended before there were data, or a mark.
func (w *witness) checkMarker() error {
	_, err := w.Stat(w.PathJoin(w.dir, segmentDir))
	if errors.Is(err, os.ErrNotExist) {
		if _, err = w.Stat(w.PathJoin(w.dir, markFile)); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	if err != nil {
		return mapError(err)
	}
	meta := w.PathJoin(w.dir, metaDir)
	names, err := w.List(meta)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return mapError(err)
	}
	is := func(prefix string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, prefix) })
	}
	switch {
	case is("marker.manifest."):
		return nil
	case is("MANIFEST-"):
		return fmt.Errorf("%w: folder %s has a manifest and no file marker.manifest.*", cluster.ErrCorrupt, meta)
	default:
		return fmt.Errorf("open %s: %w", meta, errMetadataGone)
	}
}

var errMetadataGone = fmt.Errorf("%w: the metadata are gone, the data are there", cluster.ErrCorrupt)

// stateOf returns the number of the metadata.
func stateOf(db *pebble.DB) (state uint64, err error) {
	value, closer, err := db.Get(markKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, mapError(err)
	}
	if len(value) == 8 {
		state = binary.LittleEndian.Uint64(value)
	}
	return state, mapError(closer.Close())
}

// check compares what Pebble found with the mark.
func (w *witness) check(db *pebble.DB) error {
	state, err := stateOf(db)
	if err != nil {
		return err
	}
	if state < w.state {
		return fmt.Errorf("%w: the metadata are older than they were (state %d of %d): a file was lost, cut, or replaced by an "+
			"older copy; put the right files back, or remove %s to go on with what is there",
			cluster.ErrCorrupt, state, w.state, w.PathJoin(w.dir, markFile))
	}
	return w.checkValueFiles(db)
}

// accept lets Pebble remove files, after check.
func (w *witness) accept(db *pebble.DB) error {
	state, err := stateOf(db)
	if err != nil {
		return err
	}
	w.state = state
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted = true
	for _, name := range w.removed {
		delete(w.prints, path.Base(name))
		_ = w.FS.Remove(name) // else Pebble's next start finds it
	}
	w.made, w.removed = nil, nil
	return nil
}

// checkValueFiles looks for the files of values, which Pebble's start does
// not. No compaction may run.
func (w *witness) checkValueFiles(db *pebble.DB) error {
	for values := range db.DebugCurrentVersion().BlobFiles.All() {
		path := w.PathJoin(w.dir, metaDir, fmt.Sprintf("%06d%s", uint64(values.Physical.FileNum), valueSuffix))
		info, err := w.Stat(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%w: file %s is missing", cluster.ErrCorrupt, path)
		case err != nil:
			return mapError(err)
		case uint64(info.Size()) != values.Physical.Size:
			return fmt.Errorf("%w: file %s has %d bytes instead of %d", cluster.ErrCorrupt, path, info.Size(), values.Physical.Size)
		}
	}
	return nil
}

// refuse takes back what Pebble made, after it was closed: the markers first, so
// that the files of before count from then on, whenever this ends.
func (w *witness) refuse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, markers := range []bool{true, false} {
		for _, name := range slices.Backward(w.made) {
			if strings.HasPrefix(path.Base(name), "marker.") == markers {
				_ = w.FS.Remove(name)
			}
		}
	}
	w.made = nil
}

// start keeps the mark fresh until stop.
func (w *witness) start(kv *KV, every time.Duration) {
	w.at = kv.visible.Load()
	w.quit, w.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(w.done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.advance(kv)
			case <-w.quit:
				return
			}
		}
	}()
}

func (w *witness) stop() {
	if w.quit != nil {
		close(w.quit)
		<-w.done
	}
}

// advance writes a mark of what is there now, if there is something new.
func (w *witness) advance(kv *KV) {
	if w.count(kv) {
		w.write()
	}
}

// count gives the metadata a new state; false if nothing is new, or the store
// is not well: the mark is worth no trouble.
func (w *witness) count(kv *KV) bool {
	if w.quit == nil || kv.visible.Load() == w.at || kv.health.err() != nil || !kv.space.roomy(0, lastReserve) {
		return false
	}
	b := kv.db.NewBatch()
	if err := b.Set(markKey, binary.LittleEndian.AppendUint64(nil, w.state+1), nil); err != nil {
		b.Close()
		return false
	}
	c, _, err := kv.apply(b, applyOptions{keys: noKeys, relaxed: true})
	if err != nil {
		return false
	}
	if err := kv.durability.await(c.version); err != nil {
		return false
	}
	w.state++
	w.at = c.version
	return true
}

// write replaces the file by one of what is there now.
func (w *witness) write() {
	files, err := w.files()
	if err == nil {
		err = replaceFile(w.FS, w.dir, markFile, (&mark{store: w.store, state: w.state, files: files}).encode())
	}
	if err != nil {
		w.log.Warn("cannot write the mark of the metadata", "file", w.PathJoin(w.dir, markFile), "err", err)
	}
}

// files returns the prints of the files of tables and values that are whole.
// Their entries are durable, so that Pebble gives none of the numbers again.
func (w *witness) files() (map[string]filePrint, error) {
	meta := w.PathJoin(w.dir, metaDir)
	names, err := w.List(meta)
	if err != nil {
		return nil, err
	}
	if err := syncDir(w.FS, meta); err != nil {
		return nil, err
	}
	files := make(map[string]filePrint)
	for _, name := range names {
		if !marked(name) {
			continue
		}
		if p, ok := w.print(w.PathJoin(meta, name), name); ok {
			files[name] = p
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prints = maps.Clone(files)
	return files, nil
}

// print returns the print of a file; false if it is not whole, or gone.
func (w *witness) print(path, name string) (filePrint, bool) {
	w.mu.Lock()
	p, known := w.prints[name]
	writing := w.writing[name]
	w.mu.Unlock()
	if known || writing {
		return p, known
	}
	p, err := printOf(w.FS, path)
	if err != nil {
		return p, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prints[name] = p
	return p, true
}

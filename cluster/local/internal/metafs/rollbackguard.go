package metafs

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

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// RollbackGuard keeps the mark, and compares with it at the start. It stands between
// Pebble and the file system, to know the files. Until the store was accepted
// it lets Pebble remove nothing, and if it is refused, takes back what Pebble
// made: whoever puts the right files back finds the store as it was.
type RollbackGuard struct {
	vfs.FS
	dir     string // the data folder
	log     *slog.Logger
	relieve func() bool // see fileio.Open

	mu       sync.Mutex
	accepted bool
	made     []string        // by Open
	removed  []string        // by Open, not yet done
	writing  map[string]bool // tables and values that are not whole yet
	prints   map[string]record.Print

	// After Open, used by one goroutine at a time.
	store record.StoreID
	state uint64
}

// NewRollbackGuard guards the metadata of the data folder dir. relieve closes files
// that are only kept for later; see fileio.Open.
func NewRollbackGuard(fs vfs.FS, dir string, relieve func() bool, log *slog.Logger) *RollbackGuard {
	return &RollbackGuard{FS: fs, dir: dir, log: log, relieve: relieve, writing: map[string]bool{}, prints: map[string]record.Print{}}
}

// marked reports whether the mark has a print of the file.
func marked(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, valueSuffix)
}

// Create implements vfs.FS.
func (g *RollbackGuard) Create(name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	base := path.Base(name)
	g.begin(base)
	f, err := fileio.Open(g.relieve, func() (vfs.File, error) { return g.FS.Create(name, why) })
	if err != nil {
		g.end(base)
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.accepted {
		g.made = append(g.made, name)
	}
	if strings.HasPrefix(base, optionsTemp) {
		if _, err := io.WriteString(f, optionsTrace); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if !marked(base) {
		return f, nil
	}
	return &guardedFile{f, g, base}, nil
}

// begin notes that a file is not whole, before it is there: a mark that is written meanwhile
// would hold the print of a part of it.
func (g *RollbackGuard) begin(base string) {
	if !marked(base) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.prints, base)
	g.writing[base] = true
}

// end notes that a file is whole, or not made.
func (g *RollbackGuard) end(base string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.writing, base)
}

// ReuseForWrite implements vfs.FS.
func (g *RollbackGuard) ReuseForWrite(old, name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	g.mu.Lock()
	accepted := g.accepted
	g.mu.Unlock()
	if accepted {
		return g.FS.ReuseForWrite(old, name, why)
	}
	f, err := g.Create(name, why)
	if err == nil {
		err = g.Remove(old)
	}
	return f, err
}

// guardedFile reports when the file is whole.
type guardedFile struct {
	vfs.File
	guard *RollbackGuard
	name  string
}

// Close implements vfs.File.
func (f *guardedFile) Close() error {
	defer f.guard.end(f.name)
	return f.File.Close()
}

// Remove implements vfs.FS.
func (g *RollbackGuard) Remove(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.accepted {
		g.removed = append(g.removed, name)
		return nil
	}
	delete(g.prints, path.Base(name))
	return g.FS.Remove(name)
}

// Rename implements vfs.FS.
func (g *RollbackGuard) Rename(old, name string) error {
	err := g.FS.Rename(old, name)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && !g.accepted {
		g.made = append(g.made, name)
	}
	return err
}

// Lock implements vfs.FS.
func (g *RollbackGuard) Lock(name string) (io.Closer, error) {
	_, missing := g.FS.Stat(name)
	l, err := g.FS.Lock(name)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && errors.Is(missing, os.ErrNotExist) && !g.accepted {
		g.made = append(g.made, name)
	}
	return l, err
}

// Unwrap implements vfs.FS.
func (g *RollbackGuard) Unwrap() vfs.FS { return g.FS }

// Begin compares the files with the mark, before Pebble opens them.
func (g *RollbackGuard) Begin(store record.StoreID) error {
	g.store = store
	if err := g.checkMarker(); err != nil {
		return err
	}
	m, err := readMark(g.FS, g.dir)
	if errors.Is(err, cluster.ErrCorrupt) {
		g.log.Warn("the metadata cannot be compared with what they were", "err", err)
		return nil
	}
	if err != nil || m == nil {
		return err
	}
	if m.Store != store {
		return fmt.Errorf("%w: file %s belongs to store %s, the folder to %s",
			cluster.ErrFormat, g.PathJoin(g.dir, record.MarkFile), m.Store, store)
	}
	g.state, g.prints = m.State, m.Files
	gone, err := compare(m, g.FS, g.PathJoin(g.dir, record.MetaDir))
	if err != nil {
		return err
	}
	if gone {
		g.Write() // the numbers may be given again
	}
	return nil
}

// checkMarker looks for the file that names the manifest. Without it, Pebble
// would begin a new one, perhaps over one that is there; as it should where the
// first start ended before there were data, or a mark.
func (g *RollbackGuard) checkMarker() error {
	_, err := g.Stat(g.PathJoin(g.dir, record.SegmentDir))
	if errors.Is(err, os.ErrNotExist) {
		if _, err = g.Stat(g.PathJoin(g.dir, record.MarkFile)); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	if err != nil {
		return ioerr.Map(err)
	}
	meta := g.PathJoin(g.dir, record.MetaDir)
	names, err := g.List(meta)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return ioerr.Map(err)
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
		return fmt.Errorf("open %s: %w", meta, ErrMetadataGone)
	}
}

// ErrMetadataGone refuses to begin new metadata beside data.
var ErrMetadataGone = fmt.Errorf("%w: the metadata are gone, the data are there", cluster.ErrCorrupt)

// stateOf returns the number of the metadata.
func stateOf(db *pebble.DB) (state uint64, err error) {
	value, closer, err := db.Get(record.MarkKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, ioerr.Map(err)
	}
	if len(value) == 8 {
		state = binary.LittleEndian.Uint64(value)
	}
	return state, ioerr.Map(closer.Close())
}

// Check compares what Pebble found with the mark.
func (g *RollbackGuard) Check(db *pebble.DB) error {
	state, err := stateOf(db)
	if err != nil {
		return err
	}
	if state < g.state {
		return fmt.Errorf("%w: the metadata are older than they were (state %d of %d): a file was lost, cut, or replaced by an "+
			"older copy; put the right files back, or remove %s to go on with what is there",
			cluster.ErrCorrupt, state, g.state, g.PathJoin(g.dir, record.MarkFile))
	}
	return g.checkValueFiles(db)
}

// Accept lets Pebble remove files, after check.
func (g *RollbackGuard) Accept(db *pebble.DB) error {
	state, err := stateOf(db)
	if err != nil {
		return err
	}
	g.state = state
	g.mu.Lock()
	defer g.mu.Unlock()
	g.accepted = true
	for _, name := range g.removed {
		delete(g.prints, path.Base(name))
		_ = g.FS.Remove(name) // else Pebble's next start finds it
	}
	g.made, g.removed = nil, nil
	return nil
}

// checkValueFiles looks for the files of values, which Pebble's start does
// not. No compaction may run.
func (g *RollbackGuard) checkValueFiles(db *pebble.DB) error {
	for values := range db.DebugCurrentVersion().BlobFiles.All() {
		path := g.PathJoin(g.dir, record.MetaDir, fmt.Sprintf("%06d%s", uint64(values.Physical.FileNum), valueSuffix))
		info, err := g.Stat(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%w: file %s is missing", cluster.ErrCorrupt, path)
		case err != nil:
			return ioerr.Map(err)
		case uint64(info.Size()) != values.Physical.Size:
			return fmt.Errorf("%w: file %s has %d bytes instead of %d", cluster.ErrCorrupt, path, info.Size(), values.Physical.Size)
		}
	}
	return nil
}

// Refuse takes back what Pebble made, after it was closed: the markers first, so
// that the files of before count from then on, whenever this ends.
func (g *RollbackGuard) Refuse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, markers := range []bool{true, false} {
		for _, name := range slices.Backward(g.made) {
			if strings.HasPrefix(path.Base(name), "marker.") == markers {
				_ = g.FS.Remove(name)
			}
		}
	}
	g.made = nil
}

// Next returns what the metadata must hold for advance.
func (g *RollbackGuard) Next() (key, value []byte) {
	return record.MarkKey, binary.LittleEndian.AppendUint64(nil, g.state+1)
}

// Advance notes that the metadata hold what next returned, durably.
func (g *RollbackGuard) Advance() { g.state++ }

// Write replaces the file by one of what is there now.
func (g *RollbackGuard) Write() {
	files, err := g.files()
	if err == nil {
		err = fileio.Replace(g.FS, g.dir, record.MarkFile, (&record.Mark{Store: g.store, State: g.state, Files: files}).Encode())
	}
	if err != nil {
		g.log.Warn("cannot write the mark of the metadata", "file", g.PathJoin(g.dir, record.MarkFile), "err", err)
	}
}

// files returns the prints of the files of tables and values that are whole.
// Their entries are durable, so that Pebble gives none of the numbers again.
func (g *RollbackGuard) files() (map[string]record.Print, error) {
	meta := g.PathJoin(g.dir, record.MetaDir)
	names, err := g.List(meta)
	if err != nil {
		return nil, err
	}
	if err := fileio.SyncDir(g.FS, meta); err != nil {
		return nil, err
	}
	files := make(map[string]record.Print)
	for _, name := range names {
		if !marked(name) {
			continue
		}
		if p, ok := g.print(g.PathJoin(meta, name), name); ok {
			files[name] = p
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prints = maps.Clone(files)
	return files, nil
}

// print returns the print of a file; false if it is not whole, or gone.
func (g *RollbackGuard) print(path, name string) (record.Print, bool) {
	g.mu.Lock()
	p, known := g.prints[name]
	writing := g.writing[name]
	g.mu.Unlock()
	if known || writing {
		return p, known
	}
	p, err := printOf(g.FS, path)
	if err != nil {
		return p, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prints[name] = p
	return p, true
}

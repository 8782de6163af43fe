package backup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"ogw/vfs"
)

// formatVersion is that of a repository. It grows when older programs could not
// read what a newer one writes.
const formatVersion = 1

const configName = "ogw-backup.json"

// Repository holds snapshots in a Storage.
type Repository struct {
	Storage
	ID string
}

type repositoryConfig struct {
	Format  int       `json:"format"`
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
}

// Open opens a repository; ErrNotExist, ErrFormat.
func Open(ctx context.Context, s Storage) (*Repository, error) {
	b, err := s.Get(ctx, configName, 0, -1)
	if errors.Is(err, ErrNotExist) {
		return nil, fmt.Errorf("%s is not a backup repository: %w", s, err)
	}
	if err != nil {
		return nil, err
	}
	var c repositoryConfig
	if err := json.Unmarshal(b, &c); err != nil || c.Format == 0 {
		return nil, fmt.Errorf("%s %w: its file %s is damaged", s, ErrFormat, configName)
	}
	if c.Format > formatVersion {
		return nil, fmt.Errorf("%s %w: a newer ogw made it (format %d, this one knows up to %d)", s, ErrFormat, c.Format, formatVersion)
	}
	return &Repository{s, c.ID}, nil
}

// OpenOrMake opens a repository, or makes one where nothing is.
func OpenOrMake(ctx context.Context, s Storage) (*Repository, error) {
	r, err := Open(ctx, s)
	if !errors.Is(err, ErrNotExist) {
		return r, err
	}
	found := ""
	err = s.List(ctx, "", func(o Object) error {
		if o.Name != lockName && !strings.HasPrefix(o.Name, newDir+"/") {
			found = o.Name
			return errStop
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	if found != "" {
		return nil, fmt.Errorf("%s %w: it holds other things (%s); name an empty place", s, ErrFormat, found)
	}
	c := repositoryConfig{formatVersion, randomHex(), time.Now().UTC()}
	b, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	if err := s.Put(ctx, configName, b, false); err != nil && !errors.Is(err, ErrExist) {
		return nil, err
	}
	return Open(ctx, s)
}

var errStop = errors.New("stop")

func randomHex() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Snapshot is the manifest of a backup.
type Snapshot struct {
	Format int    `json:"format"`
	ID     string `json:"id"`
	// What was saved: the file system, the format of its metadata, the instant by
	// the clock of then, and by which program.
	FSID        string    `json:"fsid"`
	StoreFormat uint64    `json:"store_format"`
	Time        time.Time `json:"time"`
	Version     string    `json:"version"`
	Settled     bool      `json:"settled"`
	// Layers are its catalog, the oldest first.
	Layers []Layer `json:"layers"`
	Stats
	// Damaged are blobs that could not be read, at most maxDamaged of them: the
	// files that use them are not whole.
	Damaged []string `json:"damaged,omitempty"`
	// Alone is why it took nothing from the backup before, whose list is damaged: all was
	// moved again. "": it did, or there was none.
	Alone string `json:"alone,omitempty"`
	// Keys are the IDs of the keys that seal its secrets.
	Keys []string `json:"keys,omitempty"`
}

// Stats describe how a backup went.
type Stats struct {
	Began    time.Time `json:"began"`
	Finished time.Time `json:"finished"`
	Records  int64     `json:"records"` // pairs of metadata
	Blobs    int64     `json:"blobs"`
	Bytes    int64     `json:"bytes"` // of metadata and blobs
	// Moved are the bytes that were written to the repository, ReadBack those
	// that were read from it, to find out what changed.
	Moved    int64 `json:"moved_bytes"`
	ReadBack int64 `json:"read_back_bytes"`
	// Resumed are the bytes that earlier backups moved which did not finish.
	Resumed int64 `json:"resumed_bytes"`
	// WriterWait is the longest that a writer can have waited.
	WriterWait   time.Duration     `json:"writer_wait_ns"`
	Secrets      vfs.BackupSecrets `json:"secrets"`
	DamagedBlobs int64             `json:"damaged_blobs"`
}

// envelope is how a manifest is stored.
type envelope struct {
	SHA256   string          `json:"sha256"`
	Manifest json.RawMessage `json:"manifest"`
}

const snapshotDir, snapshotSuffix = "snapshots/", ".json"

func snapshotName(id string) string { return snapshotDir + id + snapshotSuffix }

// idSeconds is the layout of an ID up to its microseconds.
const idSeconds = "20060102T150405"

// snapshotID names a snapshot by its instant, to the microsecond: names are in the
// order in which snapshots were made, which finds the newest. The clock may have been set
// back, or may have been ahead: behind the one before (its ID, "": none), the next
// microsecond is the earliest.
func snapshotID(t time.Time, before string) string {
	t = t.UTC().Truncate(time.Microsecond)
	if was, ok := idTime(before); ok && !t.After(was) {
		t = was.Add(time.Microsecond)
	}
	return fmt.Sprintf("%s%06dZ-%s", t.Format(idSeconds), t.Nanosecond()/1000, randomHex()[:4])
}

// idTime returns the time in an ID.
func idTime(id string) (t time.Time, ok bool) {
	id, _, ok = strings.Cut(id, "Z-")
	if !ok || len(id) != len(idSeconds)+6 {
		return t, false
	}
	t, err := time.Parse(idSeconds, id[:len(idSeconds)])
	micro, e := strconv.Atoi(id[len(idSeconds):])
	return t.Add(time.Duration(micro) * time.Microsecond), err == nil && e == nil
}

func (r *Repository) publish(ctx context.Context, s *Snapshot) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(b)
	b, err = json.Marshal(envelope{hex.EncodeToString(digest[:]), b})
	if err != nil {
		return err
	}
	return r.Put(ctx, snapshotName(s.ID), b, false)
}

// Load reads a snapshot; "latest" is the newest, if all are of one store.
// ErrNotExist, ErrDamaged, ErrFormat, ErrAmbiguous.
func (r *Repository) Load(ctx context.Context, id string) (*Snapshot, error) {
	if id == "latest" {
		ids, err := r.ids(ctx)
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			return nil, fmt.Errorf("a finished backup in %s: %w", r, ErrNotExist)
		}
		if err := r.oneStore(ctx); err != nil {
			return nil, err
		}
		id = ids[len(ids)-1]
	}
	if strings.ContainsAny(id, "/.") {
		return nil, fmt.Errorf("snapshot %q: %w", id, ErrNotExist)
	}
	b, err := r.Get(ctx, snapshotName(id), 0, -1)
	if errors.Is(err, ErrNotExist) {
		return nil, fmt.Errorf("snapshot %s in %s: %w", id, r, ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	var e envelope
	damaged := func(why any) error { return fmt.Errorf("%w: snapshot %s: %v", ErrDamaged, id, why) }
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, damaged(err)
	}
	if digest := sha256.Sum256(e.Manifest); hex.EncodeToString(digest[:]) != e.SHA256 {
		return nil, damaged("it does not have its checksum")
	}
	var s Snapshot
	if err := json.Unmarshal(e.Manifest, &s); err != nil {
		return nil, damaged(err)
	}
	if s.Format > formatVersion {
		return nil, fmt.Errorf("snapshot %s %w: a newer ogw made it", id, ErrFormat)
	}
	if s.ID != id || len(s.Layers) > maxLayers {
		return nil, damaged("it is another one")
	}
	return &s, nil
}

// oneStore returns ErrAmbiguous if there are snapshots of several stores.
func (r *Repository) oneStore(ctx context.Context) error {
	list, _, err := r.Snapshots(ctx)
	if err != nil {
		return err
	}
	newest := map[string]string{} // by store
	for _, s := range list {
		newest[s.FSID] = s.ID
	}
	if len(newest) < 2 {
		return nil
	}
	var each []string
	for _, fsid := range slices.Sorted(maps.Keys(newest)) {
		if each = append(each, fmt.Sprintf("%s of store %s", newest[fsid], fsid)); len(each) == maxNamedStores {
			break
		}
	}
	return fmt.Errorf("%w: %s holds backups of %d stores; name the snapshot (ogw backup list shows all). The newest are %s",
		ErrAmbiguous, r, len(newest), strings.Join(each, ", "))
}

// maxNamedStores bounds the length of a message.
const maxNamedStores = 8

// ids returns the names of all snapshots, the oldest first.
func (r *Repository) ids(ctx context.Context) (list []string, err error) {
	err = r.List(ctx, snapshotDir, func(o Object) error {
		if id, ok := strings.CutSuffix(strings.TrimPrefix(o.Name, snapshotDir), snapshotSuffix); ok {
			list = append(list, id)
		}
		return nil
	})
	slices.Sort(list)
	return list, err
}

// Snapshots returns all that can be read, the oldest first, and what is wrong
// with the others.
func (r *Repository) Snapshots(ctx context.Context) (list []*Snapshot, bad error, err error) {
	ids, err := r.ids(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		s, err := r.Load(ctx, id)
		switch {
		case err == nil:
			list = append(list, s)
		case errors.Is(err, ErrDamaged) || errors.Is(err, ErrFormat):
			bad = errors.Join(bad, err)
		default:
			return nil, nil, err
		}
	}
	return list, bad, nil
}

const sessionDir = "sessions/"

// sessions returns those that did not publish anything.
func (r *Repository) sessions(ctx context.Context) (list []uint64, err error) {
	err = r.List(ctx, sessionDir, func(o Object) error {
		if n, err := strconv.ParseUint(path.Base(o.Name), 16, 64); err == nil {
			list = append(list, n)
		}
		return nil
	})
	return list, err
}

// packsOf lists the packs of a session.
func (r *Repository) packsOf(ctx context.Context, session uint64) (list []uint32, bytes int64, err error) {
	err = r.List(ctx, path.Dir(packName(session, 0))+"/", func(o Object) error {
		if n, err := strconv.ParseUint(path.Base(o.Name), 10, 32); err == nil {
			list = append(list, uint32(n))
			bytes += o.Size
		}
		return nil
	})
	slices.Sort(list)
	return list, bytes, err
}

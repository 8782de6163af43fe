package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/httpapi/admin"
	"ogw/vfs"
)

// store is a namespace in memory with its admin API.
type store struct {
	t   *testing.T
	c   *cluster.Cluster
	fs  *vfs.FS
	api *admin.Client
	// files are what is in it.
	files map[string][]byte
	rng   *rand.Rand
}

func openStore(t *testing.T, c *cluster.Cluster) *store { return openStoreWith(t, c, 1<<10) }

func openStoreWith(t *testing.T, c *cluster.Cluster, inlineBytes int) *store {
	t.Helper()
	fs, err := vfs.Open(t.Context(), c, vfs.Config{NoBackground: true, InlineBytes: inlineBytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close(context.Background()) })
	s := &store{t: t, c: c, fs: fs, files: map[string][]byte{}, rng: rand.New(rand.NewPCG(1, 2))}
	s.api = admin.Local(admin.New(admin.Config{FS: fs, Logger: slog.New(slog.DiscardHandler), Version: "test"}))
	return s
}

func newStore(t *testing.T) *store { return newStoreWith(t, 1<<10) }

func newStoreWith(t *testing.T, inlineBytes int) *store {
	t.Helper()
	c := mem.New(mem.Options{})
	c.Exclusive = true
	s := openStoreWith(t, c, inlineBytes)
	if _, err := s.fs.CreateBucket(t.Context(), "bucket", nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// put writes a file of one of the kinds that are stored in different ways.
func (s *store) put(key string) {
	s.t.Helper()
	size := []int{0, 10, 200, 900, 5000, 100_000}[s.rng.IntN(6)]
	if s.rng.IntN(40) == 0 {
		size = 3 << 20
	}
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(s.rng.Uint32())
	}
	if _, err := s.fs.PutObject(s.t.Context(), vfs.ObjectName{Bucket: "bucket", Key: key}, bytes.NewReader(body), vfs.PutOptions{Size: int64(len(body))}); err != nil {
		s.t.Fatal(err)
	}
	s.files[key] = body
}

func (s *store) remove(key string) {
	s.t.Helper()
	if _, err := s.fs.DeleteObject(s.t.Context(), vfs.ObjectName{Bucket: "bucket", Key: key}, vfs.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
	delete(s.files, key)
	if _, err := s.fs.Collect(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) backup(storage Storage) (*Snapshot, error) {
	repo, err := OpenOrMake(s.t.Context(), storage)
	if err != nil {
		return nil, err
	}
	return Run(s.t.Context(), repo, s.api, Options{Secrets: admin.AddBackup{DropSecrets: true}})
}

func (s *store) mustBackup(storage Storage) *Snapshot {
	s.t.Helper()
	snap, err := s.backup(storage)
	if err != nil {
		s.t.Fatal(err)
	}
	return snap
}

// wantRestored restores a snapshot, checks it, and compares it with files.
func wantRestored(t *testing.T, storage Storage, id string, files map[string][]byte) {
	t.Helper()
	repo, err := Open(t.Context(), storage)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := repo.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	c := mem.New(mem.Options{})
	if _, err := Restore(t.Context(), repo, snap, c, RestoreConfig{}); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, c, files)
}

func wantFiles(t *testing.T, c *cluster.Cluster, files map[string][]byte) {
	t.Helper()
	s := openStore(t, c)
	rep, err := s.fs.Check(t.Context(), vfs.CheckOptions{Data: true})
	if err != nil || len(rep.Problems) > 0 {
		t.Errorf("check of the restored store: %v %+v", err, rep.Problems)
	}
	if rep.Files != int64(len(files)) {
		t.Errorf("%d files are restored of %d", rep.Files, len(files))
	}
	for key, body := range files {
		o, err := s.fs.GetObject(t.Context(), vfs.ObjectName{Bucket: "bucket", Key: key}, vfs.GetOptions{})
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		got, err := io.ReadAll(io.NewSectionReader(o, 0, int64(len(body))+1))
		o.Close()
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("%s: %d other bytes, %v", key, len(got), err)
		}
	}
}

func testDir(t *testing.T) *Dir {
	t.Helper()
	d, err := NewDir(filepath.Join(t.TempDir(), "repo"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// failing fails from the nth write on, as if the process were killed.
type failing struct {
	Storage
	mu   sync.Mutex
	left int
}

var errKilled = errors.New("killed")

func (f *failing) write() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left < 0 {
		return errKilled
	}
	return nil
}

func (f *failing) Put(ctx context.Context, name string, data []byte, replace bool) error {
	if err := f.write(); err != nil {
		return err
	}
	return f.Storage.Put(ctx, name, data, replace)
}

func (f *failing) Delete(ctx context.Context, name string) error {
	if err := f.write(); err != nil {
		return err
	}
	return f.Storage.Delete(ctx, name)
}

// Backups follow a store that changes; each is restored as it was, and after a
// change of 1 % less than 5 % is moved.
func TestBackups(t *testing.T) {
	s, d := newStore(t), testDir(t)
	for i := range 400 {
		s.put(fmt.Sprintf("d%d/f%d", i%7, i))
	}
	type state struct {
		id    string
		files map[string][]byte
	}
	var states []state
	changed := int64(0) // bytes
	for round := range 6 {
		snap := s.mustBackup(d)
		states = append(states, state{snap.ID, maps.Clone(s.files)})
		if round > 0 && snap.Moved+snap.ReadBack > changed+snap.Bytes/25 {
			t.Errorf("round %d: moved %d and read back %d of %d bytes, of which %d changed", round, snap.Moved, snap.ReadBack, snap.Bytes, changed)
		}
		keys := slices.Sorted(maps.Keys(s.files))
		changed = 0
		for i := range 4 {
			s.remove(keys[(round*31+i*97)%len(keys)])
			key := fmt.Sprintf("new%d/%d", round, i)
			s.put(key)
			changed += int64(len(s.files[key]))
		}
	}
	for _, x := range states {
		wantRestored(t, d, x.id, x.files)
	}
	repo, err := Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	// Each removal keeps what the others need.
	for i, x := range states[:len(states)-1] {
		if _, err := Remove(t.Context(), repo, []string{x.id}); err != nil {
			t.Fatal(err)
		}
		for _, y := range states[i+1:] {
			snap, err := repo.Load(t.Context(), y.id)
			if err == nil {
				_, err = Verify(t.Context(), repo, snap, nil)
			}
			if err != nil {
				t.Errorf("%s after the removal of %s: %v", y.id, x.id, err)
			}
		}
	}
	last := states[len(states)-1]
	wantRestored(t, d, last.id, last.files)
	if _, err := repo.Load(t.Context(), states[0].id); !errors.Is(err, ErrNotExist) {
		t.Errorf("a removed snapshot: %v", err)
	}
}

// A backup that is killed at any write leaves what the next one goes on with, and
// earlier snapshots as they were.
func TestKilled(t *testing.T) {
	s, d := newStore(t), testDir(t)
	for i := range 40 {
		s.put(fmt.Sprintf("f%d", i))
	}
	first := s.mustBackup(d)
	was := maps.Clone(s.files)
	for i := range 40 {
		s.put(fmt.Sprintf("g%d", i))
	}
	var moved int64
	kills := 0
	for n := 0; ; n++ {
		f := &failing{Storage: d, left: n}
		snap, err := s.backup(f)
		if err == nil {
			wantRestored(t, d, snap.ID, s.files)
			moved = snap.Moved
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatalf("killed at write %d: %v", n, err)
		}
		kills++
		wantRestored(t, d, first.ID, was)
		s.put(fmt.Sprintf("h%d", n)) // the store goes on
	}
	if kills < 4 {
		t.Errorf("only %d writes to be killed at", kills)
	}
	t.Logf("%d kills, %d bytes moved by the last", kills, moved)
}

// What a killed backup moved is not moved again.
func TestResume(t *testing.T) {
	s, d := newStore(t), testDir(t)
	for i := range 12 {
		body := make([]byte, 7<<20)
		for j := range body {
			body[j] = byte(s.rng.Uint32())
		}
		key := fmt.Sprintf("f%d", i)
		if _, err := s.fs.PutObject(t.Context(), vfs.ObjectName{Bucket: "bucket", Key: key}, bytes.NewReader(body), vfs.PutOptions{Size: int64(len(body))}); err != nil {
			t.Fatal(err)
		}
		s.files[key] = body
	}
	if _, err := s.backup(&failing{Storage: d, left: 6}); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	var packs int64
	if err := d.List(t.Context(), "packs/", func(o Object) error { packs += o.Size; return nil }); err != nil || packs < 20<<20 {
		t.Fatalf("%d bytes of packs, %v", packs, err)
	}
	snap := s.mustBackup(d)
	if snap.Resumed != packs || snap.Moved > snap.Bytes-packs+1<<20 {
		t.Errorf("resumed %d and moved %d of %d, and %d were there", snap.Resumed, snap.Moved, snap.Bytes, packs)
	}
	wantRestored(t, d, snap.ID, s.files)
	if list, err := (&Repository{Storage: d}).sessions(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("sessions %v, %v", list, err)
	}
}

// Damage of any object is found, and nothing wrong is restored.
func TestDamage(t *testing.T) {
	s, d := newStore(t), testDir(t)
	for i := range 30 {
		s.put(fmt.Sprintf("f%d", i))
	}
	snap := s.mustBackup(d)
	repo, err := Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := d.List(t.Context(), "", func(o Object) error { names = append(names, o.Name); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name == lockName || name == configName {
			continue
		}
		path := d.file(name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			what string
			bad  []byte
		}{
			{"a bit", flipped(good, len(good)/2)}, {"the first bit", flipped(good, 0)}, {"the last bit", flipped(good, len(good)-1)},
			{"cut", good[:len(good)*2/3]}, {"empty", nil},
		} {
			if err := os.WriteFile(path, x.bad, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := repo.Load(t.Context(), snap.ID)
			if err == nil {
				_, err = Verify(t.Context(), repo, got, nil)
			}
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %s: %v", name, x.what, err)
			}
			if got == nil {
				continue
			}
			c := mem.New(mem.Options{})
			if _, err := Restore(t.Context(), repo, got, c, RestoreConfig{}); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %s: restore: %v", name, x.what, err)
			}
			if _, err := vfs.Open(t.Context(), c, vfs.Config{NoBackground: true}); err == nil || !strings.Contains(err.Error(), "not finished") {
				t.Errorf("%s: %s: the store opens: %v", name, x.what, err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if got, err := repo.Load(t.Context(), snap.ID); err == nil {
			if _, err = Verify(t.Context(), repo, got, nil); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s is gone: %v", name, err)
			}
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wantRestored(t, d, snap.ID, s.files)
}

// A blob of a removed file that a broken pass of the collector deleted is no
// damage of the store.
func TestHalfCollected(t *testing.T) {
	s := newStore(t)
	for _, key := range []string{"kept", "gone"} {
		body := bytes.Repeat([]byte(key), 100_000)
		if _, err := s.fs.PutObject(t.Context(), vfs.ObjectName{Bucket: "bucket", Key: key}, bytes.NewReader(body), vfs.PutOptions{Size: int64(len(body))}); err != nil {
			t.Fatal(err)
		}
		s.files[key] = body
	}
	var gone []cluster.BlobID
	err := s.c.Blobs.List(t.Context(), cluster.BlobID{}, func(b cluster.BlobInfo) error {
		gone = []cluster.BlobID{b.ID} // the last one
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.fs.DeleteObject(t.Context(), vfs.ObjectName{Bucket: "bucket", Key: "gone"}, vfs.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	delete(s.files, "gone")
	if err := s.c.Blobs.Delete(t.Context(), gone...); err != nil {
		t.Fatal(err)
	}
	storage := testDir(t)
	snap := s.mustBackup(storage)
	if snap.DamagedBlobs != 0 || snap.Blobs != 1 {
		t.Errorf("%d of %d blobs are damaged", snap.DamagedBlobs, snap.Blobs)
	}
	wantRestored(t, storage, snap.ID, s.files)
}

// TestDamagedParent: a backup behind one with a damaged list moves all again, and is whole;
// the next one is made of its differences.
func TestDamagedParent(t *testing.T) {
	s, d := newStore(t), testDir(t)
	for i := range 30 {
		s.put(fmt.Sprintf("f%d", i))
	}
	for _, missing := range []bool{false, true} {
		s.put(fmt.Sprint("first", missing))
		first := s.mustBackup(d)
		layer := first.Layers[len(first.Layers)-1]
		part := partName(layer.Session, len(layer.Parts)-1)
		good, err := os.ReadFile(d.file(part))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d.file(part), flipped(good, len(good)/2), 0o600); err != nil {
			t.Fatal(err)
		}
		if missing {
			if err := os.Remove(d.file(part)); err != nil {
				t.Fatal(err)
			}
		}
		s.put(fmt.Sprint("second", missing))
		second := s.mustBackup(d)
		if len(second.Layers) != 1 || !strings.Contains(second.Alone, part) {
			t.Errorf("%d layers, alone: %q", len(second.Layers), second.Alone)
		}
		wantRestored(t, d, second.ID, s.files)
		s.remove(fmt.Sprint("second", missing))
		third := s.mustBackup(d)
		if third.Alone != "" || third.Moved > third.Bytes/10 {
			t.Errorf("moved %d of %d bytes, alone: %q", third.Moved, third.Bytes, third.Alone)
		}
		wantRestored(t, d, third.ID, s.files)
		repo, err := Open(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := repo.sessions(t.Context()); err != nil || len(list) > 0 {
			t.Errorf("sessions %v, %v", list, err)
		}
		var damaged []string // by the layers that they share
		all, bad, err := repo.Snapshots(t.Context())
		if err != nil || bad != nil {
			t.Fatal(err, bad)
		}
		for _, x := range all {
			if _, err := Verify(t.Context(), repo, x, nil); err != nil {
				damaged = append(damaged, x.ID)
			}
		}
		if !slices.Equal(damaged, []string{first.ID}) {
			t.Errorf("damaged: %v, not %s", damaged, first.ID)
		}
		if _, err := Remove(t.Context(), repo, damaged); err != nil {
			t.Error(err)
		}
		wantRestored(t, d, third.ID, s.files)
	}
}

// TestRestoreSkipsDamage: what is damaged in one pack costs the files that use it, if that
// is asked for, and nothing else.
func TestRestoreSkipsDamage(t *testing.T) {
	s, d := newStore(t), testDir(t)
	for i := range 12 {
		body := make([]byte, 5<<20)
		for j := range body {
			body[j] = byte(s.rng.Uint32())
		}
		s.putText(fmt.Sprintf("f%d", i), string(body))
	}
	snap := s.mustBackup(d)
	repo, err := Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	var packs []string
	if err := d.List(t.Context(), "packs/", func(o Object) error { packs = append(packs, o.Name); return nil }); err != nil || len(packs) < 3 {
		t.Fatal(packs, err)
	}
	pack := packs[len(packs)-1]
	good, err := os.ReadFile(d.file(pack))
	if err != nil {
		t.Fatal(err)
	}
	index, err := parseIndex(good)
	if err != nil {
		t.Fatal(err)
	}
	for what, x := range map[string]struct {
		bad  []byte
		lost int64
	}{
		"a piece": {flipped(good, len(good)-1), 1},
		"all":     {flipped(good, 0), int64(len(index.pieces))},
	} {
		if err := os.WriteFile(d.file(pack), x.bad, 0o600); err != nil {
			t.Fatal(err)
		}
		c := mem.New(mem.Options{})
		if _, err := Restore(t.Context(), repo, snap, c, RestoreConfig{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s, not skipped: %v", what, err)
		}
		done, err := Restore(t.Context(), repo, snap, c, RestoreConfig{SkipDamaged: true}) // goes on
		if err != nil || done.LostBlobs != x.lost || int64(len(done.Lost)) != x.lost || done.Blobs != snap.Blobs-x.lost {
			t.Errorf("%s: %+v, %v", what, done, err)
		}
		rep, err := openStore(t, c).fs.Check(t.Context(), vfs.CheckOptions{})
		if err != nil || int64(len(rep.Problems)) != x.lost {
			t.Errorf("%s: %v %+v", what, err, rep.Problems)
		}
		for _, p := range rep.Problems {
			if p.Kind != "missing-blob" || !strings.Contains(p.Detail, "bucket/f") || !slices.ContainsFunc(done.Lost, func(id string) bool { return strings.Contains(p.Detail, id) }) {
				t.Errorf("%s: %+v, lost %v", what, p, done.Lost)
			}
		}
	}
}

func flipped(b []byte, at int) []byte {
	out := bytes.Clone(b)
	out[at] ^= 4
	return out
}

// A restore goes on after an interruption at any write of a blob.
func TestRestoreResumes(t *testing.T) {
	s, d := newStore(t), testDir(t)
	for i := range 40 {
		s.put(fmt.Sprintf("f%d", i))
	}
	snap := s.mustBackup(d)
	repo, err := Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	c := mem.New(mem.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	n := int64(0)
	_, err = Restore(ctx, repo, snap, c, RestoreConfig{Progress: func(p Progress) {
		if n = p.Blobs; n > snap.Blobs/2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	done, err := Restore(t.Context(), repo, snap, c, RestoreConfig{})
	if err != nil || done.Skipped < snap.Blobs/2 {
		t.Errorf("skipped %d of %d blobs, %v", done.Skipped, snap.Blobs, err)
	}
	wantFiles(t, c, s.files)
	if _, err := Restore(t.Context(), repo, snap, c, RestoreConfig{}); !errors.Is(err, vfs.ErrExist) {
		t.Errorf("over a store: %v", err)
	}
}

// rotten is an engine that writes another byte into the first blob.
type rotten struct {
	cluster.Blobs
	once sync.Once
}

type rottenWriter struct {
	cluster.BlobWriter
	r *rotten
}

func (r *rotten) Create(ctx context.Context, id cluster.BlobID, size int64) (cluster.BlobWriter, error) {
	w, err := r.Blobs.Create(ctx, id, size)
	return rottenWriter{w, r}, err
}

func (w rottenWriter) Write(p []byte) (int, error) {
	w.r.once.Do(func() { p = flipped(p, 0) })
	return w.BlobWriter.Write(p)
}

// TestRestoreRottenWrite: a blob that the new store wrote wrong is not there for the run
// that goes on.
func TestRestoreRottenWrite(t *testing.T) {
	s, d := newStore(t), testDir(t)
	for i := range 5 {
		s.putText(fmt.Sprint(i), strings.Repeat(fmt.Sprint("text ", i), 5000))
	}
	snap := s.mustBackup(d)
	repo, err := Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	c := mem.New(mem.Options{})
	c.Blobs = &rotten{Blobs: c.Blobs}
	if _, err := Restore(t.Context(), repo, snap, c, RestoreConfig{}); err == nil || !strings.Contains(err.Error(), "other bytes") {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), repo, snap, c, RestoreConfig{}); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, c, s.files)
}

// newStoreOfRecords has more records than etcd takes at once, and larger ones.
func newStoreOfRecords(t *testing.T) *store {
	s := newStoreWith(t, 600<<10)
	for i := range 300 {
		s.putText(fmt.Sprintf("f%d", i), fmt.Sprint("text ", i))
	}
	for i := range 6 {
		s.putText(fmt.Sprintf("large%d", i), strings.Repeat("x", 550<<10))
	}
	return s
}

// An engine that takes little in one transaction gets more of them.
func TestRestoreLimits(t *testing.T) {
	s, d := newStoreOfRecords(t), testDir(t)
	snap := s.mustBackup(d)
	repo, err := Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	c := mem.New(mem.Distributed(1))
	if _, err := Restore(t.Context(), repo, snap, c, RestoreConfig{}); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, c, s.files)
}

// TestLatest: the newest snapshot is meant only where all are of one store.
func TestLatest(t *testing.T) {
	dir := testDir(t)
	a, b := newStore(t), newStore(t)
	a.put("a")
	a.mustBackup(dir)
	a.put("b")
	second := a.mustBackup(dir)
	repo, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := repo.Load(t.Context(), "latest"); err != nil || s.ID != second.ID {
		t.Fatalf("%+v, %v", s, err)
	}
	other := b.mustBackup(dir)
	_, err = repo.Load(t.Context(), "latest")
	if !errors.Is(err, ErrAmbiguous) {
		t.Fatalf("of two stores: %v", err)
	}
	for _, s := range []*Snapshot{second, other} {
		if !strings.Contains(err.Error(), s.ID+" of store "+s.FSID) {
			t.Errorf("%v does not name %s of store %s", err, s.ID, s.FSID)
		}
		if got, err := repo.Load(t.Context(), s.ID); err != nil || got.FSID != s.FSID {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// clockOff is a store whose clock is wrong.
type clockOff struct {
	Source
	by time.Duration
}

func (c clockOff) AddBackup(ctx context.Context, q admin.AddBackup) (admin.Backup, error) {
	b, err := c.Source.AddBackup(ctx, q)
	b.Time = b.Time.Add(c.by)
	return b, err
}

// TestClock: the last backup that was made is the newest, whatever the clock said.
func TestClock(t *testing.T) {
	s, d := newStore(t), testDir(t)
	var repo *Repository
	var all []string
	for i, by := range []time.Duration{0, 24 * 365 * time.Hour, 0, -time.Hour, 24 * 366 * time.Hour, 0} {
		s.put(fmt.Sprint(i))
		var err error
		if repo, err = OpenOrMake(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		snap, err := Run(t.Context(), repo, clockOff{s.api, by}, Options{Secrets: admin.AddBackup{DropSecrets: true}})
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Until(snap.Time) - by; off.Abs() > time.Minute {
			t.Errorf("the clock was %v off, and the time is another %v", by, off)
		}
		all = append(all, snap.ID)
		if got, err := repo.Load(t.Context(), "latest"); err != nil || got.ID != snap.ID {
			t.Errorf("backup %d, the clock %v off: the newest is %s, not %s (%v)", i, by, got.ID, snap.ID, err)
		}
	}
	list, bad, err := repo.Snapshots(t.Context())
	if err != nil || bad != nil {
		t.Fatal(err, bad)
	}
	remove := Keep(list, 1) // the newest first
	slices.Reverse(remove)
	if !slices.Equal(remove, all[:len(all)-1]) {
		t.Errorf("to keep the last of %v, these go: %v", all, remove)
	}
}

// One process writes at a time; who was killed is in nobody's way.
func TestLock(t *testing.T) {
	d := testDir(t)
	_, lock, err := d.Lock(t.Context(), NewHolder("backup"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = d.Lock(t.Context(), NewHolder("prune"))
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("backup by process %d", os.Getpid())) {
		t.Errorf("%v", err)
	}
	lock.Release()
	_, lock, err = d.Lock(t.Context(), NewHolder("prune"))
	if err != nil {
		t.Fatal(err)
	}
	lock.Release()
	me := NewHolder("backup")
	if me.ended() {
		t.Error("this process has ended")
	}
	me.Start = "1"
	if !me.ended() {
		t.Error("another process with this PID has not ended")
	}
}

// Only an empty place, or a repository that this program knows, is taken.
func TestOpen(t *testing.T) {
	d := testDir(t)
	if _, err := Open(t.Context(), d); !errors.Is(err, ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.WriteFile(d.file("holiday.jpg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOrMake(t.Context(), d); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "holiday.jpg") {
		t.Errorf("a folder of pictures: %v", err)
	}
	d = testDir(t)
	if err := os.WriteFile(d.file(configName), []byte(`{"format":2,"id":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOrMake(t.Context(), d); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "newer ogw") {
		t.Errorf("a newer one: %v", err)
	}
}

// Names come out sorted, each once, however many fit into memory.
func TestNames(t *testing.T) {
	for _, limit := range []int{1, 7, 1000} {
		rng := rand.New(rand.NewPCG(3, uint64(limit)))
		s := nameSorter{limit: limit}
		want := map[cluster.BlobID]bool{}
		for range 200 {
			b := vfs.BackupBlob{ID: cluster.BlobID{Content: rng.Uint64N(20), Seq: rng.Uint64N(9)}}
			b.Size, b.CRC = int64(b.ID.Content), b.ID.Seq
			want[b.ID] = true
			if err := s.add(b); err != nil {
				t.Fatal(err)
			}
		}
		var got []vfs.BackupBlob
		if err := s.each(func(b vfs.BackupBlob) error { got = append(got, b); return nil }); err != nil {
			t.Fatal(err)
		}
		s.close()
		sorted := slices.IsSortedFunc(got, func(a, b vfs.BackupBlob) int {
			return cmp.Or(cmp.Compare(a.ID.Content, b.ID.Content), cmp.Compare(a.ID.Seq, b.ID.Seq))
		})
		if len(got) != len(want) || !sorted || got[3].Size != int64(got[3].ID.Content) || got[3].CRC != got[3].ID.Seq {
			t.Errorf("limit %d: %d of %d names, sorted %v", limit, len(got), len(want), sorted)
		}
	}
}

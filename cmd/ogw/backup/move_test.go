package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
	"ogw/vfs/seal"
)

// alone is the answer of a source that nobody else uses.
func alone() error { return nil }

func (s *store) move(target *cluster.Cluster, last func() error) (Moved, error) {
	return Move(s.t.Context(), s.api, target, MoveOptions{Last: last})
}

func (s *store) mustMove(target *cluster.Cluster, last func() error) Moved {
	s.t.Helper()
	done, err := s.move(target, last)
	if err != nil {
		s.t.Fatal(err)
	}
	return done
}

func (s *store) putText(key, text string) {
	s.t.Helper()
	name := vfs.ObjectName{Bucket: "bucket", Key: key}
	if _, err := s.fs.PutObject(s.t.Context(), name, strings.NewReader(text), vfs.PutOptions{Size: int64(len(text))}); err != nil {
		s.t.Fatal(err)
	}
	s.files[key] = []byte(text)
}

// wantUnfinished tries to open what is not a store yet.
func wantUnfinished(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	if _, err := vfs.Open(t.Context(), c, vfs.Config{NoBackground: true}); err == nil || !strings.Contains(err.Error(), "ogw migrate") {
		t.Fatalf("a store that is not here yet opens: %v", err)
	}
}

// Passes follow a store that changes, and move only what changed; the last one makes
// the target the store.
func TestMove(t *testing.T) {
	s := newStore(t)
	for i := range 400 {
		s.put(fmt.Sprintf("d%d/f%d", i%7, i))
	}
	target := mem.New(mem.Options{})
	first := s.mustMove(target, nil)
	if first.MovedBlobs != first.Blobs || first.Blobs < 100 || first.Finished {
		t.Errorf("the first pass: %+v", first)
	}
	for round := range 4 {
		wantUnfinished(t, target)
		keys := slices.Sorted(maps.Keys(s.files))
		for i := range 5 {
			s.remove(keys[(round*31+i*97)%len(keys)])
			s.put(fmt.Sprintf("new%d/%d", round, i))
		}
		done := s.mustMove(target, nil)
		if done.MovedBlobs > 5 || done.Changed > 100 || done.RemovedBlobs > 5 {
			t.Errorf("round %d: %+v", round, done)
		}
	}
	s.putText("newest", strings.Repeat("x", 100_000))
	s.mustMove(target, nil)
	s.remove("newest") // no blob of the last pass is behind its own
	s.remove(slices.Sorted(maps.Keys(s.files))[3])
	s.put("d0/f0")
	if done := s.mustMove(target, alone); !done.Finished || done.MovedBlobs > 1 {
		t.Errorf("the last pass: %+v", done)
	}
	wantFiles(t, target, s.files)
	wantBlobsOnly(t, target, s.c)
	if _, err := s.move(target, alone); !errors.Is(err, vfs.ErrExist) || !strings.Contains(err.Error(), "is here already") {
		t.Errorf("over a store: %v", err)
	}
}

// wantBlobsOnly compares the names of the blobs of two stores.
func wantBlobsOnly(t *testing.T, got, want *cluster.Cluster) {
	t.Helper()
	var lists [2][]cluster.BlobInfo
	for i, c := range []*cluster.Cluster{got, want} {
		err := c.Blobs.List(t.Context(), cluster.BlobID{}, func(b cluster.BlobInfo) error {
			lists[i] = append(lists[i], cluster.BlobInfo{ID: b.ID, Size: b.Size})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(lists[0], lists[1]) {
		t.Errorf("%d blobs are there, and not the %d of the source", len(lists[0]), len(lists[1]))
	}
}

// failingKV and failingBlobs fail from the nth write of both on, as if the process were
// killed, or the servers away.
type failingKV struct {
	cluster.KV
	left *atomic.Int64
}

func (f *failingKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if f.left.Add(-1) < 0 {
		return errKilled
	}
	return f.KV.Update(ctx, fn)
}

type failingBlobs struct {
	cluster.Blobs
	left *atomic.Int64
}

func (f *failingBlobs) Create(ctx context.Context, id cluster.BlobID, hint int64) (cluster.BlobWriter, error) {
	if f.left.Add(-1) < 0 {
		return nil, errKilled
	}
	return f.Blobs.Create(ctx, id, hint)
}

func (f *failingBlobs) Delete(ctx context.Context, ids ...cluster.BlobID) error {
	if f.left.Add(-1) < 0 {
		return errKilled
	}
	return f.Blobs.Delete(ctx, ids...)
}

// A move that is killed at any write goes on with the next, whatever changed meanwhile.
func TestMoveKilled(t *testing.T) {
	s := newStore(t)
	for i := range 30 {
		s.put(fmt.Sprintf("f%d", i))
	}
	target := mem.New(mem.Options{})
	kills := 0
	for n := int64(0); ; n++ {
		var left atomic.Int64
		left.Store(n / 2) // each twice: what the first moved, the second need not
		done, err := s.move(&cluster.Cluster{KV: &failingKV{target.KV, &left}, Blobs: &failingBlobs{target.Blobs, &left}}, alone)
		if err == nil {
			if !done.Finished {
				t.Errorf("%+v", done)
			}
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatalf("killed at write %d: %v", n, err)
		}
		if kills++; n > 1 {
			wantUnfinished(t, target)
		}
		if n < 20 {
			s.put(fmt.Sprintf("g%d", n))
			s.remove(fmt.Sprintf("f%d", n))
		}
	}
	if kills < 10 {
		t.Errorf("only %d writes to be killed at", kills)
	}
	wantFiles(t, target, s.files)
	wantBlobsOnly(t, target, s.c)
}

// An engine that takes little in one transaction gets more of them.
func TestMoveLimits(t *testing.T) {
	s := newStoreOfRecords(t)
	target := mem.New(mem.Distributed(1))
	s.mustMove(target, nil)
	for i := range 200 {
		s.remove(fmt.Sprintf("f%d", i))
	}
	s.mustMove(target, alone)
	wantFiles(t, target, s.files)
}

// What an interrupted pass moved is not moved again.
func TestMoveResumes(t *testing.T) {
	s := newStore(t)
	for i := range 60 {
		s.put(fmt.Sprintf("f%d", i))
	}
	target := mem.New(mem.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	part, err := Move(ctx, s.api, target, MoveOptions{Last: alone, Progress: func(p Progress) {
		if p.AllBlobs > 0 && p.Blobs > p.AllBlobs/2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || part.Finished {
		t.Fatalf("%+v, %v", part, err)
	}
	wantUnfinished(t, target)
	done := s.mustMove(target, alone)
	if part.MovedBlobs < done.Blobs/2 || part.MovedBlobs+done.MovedBlobs != done.Blobs || done.Changed > 10 {
		t.Errorf("%+v after %+v", done, part)
	}
	wantFiles(t, target, s.files)
}

// A source that others may have used is not finished with.
func TestMoveNotAlone(t *testing.T) {
	s := newStore(t)
	s.put("f")
	target := mem.New(mem.Options{})
	lost := errors.New("lost")
	if _, err := s.move(target, func() error { return lost }); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
	wantUnfinished(t, target)
}

// A blob that cannot be read is named, and the others are moved.
func TestMoveDamaged(t *testing.T) {
	s := newStore(t)
	for _, key := range []string{"good", "bad"} {
		s.putText(key, strings.Repeat(key, 100_000))
	}
	var bad cluster.BlobID
	if err := s.c.Blobs.List(t.Context(), cluster.BlobID{}, func(b cluster.BlobInfo) error { bad = b.ID; return nil }); err != nil { // the last one
		t.Fatal(err)
	}
	if err := s.c.Blobs.Delete(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	target := mem.New(mem.Options{})
	done := s.mustMove(target, alone)
	if !done.Finished || done.DamagedBlobs != 1 || len(done.Damaged) != 1 || done.Damaged[0] != bad.String() || done.MovedBlobs != 1 {
		t.Errorf("%+v", done)
	}
	fs, err := vfs.Open(t.Context(), target, vfs.Config{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := fs.Check(t.Context(), vfs.CheckOptions{Data: true})
	if err != nil || len(rep.Problems) != 1 {
		t.Errorf("%v %+v", err, rep.Problems)
	}
	_ = fs.Close(t.Context())
}

// lying changes a bit on the way, or leaves out the end.
type lying struct {
	Source
	short bool
}

func (l lying) BackupBlobs(ctx context.Context, id string, list []vfs.BackupBlob, data func(int, []byte) error, done func(int, error) error) error {
	return l.Source.BackupBlobs(ctx, id, list, func(i int, p []byte) error {
		if l.short {
			return data(i, p[1:])
		}
		return data(i, flipped(p, len(p)/2))
	}, done)
}

// Nothing but what the metadata say is stored.
func TestMoveOtherBytes(t *testing.T) {
	for _, short := range []bool{false, true} {
		s := newStore(t)
		s.putText("f", strings.Repeat("x", 100_000))
		target := mem.New(mem.Options{})
		done, err := Move(t.Context(), lying{s.api, short}, target, MoveOptions{})
		if err != nil || done.DamagedBlobs != 1 || done.MovedBlobs != 0 {
			t.Errorf("short %v: %+v, %v", short, done, err)
		}
		err = target.Blobs.List(t.Context(), cluster.BlobID{}, func(b cluster.BlobInfo) error { return fmt.Errorf("%v is there", b.ID) })
		if err != nil {
			t.Error(err)
		}
		s.mustMove(target, alone)
		wantFiles(t, target, s.files)
	}
}

// Only an empty store is moved to, or one to which this one is being moved, with the same keys.
func TestMoveRefuses(t *testing.T) {
	s, other := newStore(t), newStore(t)
	s.put("f")
	other.put("f")
	if _, err := s.move(other.c, nil); !errors.Is(err, vfs.ErrExist) || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("over another store: %v", err)
	}
	target := mem.New(mem.Options{})
	s.mustMove(target, nil)
	if _, err := other.move(target, nil); !errors.Is(err, vfs.ErrExist) || !strings.Contains(err.Error(), fmt.Sprintf("store %016x is being moved", s.fs.FSID())) {
		t.Errorf("over the move of another store: %v", err)
	}
	keys, err := seal.Throwaway()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Move(t.Context(), s.api, target, MoveOptions{Keys: keys}); !errors.Is(err, vfs.ErrExist) || !strings.Contains(err.Error(), "in clear") {
		t.Errorf("with another key: %v", err)
	}
	storage := testDir(t)
	snap := s.mustBackup(storage)
	repo, err := Open(t.Context(), storage)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), repo, snap, target, RestoreConfig{}); !errors.Is(err, vfs.ErrExist) || !strings.Contains(err.Error(), "is being moved") {
		t.Errorf("a restore over a move: %v", err)
	}
	lonely := mem.New(mem.Options{})
	b, err := lonely.Blobs.Create(t.Context(), cluster.BlobID{Content: 7, Seq: 1}, 1)
	if err == nil {
		_, _ = b.Write([]byte("x"))
		_, _, err = b.Commit(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.move(lonely, nil); !errors.Is(err, vfs.ErrExist) {
		t.Errorf("over blobs without metadata: %v", err)
	}
}

// A source that was set back to an earlier time between two passes uses names of blobs
// again, which are other ones.
func TestMoveSetBack(t *testing.T) {
	base, storage := newStore(t), testDir(t)
	base.put("f")
	snap := base.mustBackup(storage)
	repo, err := Open(t.Context(), storage)
	if err != nil {
		t.Fatal(err)
	}
	target := mem.New(mem.Options{})
	var last *store
	for _, text := range []string{"one", "two"} {
		c := mem.New(mem.Options{})
		c.Exclusive = true
		if _, err := Restore(t.Context(), repo, snap, c, RestoreConfig{}); err != nil {
			t.Fatal(err)
		}
		last = openStore(t, c)
		last.files = maps.Clone(base.files)
		for i := range 20 {
			last.putText(fmt.Sprintf("f%d", i), strings.Repeat(text, 10_000))
		}
		if text == "one" {
			last.mustMove(target, nil)
		}
	}
	if done := last.mustMove(target, alone); done.MovedBlobs != 20 {
		t.Errorf("%+v", done)
	}
	wantFiles(t, target, last.files)
}

// history is what a store went through since a backup.
type history func(s *store, text string) (complete func(*vfs.FS) error)

// afterwards returns a store that went on from a backup.
func afterwards(t *testing.T, base *store, storage Storage, snap *Snapshot) *store {
	t.Helper()
	c := mem.New(mem.Options{})
	c.Exclusive = true
	if _, err := Restore(t.Context(), &Repository{Storage: storage}, snap, c, RestoreConfig{}); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, c)
	s.files = maps.Clone(base.files)
	return s
}

// plain puts a file.
func plain(s *store, text string) (complete func(*vfs.FS) error) {
	s.putText("plain", text)
	return nil
}

// parts begins an upload of three parts.
func parts(s *store, text string) (complete func(*vfs.FS) error) {
	s.t.Helper()
	name := vfs.ObjectName{Bucket: "bucket", Key: "uploaded"}
	up, err := s.fs.CreateUpload(s.t.Context(), name, vfs.PutOptions{}, "", false)
	if err != nil {
		s.t.Fatal(err)
	}
	upload := vfs.UploadName{ObjectName: name, ID: up.ID}
	var o vfs.CompleteOptions
	for i := range 3 {
		p, err := s.fs.PutPart(s.t.Context(), upload, i+1, strings.NewReader(text), vfs.PutOptions{Size: int64(len(text))})
		if err != nil {
			s.t.Fatal(err)
		}
		o.Parts = append(o.Parts, vfs.CompletePart{Number: p.Number, ETag: p.ETag})
	}
	s.files["uploaded"] = []byte(strings.Repeat(text, 3))
	return func(fs *vfs.FS) error {
		_, err := fs.CompleteUpload(s.t.Context(), upload, o)
		return err
	}
}

// smallKV takes two changes in a transaction.
type smallKV struct{ cluster.KV }

func (smallKV) Limits() cluster.Limits { return cluster.Limits{Ops: 3} }

// A blob of a part and one of a file have the same name and length where a source was set
// back, and are other ones; whenever the pass between was killed.
func TestMoveSetBackBetweenPartsAndFiles(t *testing.T) {
	base, storage := newStore(t), testDir(t)
	base.put("f")
	snap := base.mustBackup(storage)
	for name, h := range map[string][2]history{"parts, then a file": {parts, plain}, "a file, then parts": {plain, parts}} {
		t.Run(name, func(t *testing.T) {
			before, after := afterwards(t, base, storage, snap), afterwards(t, base, storage, snap)
			h[0](before, strings.Repeat("one", 10_000))
			complete := h[1](after, strings.Repeat("two", 10_000))
			for n := int64(0); ; n++ {
				target := mem.New(mem.Options{})
				before.mustMove(target, nil)
				var left atomic.Int64
				left.Store(n)
				_, err := after.move(&cluster.Cluster{KV: smallKV{&failingKV{target.KV, &left}}, Blobs: &failingBlobs{target.Blobs, &left}}, nil)
				if err != nil && !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				after.mustMove(target, alone)
				if complete != nil {
					fs, e := vfs.Open(t.Context(), target, vfs.Config{NoBackground: true})
					if e = errors.Join(e, complete(fs), fs.Close(t.Context())); e != nil {
						t.Fatal(e)
					}
				}
				wantFiles(t, target, after.files)
				if err == nil {
					break
				}
			}
		})
	}
}

// An upload that was completed has the blobs of its parts, which are not moved again.
func TestMoveCompletedUpload(t *testing.T) {
	s := newStore(t)
	complete := parts(s, strings.Repeat("x", 100_000))
	target := mem.New(mem.Options{})
	if done := s.mustMove(target, nil); done.MovedBlobs != 3 {
		t.Errorf("the first pass: %+v", done)
	}
	if err := complete(s.fs); err != nil {
		t.Fatal(err)
	}
	if done := s.mustMove(target, alone); done.MovedBlobs != 0 || done.RemovedBlobs != 0 || done.Blobs != 3 {
		t.Errorf("the pass after its end: %+v", done)
	}
	wantFiles(t, target, s.files)
}

// full has room for nothing.
type full struct{ cluster.Blobs }

func (full) Usage(context.Context) (cluster.Usage, error) {
	return cluster.Usage{Total: 1 << 20, Free: 10}, nil
}

// Blobs that do not fit are not begun with.
func TestMoveNoRoom(t *testing.T) {
	s := newStore(t)
	for i := range 20 {
		s.put(fmt.Sprintf("f%d", i))
	}
	target := mem.New(mem.Options{})
	done, err := s.move(&cluster.Cluster{KV: target.KV, Blobs: full{target.Blobs}}, alone)
	if !errors.Is(err, ErrNoRoom) || done.MovedBlobs != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

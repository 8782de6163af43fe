package vfs

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/backup"
	"ogw/vfs/internal/content"
	"ogw/vfs/seal"
	"ogw/vfs/users"
)

// onBackups runs a test over the engines.
func onBackups(t *testing.T, cfg Config, test func(t *testing.T, fs *FS)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, openTestWith(t, e.open(t), cfg))
		})
	}
}

// saved is what a Backup returned.
type saved struct {
	keys, values [][]byte
	blobs        map[cluster.BlobID][]byte
	named        []BackupBlob
	locked       RestoreLocked // of the last restore
}

func savePairs(t testing.TB, b *Backup) *saved {
	t.Helper()
	s := &saved{blobs: map[cluster.BlobID][]byte{}}
	for from := []byte{}; from != nil; {
		var err error
		from, err = b.Pairs(bg, from, func(k, v []byte) error {
			s.keys, s.values = append(s.keys, k), append(s.values, v)
			return nil
		}, func(x BackupBlob) error {
			s.named = append(s.named, x)
			return nil
		})
		want(t, err, nil)
	}
	return s
}

func (s *saved) readBlobs(t testing.TB, b *Backup) {
	t.Helper()
	for _, x := range s.named {
		var out bytes.Buffer
		want(t, b.ReadBlob(bg, x.ID, x.Size, &out, make([]byte, 1<<16)), nil)
		s.blobs[x.ID] = out.Bytes()
	}
}

// restore puts s into a fresh store, and opens it.
func (s *saved) restore(t testing.TB, c *cluster.Cluster, o RestoreConfig, cfg Config) *FS {
	t.Helper()
	r, err := BeginRestore(bg, c, o)
	want(t, err, nil)
	for id, data := range s.blobs {
		w, err := c.Blobs.Create(bg, id, int64(len(data)))
		want(t, err, nil)
		_, err = w.Write(data)
		want(t, err, nil)
		_, _, err = w.Commit(bg)
		want(t, err, nil)
	}
	for i := 0; i < len(s.keys); i += 7 {
		_, err := r.Put(bg, s.keys[i:min(i+7, len(s.keys))], s.values[i:min(i+7, len(s.keys))])
		want(t, err, nil)
	}
	want(t, r.Finish(bg), nil)
	s.locked = r.Locked()
	return openTestWith(t, c, cfg)
}

func checkSaved(t testing.TB, fs *FS) {
	t.Helper()
	rep, err := fs.Check(bg, CheckOptions{Data: true})
	want(t, err, nil)
	if len(rep.Problems) > 0 {
		t.Errorf("check of the restored store: %+v", rep.Problems)
	}
}

// What is deleted and overwritten after the instant can be read until the
// backup lets it go, and is collected then.
func TestBackupHolds(t *testing.T) {
	onBackups(t, Config{InlineBytes: 16}, func(t *testing.T, fs *FS) {
		dir := mustMkdir(t, fs, RootIno, "d")
		texts := map[string]string{}
		for _, name := range []string{"gone", "changed", "kept"} {
			texts[name] = strings.Repeat(name+" ", 50_000)
			writeFile(t, fs, mustFile(t, fs, dir, name), texts[name], 0)
		}
		collect(t, fs)
		before := countBlobs(t, &cluster.Cluster{KV: fs.kv, Blobs: fs.blobs})
		b, err := fs.BeginBackup(bg, BackupConfig{})
		want(t, err, nil)
		if !b.Info().Settled {
			t.Error("an idle store is not settled")
		}
		err = fs.Unlink(bg, Root, dir, "gone")
		want(t, err, nil)
		ino := mustLookup(t, fs, dir, "changed").Ino
		writeFile(t, fs, ino, strings.Repeat("x", len(texts["changed"])), 0)
		collect(t, fs)
		s := savePairs(t, b)
		s.readBlobs(t, b)
		b.Close()
		want(t, b.Touch(), ErrBackupEnded)
		collect(t, fs)
		if n := countBlobs(t, &cluster.Cluster{KV: fs.kv, Blobs: fs.blobs}); n >= before+1 {
			t.Errorf("%d blobs after the backup, %d before", n, before)
		}
		back := s.restore(t, openLocal(t), RestoreConfig{Snapshot: "s"}, Config{})
		for name, text := range texts {
			if got := readAll(t, back, mustLookup(t, back, dir, name).Ino); string(got) != text {
				t.Errorf("%s: %.20q", name, got)
			}
		}
		if back.FSID() != fs.FSID() {
			t.Error("another file system")
		}
		checkSaved(t, back)
	})
}

func writeFile(t testing.TB, fs *FS, ino Ino, text string, off int64) {
	t.Helper()
	f := mustOpen(t, fs, ino, OpenWrite)
	_, err := f.WriteAt(bg, []byte(text), off)
	want(t, err, nil)
	want(t, f.Close(bg), nil)
}

// The instant is one: what a writer put into a buffer before it made another
// change is in every snapshot that has the other one.
func TestBackupInstant(t *testing.T) {
	fs := openTest(t, openLocal(t))
	const writers = 2
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w := range writers {
		dir := mustMkdir(t, fs, RootIno, fmt.Sprint(w))
		ino := mustFile(t, fs, dir, "count")
		f := mustOpen(t, fs, ino, OpenWrite)
		wg.Go(func() {
			defer f.Close(bg)
			for i := 0; !stop.Load(); i++ {
				if _, err := f.WriteAt(bg, fmt.Appendf(nil, "%08d", i), 0); err != nil {
					t.Error(err)
					return
				}
				_, err := fs.Mkdir(cluster.Relaxed(bg), Root, dir, fmt.Sprintf("%08d", i), 0o755)
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	late := watchLateness(t)
	for range 3 {
		b, err := fs.BeginBackup(bg, BackupConfig{})
		want(t, err, nil)
		info := b.Info()
		if !info.Settled || info.Wait > 2*backup.MaxWait+late() {
			t.Errorf("settled %v, writers waited %v; this machine was up to %v late", info.Settled, info.Wait, late())
		}
		s := savePairs(t, b)
		s.readBlobs(t, b)
		b.Close()
		back := s.restore(t, openLocal(t), RestoreConfig{Snapshot: "s"}, Config{})
		for w := range writers {
			dir := mustLookup(t, back, RootIno, fmt.Sprint(w)).Ino
			list := names(t, back, dir)
			made := len(list) - 1
			text := string(readAll(t, back, mustLookup(t, back, dir, "count").Ino))
			var written int
			fmt.Sscanf(text, "%d", &written)
			if made > 0 && (written < made-1 || written > made) {
				t.Errorf("writer %d: %d directories, and %q in the file that was written before each", w, made, text)
			}
		}
	}
	stop.Store(true)
	wg.Wait()
}

// watchLateness measures by how much, at the most, the machine was late to go on
// with what was due: a bound of time holds beside that only.
func watchLateness(t *testing.T) (late func() time.Duration) {
	const pause = time.Millisecond
	var most atomic.Int64
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for before := time.Now(); ; before = time.Now() {
			select {
			case <-done:
				return
			case <-time.After(pause):
				most.Store(max(most.Load(), int64(time.Since(before)-pause)))
			}
		}
	})
	t.Cleanup(func() {
		close(done)
		wg.Wait()
	})
	return func() time.Duration { return time.Duration(most.Load()) }
}

func keyring(t testing.TB, b byte) *seal.Keyring {
	t.Helper()
	k, err := seal.Parse(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, seal.KeyBytes)))
	want(t, err, nil)
	return k
}

// No backup holds a secret in clear; with the key it gives them back.
func TestBackupSecrets(t *testing.T) {
	prepare := func(t *testing.T, cfg Config) (fs *FS, clear []string) {
		fs = openTestWith(t, openLocal(t), cfg)
		clearText := strings.Repeat("alicesecret", 4)
		want(t, fs.Users().Add(bg, users.User{Name: "alice", UID: 1000, Keys: []users.AccessKey{{ID: "OGW0ALICE", Secret: clearText}}}), nil)
		secret, err := fs.StoreSecret(bg, "nfs/handles")
		want(t, err, nil)
		return fs, []string{clearText, string(secret)}
	}
	take := func(t *testing.T, fs *FS, c BackupConfig, clear []string) (*saved, BackupSecrets) {
		b, err := fs.BeginBackup(bg, c)
		want(t, err, nil)
		defer b.Close()
		s := savePairs(t, b)
		for _, v := range slices.Concat(s.keys, s.values) {
			for _, secret := range clear {
				if bytes.Contains(v, []byte(secret)) {
					t.Errorf("a secret is in clear in %q", v)
				}
			}
		}
		return s, b.Secrets()
	}
	usable := func(fs *FS, clear []string) (user, store bool) {
		u, err := fs.Users().ByName(bg, "alice")
		user = err == nil && u.Keys[0].Secret == clear[0]
		secret, err := fs.StoreSecret(bg, "nfs/handles")
		return user, err == nil && string(secret) == clear[1]
	}
	a, b := keyring(t, 1), keyring(t, 2)
	t.Run("refused", func(t *testing.T) {
		fs, _ := prepare(t, Config{})
		_, err := fs.BeginBackup(bg, BackupConfig{})
		want(t, err, ErrInvalid)
	})
	for _, x := range []struct {
		name            string
		store           *seal.Keyring
		backup          BackupConfig
		restore         RestoreConfig
		then            *seal.Keyring
		sealed, lost    int
		usable, isClear bool
	}{
		{name: "sealed store", store: a, then: a, sealed: 2, usable: true},
		{name: "sealed store, key lost", store: a, sealed: 2},
		{name: "clear, key for the backup", backup: BackupConfig{Keys: b}, then: b, sealed: 2, usable: true},
		{name: "clear again", backup: BackupConfig{Keys: b}, restore: RestoreConfig{Opens: b}, sealed: 2, usable: true},
		{name: "other key", store: a, backup: BackupConfig{Keys: b}, restore: RestoreConfig{Opens: b}, then: a, sealed: 2, usable: true},
		{name: "wrong key", store: a, restore: RestoreConfig{Opens: b}, then: b, sealed: 2},
		{name: "wrong key, right store", store: a, restore: RestoreConfig{Opens: b}, then: a, sealed: 2, usable: true},
		{name: "left out", backup: BackupConfig{DropSecrets: true}, lost: 2},
		{name: "left out of a sealed one", store: a, backup: BackupConfig{DropSecrets: true}, then: a, lost: 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			fs, clear := prepare(t, Config{Keys: x.store})
			s, count := take(t, fs, x.backup, clear)
			if count != (BackupSecrets{Sealed: x.sealed, Lost: x.lost}) {
				t.Errorf("%+v", count)
			}
			x.restore.Snapshot, x.restore.Keys = "s", x.then
			back := s.restore(t, openLocal(t), x.restore, Config{Keys: x.then})
			user, store := usable(back, clear)
			if user != x.usable || store != x.usable {
				t.Errorf("user's secret %v, store's %v", user, store)
			}
			if l := s.locked; l.All != 2 || x.usable && l.Secrets+len(l.Keys) != 0 || !x.usable && (l.Secrets != 2 || len(l.Keys) != 1) {
				t.Errorf("%+v", l)
			}
			if _, err := back.Users().ByName(bg, "alice"); err != nil {
				t.Error(err)
			}
			checkSaved(t, back)
		})
	}
	t.Run("copy", func(t *testing.T) {
		fs, clear := prepare(t, Config{Keys: a})
		s, _ := take(t, fs, BackupConfig{}, clear)
		back := s.restore(t, openLocal(t), RestoreConfig{Snapshot: "s", Copy: true}, Config{Keys: a})
		if user, store := usable(back, clear); !user || store || back.FSID() == fs.FSID() {
			t.Errorf("user's secret %v, store's %v, same file system %v", user, store, back.FSID() == fs.FSID())
		}
	})
}

// A store that a restore did not finish is opened by nobody, and goes on with
// the same snapshot only.
func TestRestoreInterrupted(t *testing.T) {
	fs := openTest(t, openLocal(t))
	for i := range 50 {
		mustFile(t, fs, RootIno, fmt.Sprint(i))
	}
	b, err := fs.BeginBackup(bg, BackupConfig{})
	want(t, err, nil)
	s := savePairs(t, b)
	b.Close()
	c := openLocal(t)
	r, err := BeginRestore(bg, c, RestoreConfig{Snapshot: "s"})
	want(t, err, nil)
	half := len(s.keys) / 2
	_, err = r.Put(bg, s.keys[:half], s.values[:half])
	want(t, err, nil)
	if _, err := Open(bg, c, Config{NoBackground: true}); err == nil || !strings.Contains(err.Error(), "run ogw restore again") {
		t.Errorf("opened in the middle: %v", err)
	}
	_, err = BeginRestore(bg, c, RestoreConfig{Snapshot: "other"})
	want(t, err, ErrExist)
	r, err = BeginRestore(bg, c, RestoreConfig{Snapshot: "s"})
	want(t, err, nil)
	n, err := r.Put(bg, s.keys, s.values)
	want(t, err, nil)
	if n > len(s.keys)-half {
		t.Errorf("%d of %d pairs stored again", n, len(s.keys))
	}
	want(t, r.Finish(bg), nil)
	_, err = BeginRestore(bg, c, RestoreConfig{Snapshot: "s"})
	want(t, err, ErrExist)
	checkSaved(t, openTest(t, c))
}

// What was made after the backup is never taken for what is made after the restore, of which
// there may be several. Numbers that are passed over do not count as files.
func TestRestoreNumbers(t *testing.T) {
	const files = 50
	fs := openTest(t, openLocal(t))
	mustFile(t, fs, RootIno, "before")
	b, err := fs.BeginBackup(bg, BackupConfig{})
	want(t, err, nil)
	s := savePairs(t, b)
	b.Close()
	stores := []*FS{fs}
	for range 2 {
		stores = append(stores, s.restore(t, openLocal(t), RestoreConfig{Snapshot: "s"}, Config{}))
	}
	had := map[Ino]int{}
	for i, fs := range stores {
		for n := range files {
			ino := mustFile(t, fs, RootIno, fmt.Sprint(n))
			if x, ok := had[ino]; ok {
				t.Errorf("inode %d of store %d is one of store %d, too", ino, x, i)
			}
			had[ino] = i
		}
		st, err := fs.StatFS(bg)
		want(t, err, nil)
		if st.Files < files || st.Files > 1<<20 {
			t.Errorf("store %d has %d files", i, st.Files)
		}
	}
	for ino, x := range had {
		for i, fs := range stores {
			if _, err := fs.GetAttr(bg, ino); i != x {
				want(t, err, ErrStale)
			}
		}
	}
}

// A restore goes on as it was begun only: half a copy is none, and secrets are
// sealed with one key.
func TestRestoreOtherwise(t *testing.T) {
	a, b := keyring(t, 'a'), keyring(t, 'b')
	ways := []RestoreConfig{{}, {Copy: true}, {Opens: a}, {Opens: a, Keys: a}, {Opens: a, Keys: b}, {Opens: a, Keys: b, Copy: true}}
	for i, begun := range ways {
		c := openLocal(t)
		begun.Snapshot = "s"
		_, err := BeginRestore(bg, c, begun)
		want(t, err, nil)
		for j, now := range ways {
			now.Snapshot = "s"
			_, err := BeginRestore(bg, c, now)
			if i == j {
				want(t, err, nil)
				continue
			}
			want(t, err, ErrExist)
			if err != nil && (!strings.Contains(err.Error(), "snapshot s") || !strings.Contains(err.Error(), "go on with")) {
				t.Errorf("begun %d, now %d: %v", i, j, err)
			}
		}
	}
}

// fullBlobs reports whether the medium has little room.
type fullBlobs struct {
	cluster.Blobs
	free atomic.Int64
}

func (b *fullBlobs) Usage(context.Context) (cluster.Usage, error) {
	return cluster.Usage{Total: 1 << 40, Free: b.free.Load()}, nil
}

// A store that needs the space of what was deleted ends the backup; one with
// room does not.
func TestBackupYieldsSpace(t *testing.T) {
	c := openLocal(t)
	full := &fullBlobs{Blobs: c.Blobs}
	full.free.Store(1 << 39)
	c.Blobs = full
	fs := openTestWith(t, c, Config{InlineBytes: 16})
	writeFile(t, fs, mustFile(t, fs, RootIno, "f"), strings.Repeat("f", 1<<20), 0)
	b, err := fs.BeginBackup(bg, BackupConfig{})
	want(t, err, nil)
	defer b.Close()
	want(t, fs.Unlink(bg, Root, RootIno, "f"), nil)
	collect(t, fs)
	collect(t, fs)
	want(t, b.Touch(), nil)
	if countBlobs(t, c) != 1 {
		t.Fatal("the blob is gone")
	}
	full.free.Store(1 << 20)
	collect(t, fs)
	want(t, b.Touch(), ErrBackupEnded)
	if n := countBlobs(t, c); n != 0 {
		t.Errorf("%d blobs are kept for nobody", n)
	}
	_, err = b.Pairs(bg, nil, func(_, _ []byte) error { return nil }, func(BackupBlob) error { return nil })
	want(t, err, ErrBackupEnded)
}

// There is a bound to backups at a time, what is newer than one is not kept for
// it, and Close of the namespace ends them.
func TestBackupBounds(t *testing.T) {
	fs := openTestWith(t, openLocal(t), Config{InlineBytes: 16})
	var list []*Backup
	for range content.MaxHolds {
		b, err := fs.BeginBackup(bg, BackupConfig{})
		want(t, err, nil)
		list = append(list, b)
	}
	_, err := fs.BeginBackup(bg, BackupConfig{})
	want(t, err, ErrBusy)
	list[0].Close()
	b, err := fs.BeginBackup(bg, BackupConfig{})
	want(t, err, nil)
	writeFile(t, fs, mustFile(t, fs, RootIno, "new"), strings.Repeat("f", 1<<20), 0)
	want(t, fs.Unlink(bg, Root, RootIno, "new"), nil)
	collect(t, fs)
	if n := countBlobs(t, &cluster.Cluster{KV: fs.kv, Blobs: fs.blobs}); n != 0 {
		t.Errorf("%d blobs are kept that are newer than every backup", n)
	}
	want(t, fs.Close(bg), nil)
	want(t, b.Touch(), ErrClosed)
}

// loseAll drops all blobs that b names, and returns how many these are, and how many of them were
// due for deletion at the instant.
func loseAll(t *testing.T, fs *FS, b *Backup) (named, due int) {
	t.Helper()
	for _, x := range savePairs(t, b).named {
		named++
		_, err := fs.quarantine.Drop(bg, x.ID)
		want(t, err, nil)
		err = b.ReadBlob(bg, x.ID, x.Size, &bytes.Buffer{}, make([]byte, 1<<16))
		want(t, err, ErrCorrupt)
		if errors.Is(err, ErrBlobDeleted) {
			due++
		}
	}
	return named, due
}

// A completed upload waits for the collector, and its blobs are an object's.
func TestBackupOfLostPart(t *testing.T) {
	onBackups(t, Config{InlineBytes: 16}, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		up := createUpload(t, fs, "k")
		part := putPart(t, fs, "k", up, 1, randomBytes(1<<20))
		_, err := complete(fs, "k", up, []CompletePart{part})
		want(t, err, nil)
		b, err := fs.BeginBackup(bg, BackupConfig{})
		want(t, err, nil)
		defer b.Close()
		if named, due := loseAll(t, fs, b); named == 0 || due > 0 {
			t.Errorf("%d of %d blobs of an object pass for ones that were being deleted", due, named)
		}
	})
}

// A part that was replaced before a backup is due; the one that replaced it is not.
func TestBackupOfReplacedPart(t *testing.T) {
	onBackups(t, Config{InlineBytes: 16}, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		up := createUpload(t, fs, "k")
		putPart(t, fs, "k", up, 1, randomBytes(1<<20))
		putPart(t, fs, "k", up, 1, randomBytes(1<<20))
		b, err := fs.BeginBackup(bg, BackupConfig{})
		want(t, err, nil)
		defer b.Close()
		if named, due := loseAll(t, fs, b); named != 2 || due != 1 {
			t.Errorf("%d of %d blobs were due for deletion", due, named)
		}
	})
}

// What a broken pass of the collector deleted is no damage; what a file lost is.
func TestBackupOfHalfCollected(t *testing.T) {
	onBackups(t, Config{InlineBytes: 16}, func(t *testing.T, fs *FS) {
		dir := mustMkdir(t, fs, RootIno, "d")
		for _, name := range []string{"gone", "lost"} {
			writeFile(t, fs, mustFile(t, fs, dir, name), strings.Repeat(name, 10_000), 0)
		}
		want(t, fs.Unlink(bg, Root, dir, "gone"), nil)
		b, err := fs.BeginBackup(bg, BackupConfig{})
		want(t, err, nil)
		defer b.Close()
		if _, due := loseAll(t, fs, b); due != 1 {
			t.Errorf("%d blobs were due for deletion", due)
		}
	})
}

// TestBackupBesideSlowFlush: a medium on which each flush takes seconds has no settled
// instant, and a backup all the same, whose lease begins when it is there.
func TestBackupBesideSlowFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := openTestWith(t, mem.New(mem.Options{}), Config{NoBackground: true})
		store := fs.backupStore()
		for _, takes := range []time.Duration{4 * time.Second, 2 * BackupLease} {
			store.Flush = func(context.Context) error {
				time.Sleep(takes)
				return nil
			}
			begun := time.Now()
			b, err := backup.Begin(bg, store, BackupConfig{DropSecrets: true})
			want(t, err, nil)
			if took := time.Since(begun); b.Info().Settled || took > BackupLease && took > 2*takes {
				t.Errorf("flushes of %v: settled %v, after %v", takes, b.Info().Settled, took)
			}
			time.Sleep(BackupLease - time.Second)
			want(t, b.Touch(), nil)
			b.Close()
		}
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		if b, err := backup.Begin(ctx, store, BackupConfig{DropSecrets: true}); err == nil {
			b.Close()
			t.Error("nobody waits for it, and it begins")
		}
	})
}

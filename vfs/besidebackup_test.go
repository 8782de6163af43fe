package vfs

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/session"
)

// What one gateway deletes, overwrites and replaces while another one makes a backup stays
// until that is over, though the collector of the first knows nothing of it.
func TestBesideBackup(t *testing.T) {
	p := openTwo(t)
	texts := map[string]string{}
	for _, name := range []string{"deleted", "changed", "replaced", "kept"} {
		texts[name] = strings.Repeat(name+" ", 20_000)
		put(t, p.a, name, texts[name])
	}
	collect(t, p.a)
	b, err := p.b.BeginBackup(bg, BackupConfig{DropSecrets: true})
	want(t, err, nil)
	_, err = p.a.DeleteObject(bg, ObjectName{"bucket", "deleted"}, DeleteOptions{})
	want(t, err, nil)
	writeFile(t, p.a, inBucket(t, p.a, "changed"), strings.Repeat("x", len(texts["changed"])), 0)
	put(t, p.a, "replaced", "short")
	collects := make(chan error, 1)
	go func() {
		_, err := p.a.Collect(bg)
		collects <- err
	}()
	s := savePairs(t, b)
	select {
	case err := <-collects:
		t.Errorf("the collector does not wait: %v", err)
	case <-time.After(2 * session.BeatEvery): // it would have heard from both
	}
	s.readBlobs(t, b)
	b.Close()
	want(t, <-collects, nil)
	back := s.restore(t, openLocal(t), RestoreConfig{Snapshot: "s"}, Config{})
	for name, text := range texts {
		if got := readAll(t, back, inBucket(t, back, name)); string(got) != text {
			t.Errorf("%s: %.20q", name, got)
		}
	}
	checkSaved(t, back)
	for _, name := range []string{"changed", "replaced", "kept"} {
		_, err = p.b.DeleteObject(bg, ObjectName{"bucket", name}, DeleteOptions{})
		want(t, err, nil)
	}
	p.wantNothingLeft()
}

// pausedDeletes calls the test after blobs are deleted.
type pausedDeletes struct {
	cluster.Blobs
	after func()
}

func (b pausedDeletes) Delete(ctx context.Context, ids ...cluster.BlobID) error {
	err := b.Blobs.Delete(ctx, ids...)
	b.after()
	return err
}

// TestBackupBesideCollector: what the collector, of whichever gateway, was removing at the instant
// of a backup, and has removed when its blobs are read, is no damage; and nobody waits for it.
func TestBackupBesideCollector(t *testing.T) {
	for name, of := range map[string]func(collects, other *FS) *FS{
		"another gateway's": func(_, other *FS) *FS { return other },
		"its own":           func(collects, _ *FS) *FS { return collects },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := mem.New(mem.Options{})
			deleted, goOn := make(chan struct{}), make(chan struct{})
			paused := *c
			paused.Blobs = pausedDeletes{c.Blobs, func() { close(deleted); <-goOn }}
			p := &twoGateways{t: t, c: c}
			a, b := bucketFS(t, p.open(beside(t, &paused))), p.open(beside(t, c))
			put(t, a, "key", blobBody)
			_, err := a.DeleteObject(bg, ObjectName{"bucket", "key"}, DeleteOptions{})
			want(t, err, nil)
			collects := make(chan error, 1)
			go func() {
				_, err := a.Collect(bg)
				collects <- err
			}()
			<-deleted
			backup, err := of(a, b).BeginBackup(bg, BackupConfig{DropSecrets: true})
			want(t, err, nil)
			named := savePairs(t, backup).named
			close(goOn)
			want(t, <-collects, nil)
			if len(named) != 1 {
				t.Fatalf("%d blobs are named", len(named))
			}
			want(t, backup.ReadBlob(bg, named[0].ID, named[0].Size, &bytes.Buffer{}, make([]byte, 1<<16)), ErrBlobDeleted)
			backup.Close()
		})
	}
}

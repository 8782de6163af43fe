package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/local"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// TestLeftovers: blobs that a process made durable and did not live to name
// are gone after the next start. A check before that is clean. Blobs that
// something names stay, and so do those of the process itself.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	start := func() (*cluster.Cluster, *FS) {
		t.Helper()
		c, err := local.Open(bg, local.Options{Dir: dir, CacheBytes: 8 << 20, SegmentBytes: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		fs, err := Open(bg, c, Config{NoBackground: true, Now: later})
		if err != nil {
			t.Fatal(err)
		}
		return c, fs
	}
	c, fs := start()
	bucketFS(t, fs)
	body := strings.Repeat("body ", 30_000)
	for i := range 5 {
		put(t, fs, fmt.Sprint("kept", i), body)
	}
	upload, err := fs.CreateUpload(bg, ObjectName{"bucket", "parts"}, PutOptions{Size: -1}, "", false)
	want(t, err, nil)
	part, err := fs.PutPart(bg, ObjectName{"bucket", "parts"}.Upload(upload.ID), 1, strings.NewReader(body), PutOptions{Size: int64(len(body))})
	want(t, err, nil)
	put(t, fs, "gone", body)
	_, err = fs.DeleteObject(bg, ObjectName{"bucket", "gone"}, DeleteOptions{})
	want(t, err, nil)
	kept, err := fs.Resolve(bg, Root, "bucket/kept0", true)
	want(t, err, nil)
	var n *record.Inode
	want(t, fs.view(bg, func(r cluster.Reader) (err error) { n, err = record.GetInode(r, kept.Ino); return err }), nil)
	lost := []cluster.BlobID{leaveBlob(t, fs, 0), leaveBlob(t, fs, n.Content)}
	want(t, c.Close(), nil) // and not fs

	c, fs = start()
	looked := fs.ids.Used()
	own := leaveBlob(t, fs, 0)
	if rep, err := fs.Check(bg, CheckOptions{}); err != nil || len(rep.Problems) != 1 || rep.Problems[0].Kind != "orphan-blob" {
		t.Errorf("check before: %v, %+v; want our own blob alone", err, rep.Problems)
	}
	fs.leftovers.Run(bg)
	for _, id := range lost {
		if _, err := c.Blobs.Locate(bg, id); !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("blob %v is left: %v", id, err)
		}
	}
	if _, err := c.Blobs.Locate(bg, own); err != nil {
		t.Errorf("our own blob: %v", err)
	}
	want(t, c.Blobs.Delete(bg, own), nil)
	_, err = fs.CompleteUpload(bg, ObjectName{"bucket", "parts"}.Upload(upload.ID), CompleteOptions{Parts: []CompletePart{{Number: 1, ETag: part.ETag}}})
	want(t, err, nil)
	for _, key := range []string{"kept0", "kept4", "parts"} {
		if got, _ := get(t, fs, key); got != body {
			t.Errorf("%s: %d bytes", key, len(got))
		}
	}
	if rep, err := fs.Check(bg, CheckOptions{Data: true}); err != nil || len(rep.Problems) > 0 {
		t.Errorf("check after: %v, %+v", err, rep.Problems)
	}
	want(t, errors.Join(fs.Close(bg), c.Close()), nil)

	c, fs = start()
	for seq, want := range map[uint64]bool{looked - 1: false, looked: true, own.Seq: true, fs.ids.Used(): false} {
		if got := fs.leftovers.Pending(cluster.BlobID{Seq: seq}); got != want {
			t.Errorf("the next start looks from %d on, number %d: %v", looked, seq, got)
		}
	}
	want(t, errors.Join(fs.Close(bg), c.Close()), nil)
}

// leaveBlob makes a blob of a content (0: of a new one) that nothing names.
func leaveBlob(t *testing.T, fs *FS, content ContentID) cluster.BlobID {
	t.Helper()
	seq, err := fs.ids.Take(bg)
	want(t, err, nil)
	id := cluster.BlobID{Content: uint64(content), Seq: seq}
	if content == 0 {
		id.Content = seq
	}
	w, err := fs.blobs.Create(bg, id, 10)
	want(t, err, nil)
	defer w.Abort()
	_, err = w.Write(bytes.Repeat([]byte("x"), 10))
	want(t, err, nil)
	_, _, err = w.Commit(bg)
	want(t, err, nil)
	return id
}

// TestLeftoversTriedAgain: a sweep that fails goes on where it was; one that
// fails too often leaves what it did not come to, and a check reports it. What is
// in quarantine is not counted as removed.
func TestLeftoversTriedAgain(t *testing.T) {
	for name, x := range map[string]struct {
		fail func(*mem.Faults)
		left int
	}{
		"once":   {func(f *mem.Faults) { f.FailAt(1, cluster.ErrUnavailable, mem.OpBlobList) }, 0},
		"twice":  {func(f *mem.Faults) { f.FailAt(2, cluster.ErrUnavailable, mem.OpBlobDelete, mem.OpBlobList) }, 0},
		"always": {func(f *mem.Faults) { f.FailFrom(1, cluster.ErrUnavailable, mem.OpBlobList) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			disk, faults := mem.NewDisk(), &mem.Faults{}
			c := mem.New(mem.Options{Disk: disk, Faults: faults})
			defer c.Close() //nolint:errcheck // of a test
			open := func() *FS {
				fs, err := Open(bg, c, Config{NoBackground: true, Now: later})
				want(t, err, nil)
				return fs
			}
			fs := open()
			bucketFS(t, fs)
			var kept cluster.BlobID
			for range 4 {
				kept = leaveBlob(t, fs, 0)
			}
			disk.CorruptBlob(kept, 3)
			want(t, fs.quarantine.Note(bg, kept, cluster.ErrCorrupt), nil)
			fs = open() // and the one before is as good as killed
			fs.leftovers.Pause = 1
			if !fs.leftovers.Pending(kept) {
				t.Fatal("nothing is pending")
			}
			x.fail(faults)
			fs.leftovers.Run(bg)
			faults.Clear()
			if fs.leftovers.Pending(kept) {
				t.Error("a sweep that has ended is pending")
			}
			if n := countBlobs(t, c); n != x.left+1 {
				t.Errorf("%d blobs are left", n)
			}
			rep, err := fs.Check(bg, CheckOptions{})
			want(t, err, nil)
			orphans := x.left
			if orphans > 0 {
				orphans++ // the damaged one, which nobody has set aside yet
			}
			if n := kindsOf(rep)["orphan-blob"]; n != orphans {
				t.Errorf("check: %+v", rep.Problems)
			}
			fs = open()
			if removed, err := fs.leftovers.Sweep(bg); removed != x.left || err != nil {
				t.Errorf("the next start removes %d, %v", removed, err)
			}
			if q := fs.Scrub(bg); q.Aside != 1 || len(q.Damaged) != 0 {
				t.Errorf("quarantine: %+v", q)
			}
		})
	}
}

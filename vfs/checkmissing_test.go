package vfs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
)

// lossyBlobs lost the bytes of some blobs.
type lossyBlobs struct {
	cluster.Blobs
	lost map[cluster.BlobID]bool
}

func (l *lossyBlobs) damage(id cluster.BlobID) error {
	if l.lost[id] {
		return fmt.Errorf("%w: file %v is missing", cluster.ErrCorrupt, id)
	}
	return nil
}

func (l *lossyBlobs) ReadAt(ctx context.Context, id cluster.BlobID, p []byte, off int64) (int, error) {
	if err := l.damage(id); err != nil {
		return 0, err
	}
	return l.Blobs.ReadAt(ctx, id, p, off)
}

func (l *lossyBlobs) Probe(ctx context.Context, from cluster.BlobID, fn func(cluster.BlobInfo, error) error) error {
	return l.List(ctx, from, func(b cluster.BlobInfo) error { return fn(b, l.damage(b.ID)) })
}

// blobsOf returns the blobs of an object, in order of their offsets.
func blobsOf(t *testing.T, fs *FS, key string) (ids []cluster.BlobID) {
	t.Helper()
	_, where, err := fs.Whereis(bg, "bucket/"+key)
	want(t, err, nil)
	for _, x := range where {
		want(t, fs.blobs.List(bg, cluster.BlobID{}, func(b cluster.BlobInfo) error {
			if b.ID.String() == x.Blob {
				ids = append(ids, b.ID)
			}
			return nil
		}), nil)
	}
	if len(ids) == 0 {
		t.Fatalf("%s has no blobs", key)
	}
	return ids
}

// TestCheckMissing: blobs without bytes are reported with the files that use
// them, once, and nothing is deleted because of them.
func TestCheckMissing(t *testing.T) {
	c := mem.New(mem.Options{})
	lossy := &lossyBlobs{Blobs: c.Blobs, lost: map[cluster.BlobID]bool{}}
	c.Blobs = lossy
	fs := bucketFS(t, openTestWith(t, c, Config{InlineBytes: 100, Now: later}))
	body := strings.Repeat("0123456789", 1000)
	for _, key := range []string{"whole", "lost", "shared", "absent", "deleted"} {
		put(t, fs, key, body)
	}
	_, err := fs.CopyObject(bg, ObjectName{"bucket", "shared"}, ObjectName{"bucket", "copy"}, CopyOptions{})
	want(t, err, nil)
	check := func(what string, o CheckOptions, details ...string) {
		t.Helper()
		rep, err := fs.Check(bg, o)
		want(t, err, nil)
		if len(rep.Problems) != len(details) || rep.Repaired != 0 {
			t.Errorf("%s: %+v, want %q", what, rep.Problems, details)
			return
		}
		for _, d := range details {
			kind, rest, _ := strings.Cut(d, ": ")
			if !slices.ContainsFunc(rep.Problems, func(p Problem) bool {
				return p.Kind == kind && !slices.ContainsFunc(strings.Split(rest, " & "), func(s string) bool { return !strings.Contains(p.Detail, s) })
			}) {
				t.Errorf("%s: %q is not among %+v", what, d, rep.Problems)
			}
		}
	}
	check("whole", CheckOptions{})

	lostFile, err := fs.Resolve(bg, Root, "bucket/lost", true)
	want(t, err, nil)
	lost, shared, absent, deleted := blobsOf(t, fs, "lost"), blobsOf(t, fs, "shared"), blobsOf(t, fs, "absent"), blobsOf(t, fs, "deleted")
	lossy.lost[lost[0]], lossy.lost[shared[0]], lossy.lost[deleted[0]] = true, true, true
	want(t, c.Blobs.Delete(bg, absent...), nil)
	_, err = fs.DeleteObject(bg, ObjectName{"bucket", "deleted"}, DeleteOptions{})
	want(t, err, nil)
	missing := []string{
		"missing-blob: bucket/lost & " + lost[0].String() + " & file",
		"missing-blob: bucket/shared & bucket/copy & " + shared[0].String() + " & file",
		"missing-blob: bucket/absent & " + absent[0].String() + " & does not exist",
	}
	check("lost", CheckOptions{}, missing...)
	check("lost, repaired", CheckOptions{Repair: true}, missing...)
	_, err = fs.Collect(bg)
	want(t, err, nil)
	for _, id := range []cluster.BlobID{lost[0], shared[0]} {
		if _, err := c.Blobs.Locate(bg, id); err != nil {
			t.Errorf("after the repair: %v", err)
		}
	}
	if n := len(fs.Scrub(bg).Damaged); n != 0 {
		t.Errorf("a look is no reading, and noted %d blobs", n)
	}

	// A reader takes one into quarantine, which reports it then.
	f := mustOpen(t, fs, lostFile.Ino, OpenRead)
	_, err = f.ReadAt(bg, make([]byte, 10), 0)
	want(t, err, ErrCorrupt)
	want(t, f.Close(bg), nil)
	check("read", CheckOptions{}, append([]string{"damaged-blob: bucket/lost & " + lost[0].String()}, missing[1:]...)...)

	check("all read", CheckOptions{Data: true}, "corrupt-data: bucket/lost", "corrupt-data: bucket/shared", "corrupt-data: bucket/copy", "corrupt-data: bucket/absent")
	clear(lossy.lost)
	check("back again", CheckOptions{}, missing[2])
}

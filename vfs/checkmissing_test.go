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

// TestCheckParts: blobs of parts of uploads in progress are reported with their upload, and
// those of parts that nobody needs any more are not.
func TestCheckParts(t *testing.T) {
	disk := mem.NewDisk()
	c := mem.New(mem.Options{Disk: disk})
	lossy := &lossyBlobs{Blobs: c.Blobs, lost: map[cluster.BlobID]bool{}}
	c.Blobs = lossy
	fs := bucketFS(t, openTestWith(t, c, Config{InlineBytes: 100, Now: later}))
	blobs := func() (ids []cluster.BlobID) {
		want(t, c.Blobs.List(bg, cluster.BlobID{}, func(b cluster.BlobInfo) error {
			ids = append(ids, b.ID)
			return nil
		}), nil)
		return ids
	}
	part := func(key, up string, number int) cluster.BlobID {
		t.Helper()
		before := blobs()
		putPart(t, fs, key, up, number, randomBytes(10_000))
		made := slices.DeleteFunc(blobs(), func(id cluster.BlobID) bool { return slices.Contains(before, id) })
		if len(made) != 1 {
			t.Fatalf("a part of %d blobs", len(made))
		}
		return made[0]
	}
	up, other := createUpload(t, fs, "dir/k"), createUpload(t, fs, "dir/k")
	absent, lost, rotten := part("dir/k", up, 1), part("dir/k", up, 2), part("dir/k", up, 3)
	alone := part("dir/k", other, 1) // and no other blob or extent shows its upload
	third := createUpload(t, fs, "again")
	replaced := part("again", third, 1)
	part("again", third, 1)
	mustBeClean(t, fs)
	want(t, c.Blobs.Delete(bg, absent, alone, replaced), nil)
	lossy.lost[lost] = true
	disk.CorruptBlob(rotten, 10)

	check := func(o CheckOptions, found map[string]string) { // kind and text by blob
		t.Helper()
		rep, err := fs.Check(bg, o)
		want(t, err, nil)
		for id, text := range found {
			n := 0
			for _, p := range rep.Problems {
				if kind, rest, _ := strings.Cut(text, ": "); p.Kind == kind && strings.HasPrefix(p.Detail, rest) && strings.Contains(p.Detail, id) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%+v: %q is found %d times in %+v", o, text, n, rep.Problems)
			}
		}
		if len(rep.Problems) != len(found) {
			t.Errorf("%+v: %+v", o, rep.Problems)
		}
	}
	missing := map[string]string{
		absent.String(): "missing-blob: bucket/dir/k, part 1 of upload " + up,
		lost.String():   "missing-blob: bucket/dir/k, part 2 of upload " + up,
		alone.String():  "missing-blob: bucket/dir/k, part 1 of upload " + other,
	}
	check(CheckOptions{}, missing)
	check(CheckOptions{Repair: true}, missing)
	missing[lost.String()] = strings.Replace(missing[lost.String()], "missing-blob", "corrupt-data", 1)
	missing[rotten.String()] = "corrupt-data: bucket/dir/k, part 3 of upload " + up
	check(CheckOptions{Data: true}, missing)
	for _, id := range []string{up, other} {
		want(t, fs.AbortUpload(bg, ObjectName{"bucket", "dir/k"}.Upload(id)), nil)
	}
	collect(t, fs)
	check(CheckOptions{}, nil)
}

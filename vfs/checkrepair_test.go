package vfs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// A check with repair removes no blob of an object that is being published.
func TestRepairBesidePublish(t *testing.T) {
	fs := bucketFS(t, openTestWith(t, mem.New(mem.Options{}), Config{InlineBytes: 100, Now: later}))
	body := strings.Repeat("0123456789", 10_000)
	checked := false
	h := hook(fs)
	h.commits = func() {
		if !checked {
			checked = true
			_, err := fs.Check(bg, CheckOptions{Repair: true})
			want(t, err, nil)
		}
	}
	_, err := fs.PutObject(bg, ObjectName{"bucket", "key"}, strings.NewReader(body), PutOptions{Size: int64(len(body))})
	want(t, err, nil)
	if !checked {
		t.Fatal("nothing was committed")
	}
	wantObject(t, fs, "key", body)
	h.commits = nil
	mustBeClean(t, fs)
}

// A copy by reference keeps its bytes when a check repairs a store that lost one of the pairs
// between it and what it refers to.
func TestRepairOfReferences(t *testing.T) {
	body := strings.Repeat("0123456789", 10_000)
	for what, lost := range map[string]func(source, user ContentID) []byte{
		"hold":   func(source, user ContentID) []byte { return record.RefKey(source, user) },
		"record": func(source, _ ContentID) []byte { return record.ContentKey(source) },
	} {
		for _, deleted := range []bool{true, false} {
			t.Run(fmt.Sprint(what, " ", deleted), func(t *testing.T) {
				fs := bucketFS(t, openTestWith(t, mem.New(mem.Options{}), Config{InlineBytes: 100, Now: later}))
				put(t, fs, "key", body)
				_, err := fs.CopyObject(bg, ObjectName{"bucket", "key"}, ObjectName{"bucket", "copy"}, CopyOptions{})
				want(t, err, nil)
				if deleted {
					_, err = fs.DeleteObject(bg, ObjectName{"bucket", "key"}, DeleteOptions{})
					want(t, err, nil)
				}
				want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error {
					from, to := record.Table(record.TabRef)
					var source, user ContentID
					err := tx.Scan(from, to, cluster.ScanOptions{}, func(k, _ []byte) error {
						source, user = record.ParseRefKey(k)
						return nil
					})
					if source == 0 {
						t.Fatal("nothing refers to anything")
					}
					return errors.Join(err, tx.Delete(lost(source, user)))
				}), nil)
				for range 3 {
					_, err = fs.Check(bg, CheckOptions{Repair: true})
					want(t, err, nil)
					collect(t, fs)
					wantObject(t, fs, "copy", body)
					if !deleted {
						wantObject(t, fs, "key", body)
					}
				}
				mustBeClean(t, fs)
				for _, key := range []string{"key", "copy"} {
					if _, err = fs.DeleteObject(bg, ObjectName{"bucket", key}, DeleteOptions{}); err != nil && !errors.Is(err, ErrNotExist) {
						t.Fatal(err)
					}
				}
				for range 2 { // what is held in vain is found by a check
					_, err = fs.Check(bg, CheckOptions{Repair: true})
					want(t, err, nil)
					collect(t, fs)
				}
				wantBlobs(t, fs, 0)
			})
		}
	}
}

// What changes between the look of a check and its repair is not undone.
func TestRepairBesideChanges(t *testing.T) {
	for what, c := range map[string]struct {
		damage func(tx cluster.Txn, a, b *record.Inode) error
		change func(t *testing.T, fs *FS, bucket Ino)
		want   map[string]bool // names that are there after it
	}{
		"a link more": {
			func(tx cluster.Txn, a, _ *record.Inode) error {
				a.Nlink = 3
				return record.PutInode(tx, a)
			},
			func(t *testing.T, fs *FS, bucket Ino) {
				_, err := fs.Link(bg, Root, mustLookup(t, fs, bucket, "a").Ino, bucket, "c")
				want(t, err, nil)
				want(t, fs.Unlink(bg, Root, bucket, "a"), nil)
				want(t, fs.Unlink(bg, Root, bucket, "a2"), nil)
			},
			map[string]bool{"c": true, "a": false, "a2": false},
		},
		"a name made again": {
			func(tx cluster.Txn, _, b *record.Inode) error { return tx.Delete(record.InodeKey(b.Ino)) },
			func(t *testing.T, fs *FS, bucket Ino) {
				want(t, fs.update(bg, func(tx cluster.Txn, o *op) error {
					return o.deleteEntry(tx, bucket, &record.Dentry{Name: "b"})
				}), nil)
				mustFile(t, fs, bucket, "b")
			},
			map[string]bool{"b": true},
		},
	} {
		t.Run(what, func(t *testing.T) {
			fs := bucketFS(t, openTestWith(t, mem.New(mem.Options{}), Config{Now: later}))
			bucket := mustLookup(t, fs, RootIno, "bucket").Ino
			a, b := mustFile(t, fs, bucket, "a"), mustFile(t, fs, bucket, "b")
			_, err := fs.Link(bg, Root, a, bucket, "a2")
			want(t, err, nil)
			want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error {
				na, e1 := record.GetInode(tx, a)
				nb, e2 := record.GetInode(tx, b)
				return errors.Join(e1, e2, c.damage(tx, na, nb))
			}), nil)
			h, done := hook(fs), false
			h.viewed = func() {
				if !done {
					done = true
					c.change(t, fs, bucket)
				}
			}
			if what == "a name made again" { // the entry comes in the second walk
				views := 0
				change := h.viewed
				h.viewed = func() {
					if views++; views == 2 {
						change()
					}
				}
			}
			_, err = fs.Check(bg, CheckOptions{Repair: true})
			want(t, err, nil)
			h.viewed = nil
			if !done {
				t.Fatal("nothing was changed meanwhile")
			}
			for name, there := range c.want {
				_, err := fs.Lookup(bg, Root, bucket, name)
				if (err == nil) != there {
					t.Errorf("%s: %v", name, err)
				}
			}
			if c.want["c"] {
				if n := mustLookup(t, fs, bucket, "c").Nlink; n != 1 {
					t.Errorf("c has %d links", n)
				}
			}
			_, err = fs.Check(bg, CheckOptions{Repair: true})
			want(t, err, nil)
			mustBeClean(t, fs)
		})
	}
}

// A record that cannot be read keeps the collector from nothing else, and a check tells of it.
func TestCollectBesideDamage(t *testing.T) {
	for what, c := range map[string]struct {
		damage func(tx cluster.Txn) error
		kind   string
	}{
		"queue": {func(tx cluster.Txn) error {
			return tx.Set(append([]byte{record.TabQueue}, make([]byte, 16)...), []byte{0xff})
		}, "queue-record"},
		"record": {func(tx cluster.Txn) error { return tx.Set(record.ContentKey(1<<40), []byte{0xff}) }, "other-record"},
		"orphan": {func(tx cluster.Txn) error { return tx.Set(record.OrphanKey(1<<40), []byte{0xff}) }, "stray-orphan"},
		"extent": {func(tx cluster.Txn) error {
			e := record.QueueEntry{Kind: record.QueueContent, Content: 1 << 40, TimeNS: 1}
			return errors.Join(tx.Set(record.ExtentKey(e.Content, 0), []byte{0xff}), tx.Set(e.Key(), e.Encode()))
		}, "extent-record"},
	} {
		t.Run(what, func(t *testing.T) {
			fs := bucketFS(t, openTestWith(t, mem.New(mem.Options{}), Config{InlineBytes: 100, Now: later}))
			want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error { return c.damage(tx) }), nil)
			for i := range 3 {
				put(t, fs, fmt.Sprint(i), strings.Repeat("0123456789", 1000))
				_, err := fs.DeleteObject(bg, ObjectName{"bucket", fmt.Sprint(i)}, DeleteOptions{})
				want(t, err, nil)
			}
			fs.orphans.Again()
			collect(t, fs)
			wantBlobs(t, fs, 0)
			rep, err := fs.Check(bg, CheckOptions{})
			want(t, err, nil)
			if kindsOf(rep)[c.kind] == 0 {
				t.Errorf("check: %+v", rep.Problems)
			}
		})
	}
}

// awayBlobs do not answer.
type awayBlobs struct {
	cluster.Blobs
	away bool
}

func (a *awayBlobs) ReadAt(ctx context.Context, id cluster.BlobID, p []byte, off int64) (int, error) {
	if a.away {
		return 0, cluster.ErrUnavailable
	}
	return a.Blobs.ReadAt(ctx, id, p, off)
}

// A check that cannot read says so, and takes nothing for damaged.
func TestCheckOutage(t *testing.T) {
	c := mem.New(mem.Options{})
	away := &awayBlobs{Blobs: c.Blobs}
	c.Blobs = away
	fs := bucketFS(t, openTestWith(t, c, Config{InlineBytes: 100, Now: later}))
	put(t, fs, "key", strings.Repeat("0123456789", 1000))
	away.away = true
	rep, err := fs.Check(bg, CheckOptions{Data: true})
	if !errors.Is(err, ErrUnavailable) || len(rep.Problems) > 0 {
		t.Errorf("check: %v, %+v", err, rep.Problems)
	}
	away.away = false
	mustBeClean(t, fs)
}

// A copy within a file that has no content leaves nothing behind.
func TestCopyOfHole(t *testing.T) {
	fs := bucketFS(t, openTestWith(t, mem.New(mem.Options{}), Config{InlineBytes: 100, Now: later}))
	bucket := mustLookup(t, fs, RootIno, "bucket").Ino
	ino, size := mustFile(t, fs, bucket, "f"), int64(1<<20)
	_, err := fs.SetAttr(bg, Root, ino, SetAttr{Size: &size})
	want(t, err, nil)
	f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
	n, err := f.CopyRange(bg, 1<<20, f, 0, 100_000)
	want(t, err, nil)
	a, err := f.Attr(bg)
	want(t, err, nil)
	if n != 100_000 || a.Size != 1<<20+100_000 {
		t.Errorf("%d bytes are copied, and the size is %d", n, a.Size)
	}
	want(t, f.Close(bg), nil)
	want(t, fs.Unlink(bg, Root, bucket, "f"), nil)
	collect(t, fs)
	want(t, fs.view(bg, func(r cluster.Reader) error {
		for _, tab := range []byte{record.TabContent, record.TabRef, record.TabExtent} {
			from, to := record.Table(tab)
			err := r.Scan(from, to, cluster.ScanOptions{}, func(k, _ []byte) error { return fmt.Errorf("key %q is left", k) })
			if err != nil {
				return err
			}
		}
		return nil
	}), nil)
}

// A copy of a sparse file that was cut leaves nothing behind when it is deleted.
func TestDropOfSparseCopy(t *testing.T) {
	fs := bucketFS(t, openTestWith(t, mem.New(mem.Options{}), Config{InlineBytes: 100, Now: later}))
	bucket := mustLookup(t, fs, RootIno, "bucket").Ino
	put(t, fs, "f", strings.Repeat("0123456789", 1000))
	resize := func(name string, size int64) {
		_, err := fs.SetAttr(bg, Root, mustLookup(t, fs, bucket, name).Ino, SetAttr{Size: &size})
		want(t, err, nil)
	}
	resize("f", 1<<20)
	_, err := fs.CopyObject(bg, ObjectName{"bucket", "f"}, ObjectName{"bucket", "g"}, CopyOptions{})
	want(t, err, nil)
	resize("g", 500_000)
	f := mustOpen(t, fs, mustLookup(t, fs, bucket, "g").Ino, OpenRead|OpenWrite)
	_, err = f.WriteAt(bg, []byte("x"), 0)
	want(t, err, nil)
	want(t, f.Close(bg), nil)
	want(t, fs.Unlink(bg, Root, bucket, "g"), nil)
	want(t, fs.Unlink(bg, Root, bucket, "f"), nil)
	for range 2 {
		collect(t, fs)
	}
	mustBeClean(t, fs)
	wantBlobs(t, fs, 0)
}

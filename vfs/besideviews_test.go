package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
)

// distributed is the test that runs others over an engine with limits and conflicts.
const distributed = "TestBesideDistributed"

func TestBesideDistributed(t *testing.T) {
	for name, fn := range map[string]func(*testing.T){
		"Unlinked": TestBesideUnlinked, "DeleteObjects": TestBesideDeleteObjects, "Held": TestBesideHeld, "HeldOthers": TestBesideHeldOthers, "ManyHeld": TestBesideManyHeld, "HeldLate": TestBesideHeldLate, "Relinked": TestBesideRelinked,
		"UnlinkRace": TestBesideUnlinkRace, "ManyUnlinked": TestBesideManyUnlinked, "ManyXattrs": TestBesideManyXattrs, "StuckOrphan": TestBesideStuckOrphan,
		"Fresh": TestBesideFresh, "Merge": TestBesideMerge, "Replaced": TestBesideReplaced,
		"Writers": TestBesideWriters, "Append": TestBesideAppend, "Times": TestBesideTimes,
		"OldLoad": TestBesideOldLoad, "OldInode": TestBesideOldInode, "ChangedDownload": TestBesideChangedDownload,
		"HolderDies": TestBesideHolderDies, "Unknown": TestBesideUnknown, "Overtaken": TestBesideOvertaken,
	} {
		t.Run(name, fn)
	}
}

// textThrough returns what a File holds.
func textThrough(t *testing.T, f *File) string {
	t.Helper()
	got := make([]byte, 100)
	n, err := f.ReadAt(bg, got, 0)
	want(t, err, io.EOF)
	return string(got[:n])
}

// A load that is under way when somebody is shown a newer version does not make what was
// before be read after that.
func TestBesideOldLoad(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "file", "old")
	fa, fb := openFileAt(t, p.a, "file", OpenRefreshes), openFileAt(t, p.b, "file", 0)
	_, _, err := fa.Refresh(bg)
	want(t, err, nil)
	loaded, goOn := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	hook(p.a).peeked = func() {
		if once.CompareAndSwap(false, true) {
			close(loaded)
			<-goOn
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := fa.ReadAt(bg, make([]byte, 10), 0) // as of then, or later
		if !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}()
	<-loaded
	writeThrough(t, fb, "new+", 0)
	want(t, fb.Sync(bg), nil)
	a, _, err := fa.Refresh(bg)
	if want(t, err, nil); a.Size != 4 {
		t.Errorf("size %d", a.Size)
	}
	close(goOn)
	<-done
	wantThrough(t, fa, "new+")
	want(t, errors.Join(fa.Close(bg), fb.Close(bg)), nil)
}

// What another gateway stored shows, also while a flush of this one is under way that was to make the same
// version.
func TestBesideOvertaken(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "file", "old")
	fa, fb := openFileAt(t, p.a, "file", 0), openFileAt(t, p.b, "file", 0)
	writeThrough(t, fa, "A", 0)
	writeThrough(t, fb, "B", 2)
	before, err := fa.Attr(bg)
	want(t, err, nil)
	var once atomic.Bool
	hook(p.a).commits = func() {
		if !once.CompareAndSwap(false, true) {
			return
		}
		want(t, fb.Sync(bg), nil)
		wantThrough(t, fa, "AlB")
		for range 2 {
			now, err := fa.Attr(bg)
			if want(t, err, nil); now.Others == before.Others {
				t.Errorf("version %d, of others %d: as before the other one stored", now.Version, now.Others)
			}
			before = now // what it is like as long as nobody knows, it is not afterwards
		}
	}
	want(t, fa.Sync(bg), nil)
	now, err := fa.Attr(bg)
	if want(t, err, nil); now.Others == before.Others || !once.Load() {
		t.Errorf("version %d, of others %d", now.Version, now.Others)
	}
	want(t, errors.Join(fa.Close(bg), fb.Close(bg)), nil)
}

// afterFlush calls fn after the next transaction of a gateway that changes a file.
func afterFlush(t *testing.T, fs *FS, ino Ino, fn func()) {
	before, err := storedInode(fs, ino)
	want(t, err, nil)
	kv, done := hook(fs), false
	kv.updated = nestedOnce(kv, func() {
		n, err := storedInode(fs, ino)
		if want(t, err, nil); done || n.Version == before.Version {
			return
		}
		done = true
		fn()
	})
}

// The inode as a flush left it is not gone by after somebody was shown a newer one.
func TestBesideOldInode(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "file", "old")
	fa, fb := openFileAt(t, p.a, "file", OpenRefreshes), openFileAt(t, p.b, "file", 0)
	writeThrough(t, fa, "O", 0)
	afterFlush(t, p.a, fa.Ino(), func() {
		fa.of.mu.Lock()
		fa.of.snap.at = time.Time{}
		fa.of.mu.Unlock()
		fa.of.dropSnapshot(noContent) // as the collector does, of one that is a second old
		writeThrough(t, fb, "new+", 0)
		want(t, fb.Sync(bg), nil)
		a, _, err := fa.Refresh(bg)
		if want(t, err, nil); a.Size != 4 {
			t.Errorf("size %d", a.Size)
		}
	})
	want(t, fa.Sync(bg), nil)
	n, err := fa.of.stored(bg)
	if want(t, err, nil); n.Size != 4 {
		t.Errorf("writes go by a size of %d", n.Size)
	}
	wantThrough(t, fa, "new+")
	want(t, errors.Join(fa.Close(bg), fb.Close(bg)), nil)
}

// Who keeps bytes by the times of a file, as clients of one gateway do, sees others
// whenever the bytes are others, whatever is stored when, and whatever the clocks say.
func TestBesideTimes(t *testing.T) {
	frozen := time.Now()
	for name, clocks := range map[string][2]func() time.Time{
		"right":  {time.Now, time.Now},
		"ahead":  {later, time.Now},
		"behind": {time.Now, later},
		"frozen": {func() time.Time { return frozen }, func() time.Time { return frozen }},
	} {
		t.Run(name, func(t *testing.T) {
			p := openTwo(t)
			p.a.cfg.Now, p.b.cfg.Now = clocks[0], clocks[1]
			put(t, p.a, "file", "0123456789")
			files := [2]*File{openFileAt(t, p.a, "file", OpenRefreshes), openFileAt(t, p.b, "file", OpenRefreshes)}
			type times struct {
				at     int
				m      Time
				c, len int64
			}
			seen := make(map[times]string)
			rnd := rand.New(rand.NewPCG(1, 2))
			for i := range 400 {
				f := files[rnd.IntN(2)]
				if rnd.IntN(3) == 0 {
					want(t, f.Sync(bg), nil)
				} else {
					writeThrough(t, f, fmt.Sprintf("%03d", i)[2-rnd.IntN(2):], rnd.Int64N(9))
				}
				for at, f := range files {
					a, _, err := f.Refresh(bg)
					want(t, err, nil)
					k := times{at, a.Mtime, a.CtimeNS, a.Size}
					text := textThrough(t, f)
					if old, ok := seen[k]; ok && old != text {
						t.Fatalf("step %d: %q and %q under the same times at gateway %d", i, old, text, at)
					}
					seen[k] = text
				}
			}
			want(t, errors.Join(files[0].Close(bg), files[1].Close(bg)), nil)
		})
	}
}

// What is downloaded at one gateway, changed in place at another one, and then replaced or
// removed there, is not read on with what was changed.
func TestBesideChangedDownload(t *testing.T) {
	for _, how := range []string{"replaced", "removed", "copied and replaced"} {
		t.Run(how, func(t *testing.T) {
			p := openTwo(t)
			p.a.contents.ExtentPage = 2
			var all []byte
			for i := range 6 {
				body := bytes.Repeat([]byte{byte('a' + i)}, 100_000)
				if i == 0 {
					put(t, p.b, "pieces", string(body))
				} else {
					_, err := p.b.AppendObject(bg, ObjectName{"bucket", "pieces"}, int64(len(all)), bytes.NewReader(body), PutOptions{Size: int64(len(body))})
					want(t, err, nil)
				}
				all = append(all, body...)
			}
			o, err := p.a.GetObject(bg, ObjectName{"bucket", "pieces"}, GetOptions{})
			want(t, err, nil)
			defer o.Close()
			f := openFileAt(t, p.b, "pieces", 0)
			writeThrough(t, f, strings.Repeat("X", 50_000), 520_000)
			want(t, f.Close(bg), nil)
			if how == "copied and replaced" {
				_, err = p.b.CopyObject(bg, ObjectName{"bucket", "pieces"}, ObjectName{"bucket", "copy"}, CopyOptions{})
				want(t, err, nil)
			}
			if how == "removed" {
				_, err = p.b.DeleteObject(bg, ObjectName{"bucket", "pieces"}, DeleteOptions{})
				want(t, err, nil)
			} else {
				put(t, p.b, "pieces", "other")
			}
			for range 2 {
				_, err = p.a.Collect(bg)
				want(t, err, nil)
			}
			got, err := io.ReadAll(io.NewSectionReader(o, 0, int64(len(all))))
			if err == nil && !bytes.Equal(got, all) {
				t.Errorf("a mixture: %d bytes X", bytes.Count(got, []byte("X")))
			}
			if err != nil && !errors.Is(err, ErrStale) {
				t.Error(err)
			}
		})
	}
}

// A copy that is downloaded is read to its end after what it was copied from, and the copy,
// are gone.
func TestBesideCopyDownload(t *testing.T) {
	p := openTwo(t)
	p.a.contents.ExtentPage = 2
	download(t, p.a, 6, 100_000, func() {
		_, err := p.b.CopyObject(bg, ObjectName{"bucket", "pieces"}, ObjectName{"bucket", "copy"}, CopyOptions{})
		want(t, err, nil)
		for _, key := range []string{"pieces", "copy"} {
			_, err = p.b.DeleteObject(bg, ObjectName{"bucket", key}, DeleteOptions{})
			want(t, err, nil)
		}
		for range 2 {
			_, err = p.a.Collect(bg)
			want(t, err, nil)
		}
	})
}

// A file that another gateway changes faster than it can be read is there still.
func TestBesideBusy(t *testing.T) {
	p := openTwo(t)
	p.a.contents.ExtentPage = 2
	put(t, p.b, "pieces", "")
	f, g := openFileAt(t, p.b, "pieces", 0), openFileAt(t, p.a, "pieces", OpenRefreshes)
	for i := range 6 {
		writeThrough(t, f, strings.Repeat("x", 1000), int64(2000*i))
	}
	want(t, f.Sync(bg), nil)
	_, _, err := g.Refresh(bg)
	want(t, err, nil)
	hook(p.a).peeked = func() {
		_, e1 := f.WriteAt(bg, []byte("y"), 0)
		if err := errors.Join(e1, f.Sync(bg)); err != nil {
			t.Error(err)
		}
	}
	_, err = g.ReadAt(bg, make([]byte, 100), 10_500)
	want(t, err, ErrConflict)
	want(t, p.b.Unlink(bg, Root, bucketIno(t, p.b), "pieces"), nil)
	want(t, errors.Join(f.Close(bg), g.Close(bg)), nil)
}

// An append answers for itself, not for what others lost before the first one.
func TestBesideAppendSeen(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "file", "0123456789")
	g, f := openFileAt(t, p.a, "file", OpenAppend), openFileAt(t, p.a, "file", 0)
	writeThrough(t, f, "ab", 6)
	put(t, p.b, "file", "another one")
	want(t, f.Sync(bg), ErrStale)
	_, err := g.Append(bg, []byte("tail"))
	want(t, err, nil)
	want(t, g.Sync(bg), nil)
	want(t, g.Close(bg), nil)
	_ = f.Close(bg)
	if text, _ := get(t, p.b, "file"); text != "another onetail" {
		t.Errorf("%q", text)
	}
}

// An append that does not fit a transaction is refused before any of it is stored: the end
// may be another one in the next.
func TestBesideAppendWhole(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "file", "0123456789")
	tail := &openFile{fs: p.a, ino: inBucket(t, p.a, "file"), tail: true}
	f := &File{fs: p.a, of: tail, flags: OpenWrite}
	for i := range int64(2) {
		_, err := tail.writePart(bg, f, oneWrite{p: []byte("text"), off: 100 * i})
		want(t, err, nil)
	}
	p.a.tune.flushOps = flushItemOps + flushCutOps
	want(t, tail.flush(bg), ErrTooLarge)
	tail.mu.Lock()
	tail.dropPieces(nil)
	tail.mu.Unlock()
	if text, _ := get(t, p.b, "file"); text != "0123456789" {
		t.Errorf("%q", text)
	}
}

// What a gateway that is gone had open when its name went is removed, and not before.
func TestBesideHolderDies(t *testing.T) {
	p := openTwo(t)
	gone := p.open(beside(t, p.c))
	put(t, p.a, "file", blobBody)
	f := openFileAt(t, gone, "file", 0)
	writeThrough(t, f, "unflushed", 0)
	want(t, p.a.Unlink(bg, Root, bucketIno(t, p.a), "file"), nil)
	collect(t, p.a)
	wantThrough(t, f, "unflushed"+blobBody[len("unflushed"):])
	want(t, gone.kv.Close(), nil)
	p.wantNothingLeft()
}

// doubtful is a store of which some transactions have an unknown outcome.
type doubtful struct {
	cluster.KV
	mu  sync.Mutex
	rnd *rand.Rand
}

func (kv *doubtful) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	kv.mu.Lock()
	fate := kv.rnd.IntN(20)
	kv.mu.Unlock()
	if fate == 0 {
		return cluster.ErrUnavailable
	}
	err := kv.KV.Update(ctx, fn)
	if err == nil && fate == 1 {
		err = cluster.ErrUnavailable
	}
	return err
}

// surely does something again until its outcome is known.
func surely(fn func() error) error {
	for range 1000 {
		if err := fn(); !errors.Is(err, ErrUnavailable) {
			return err
		}
	}
	return ErrUnavailable
}

// Where outcomes are unknown, what was acknowledged is there, at both gateways, and what is
// removed leaves nothing that a check does not find, and mend.
func TestBesideUnknown(t *testing.T) {
	p := openTwo(t)
	const writers, slot, rounds = 4, 3000, 30
	put(t, p.a, "file", strings.Repeat("-", writers*slot))
	dir := bucketIno(t, p.a)
	for i, fs := range []*FS{p.a, p.b} {
		setKV(fs, &doubtful{KV: fs.kv, rnd: rand.New(rand.NewPCG(3, uint64(i)))})
	}
	var wg sync.WaitGroup
	for w := range writers {
		mine, other := p.a, p.b
		if w%2 == 1 {
			mine, other = other, mine
		}
		f, g := openFileAt(t, mine, "file", 0), openFileAt(t, other, "file", 0)
		wg.Go(func() {
			for i := range rounds {
				text, got := bytes.Repeat([]byte{byte('a' + (i+w)%26)}, slot), make([]byte, slot)
				err := surely(func() error { _, err := f.WriteAt(bg, text, int64(w*slot)); return err })
				err = errors.Join(err, surely(func() error { return f.Sync(bg) }))
				_, e := g.ReadAt(bg, got, int64(w*slot))
				if e != nil && !errors.Is(e, io.EOF) || err != nil || !bytes.Equal(got, text) {
					t.Errorf("writer %d, round %d: %v, read %.10q, wrote %.10q", w, i, errors.Join(err, e), got, text)
					return
				}
			}
			if err := errors.Join(f.Close(bg), g.Close(bg)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	removed := func() error { return p.b.Unlink(bg, Root, dir, "file") }
	if err := surely(removed); err != nil && !errors.Is(err, ErrNotExist) {
		t.Error(err)
	}
	for _, fs := range []*FS{p.a, p.b} {
		setKV(fs, fs.kv.(*doubtful).KV)
	}
	collect(t, p.a)
	_, err := p.a.Check(bg, CheckOptions{Repair: true})
	want(t, err, nil)
	collect(t, p.a)
	p.wantNothingLeft()
}

// Attr.Others moves with what others do to a file, and not with what is written and stored
// here.
func TestBesideOthers(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "file", "0123456789")
	fa, fb := openFileAt(t, p.a, "file", OpenRefreshes), openFileAt(t, p.b, "file", OpenRefreshes)
	writeThrough(t, fb, "B", 0)
	others := func() uint64 {
		t.Helper()
		a, _, err := fa.Refresh(bg)
		want(t, err, nil)
		b, err := fa.Attr(bg)
		if want(t, err, nil); b.Others != a.Others || a.Version != b.Version {
			t.Errorf("%d and %d", a.Others, b.Others)
		}
		return a.Others
	}
	before := others()
	for i := range int64(5) {
		writeThrough(t, fa, "A", i)
		writeThrough(t, fa, "A", i)
		if i%2 == 0 {
			want(t, fa.Sync(bg), nil)
		}
		if n := others(); n != before {
			t.Errorf("moved by %d with writes here", n-before)
		}
	}
	want(t, fb.Sync(bg), nil)
	if n := others(); n != before+1 {
		t.Errorf("moved by %d with one of another", n-before)
	}
	want(t, errors.Join(fa.Close(bg), fb.Close(bg)), nil)
}

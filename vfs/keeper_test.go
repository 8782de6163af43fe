package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// bookKeeper keeps writes as a ledger does.
type bookKeeper struct {
	writes   []*KeptWrite // nil: stored
	reserved int
	released []uint64
	lost     []Ino
	over     bool // it got more than there was room for
}

func (k *bookKeeper) Reserve(_ context.Context, n int) (done func(), err error) {
	k.reserved += n
	return func() { k.reserved -= n }, nil
}

func (k *bookKeeper) Keep(w *KeptWrite) {
	k.over = k.over || len(w.Data) > k.reserved
	c := *w
	c.Data = bytes.Clone(w.Data)
	k.writes = append(k.writes, &c)
}

func (k *bookKeeper) Stored(ino Ino, seq uint64) {
	for i, w := range k.writes {
		if w != nil && w.Ino == ino && w.Seq <= seq {
			k.writes[i] = nil
			k.released = append(k.released, w.Seq)
		}
	}
}

func (k *bookKeeper) Lost(ino Ino) { k.lost = append(k.lost, ino) }

func (k *bookKeeper) Oldest(ino Ino) (seq uint64, ok bool) {
	for _, w := range k.writes {
		if w != nil && w.Ino == ino {
			return w.Seq, true
		}
	}
	return 0, false
}

func (k *bookKeeper) ID() uint64 { return 77 }

func (k *bookKeeper) live() (list []*KeptWrite) {
	for _, w := range k.writes {
		if w != nil {
			list = append(list, w)
		}
	}
	return list
}

func TestKeeper(t *testing.T) {
	c := mem.New(mem.Options{})
	fs := openTest(t, c)
	a, f, _, err := fs.Create(bg, Root, RootIno, "f", CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	if err != nil {
		t.Fatal(err)
	}
	k := &bookKeeper{}
	f.KeepWith(k)
	write := func(text string, off int64) {
		t.Helper()
		if _, err := f.WriteAt(bg, []byte(text), off); err != nil {
			t.Fatal(err)
		}
	}
	write("hello", 0)
	write("J", 0)
	if off, err := f.Append(WithWriteTag(bg, 9), []byte(" world")); err != nil || off != 5 {
		t.Fatal(off, err)
	}
	live := k.live()
	if len(live) != 3 || live[2].Off != 5 || live[2].Tag != 9 || live[0].Tag != 0 || live[0].Ino != a.Ino {
		t.Fatalf("kept %+v", live)
	}

	// A process that begins where this one is killed has the bytes.
	again := openBeside(t, c)
	g, err := again.Open(bg, Root, a.Ino, OpenRead|OpenWrite)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range live {
		want(t, g.Rewrite(bg, k, w), nil)
	}
	b := make([]byte, 20)
	if n, _ := g.ReadAt(bg, b, 0); string(b[:n]) != "Jello world" {
		t.Fatalf("%q", b[:n])
	}
	if len(k.live()) != len(live) {
		t.Error("let go before it is stored")
	}
	if err := g.Close(bg); err != nil {
		t.Fatal(err)
	}
	if len(k.live()) != 0 {
		t.Error("kept after it was stored")
	}
}

// A Keeper learns that a write which it has was replaced, before it lets go of it,
// and of nothing else.
func TestKeeperLost(t *testing.T) {
	c := mem.New(mem.Options{})
	fs := openTest(t, c)
	b, err := fs.CreateBucket(bg, "bucket", Root)
	want(t, err, nil)
	a, f, _, err := fs.Create(bg, Root, b.Ino, "f", CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	want(t, err, nil)
	k := &bookKeeper{}
	f.KeepWith(k)
	for _, replace := range []bool{false, true} {
		_, err = f.WriteAt(bg, []byte("x"), 0)
		want(t, err, nil)
		if replace {
			_, err := openBeside(t, c).PutObject(bg, ObjectName{Bucket: "bucket", Key: "f"}, strings.NewReader("y"), PutOptions{Size: 1})
			want(t, err, nil)
			want(t, f.Sync(bg), ErrStale)
		}
		want(t, f.Sync(bg), nil)
		if lost := slices.Contains(k.lost, a.Ino); lost != replace || len(k.live()) != 0 {
			t.Errorf("replaced %v, lost %v, %d writes are kept", replace, lost, len(k.live()))
		}
	}
	g, err := openBeside(t, c).Open(bg, Root, a.Ino, OpenWrite)
	want(t, err, nil)
	before, _, err := f.Epoch(bg)
	want(t, err, nil)
	now, wrote, err := g.Epoch(bg)
	want(t, err, nil)
	if wrote || before >= now {
		t.Errorf("the content is %d, %d was written before", now, before)
	}
	g.Resume(before)
	_, err = g.WriteAt(bg, []byte("z"), 0)
	want(t, err, ErrStale)
}

// What several Keepers have of one file, they let go of in the order of its writes,
// and a process that makes them again goes on with their numbers.
func TestKeepersTogether(t *testing.T) {
	c := mem.New(mem.Options{})
	fs := openTest(t, c)
	a, first, _, err := fs.Create(bg, Root, RootIno, "f", CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	want(t, err, nil)
	second, err := fs.Open(bg, Root, a.Ino, OpenWrite)
	want(t, err, nil)
	released := []uint64{}
	list := []*orderKeeper{{all: &released}, {all: &released}}
	first.KeepWith(list[0])
	second.KeepWith(list[1])
	for _, f := range []*File{first, second, second, first, second} {
		_, err := f.WriteAt(bg, []byte("x"), 0)
		want(t, err, nil)
	}
	again := openBeside(t, c)
	want(t, fs.Flush(bg, a.Ino), nil)
	if !slices.Equal(released, []uint64{1, 2, 3, 4, 5}) {
		t.Errorf("let go in the order %v", released)
	}
	g, err := again.Open(bg, Root, a.Ino, OpenWrite|OpenRewrites)
	want(t, err, nil)
	k := &bookKeeper{}
	want(t, g.Rewrite(bg, k, &KeptWrite{Ino: a.Ino, Epoch: list[0].epoch, Data: []byte("y"), Seq: 5}), nil)
	h, err := again.Open(bg, Root, a.Ino, OpenWrite)
	want(t, err, nil)
	h.KeepWith(k)
	_, err = h.WriteAt(bg, []byte("z"), 0)
	want(t, err, nil)
	if live := k.live(); len(live) != 1 || live[0].Seq <= 5 {
		t.Errorf("the next write has a number from before: %+v", live)
	}
}

// orderKeeper notes in which order several let go of writes.
type orderKeeper struct {
	bookKeeper
	all   *[]uint64
	epoch uint64
}

func (k *orderKeeper) Keep(w *KeptWrite) {
	k.epoch = w.Epoch
	k.bookKeeper.Keep(w)
}

func (k *orderKeeper) Stored(ino Ino, seq uint64) {
	n := len(k.released)
	k.bookKeeper.Stored(ino, seq)
	*k.all = append(*k.all, k.released[n:]...)
}

func TestKeeperStored(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	_, f, _, err := fs.Create(bg, Root, RootIno, "f", CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	if err != nil {
		t.Fatal(err)
	}
	k := &bookKeeper{}
	f.KeepWith(k)
	for range 2 {
		if _, err := f.WriteAt(bg, []byte("x"), 0); err != nil {
			t.Fatal(err)
		}
		if len(k.live()) != 1 {
			t.Fatalf("%d writes are kept", len(k.live()))
		}
		if err := fs.Flush(bg, f.Ino()); err != nil {
			t.Fatal(err)
		}
		if len(k.live()) != 0 {
			t.Fatal("kept after it was stored")
		}
	}
	if err := f.Close(bg); err != nil {
		t.Fatal(err)
	}
}

// What the process before stored, and could not let go of, is not written over what others
// stored since; what it did not store is.
func TestBesideRewrite(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "file", "0123456789")
	f := openFileAt(t, p.a, "file", 0)
	k := &endingKeeper{}
	f.KeepWith(k)
	writeThrough(t, f, "aaa", 0)
	writeThrough(t, f, "bbb", 3)
	k.ended = true // between the commit and the release
	want(t, f.Sync(bg), nil)
	writeThrough(t, f, "ccc", 7)
	spendTokens(t, p.b)
	g := openFileAt(t, p.b, "file", 0)
	wantThrough(t, g, "aaabbb6789")
	writeThrough(t, g, "YYYY", 1)
	want(t, g.Sync(bg), nil)
	live := k.live()
	if len(live) != 3 {
		t.Fatalf("%d writes are kept", len(live))
	}
	again, err := p.b.Open(bg, Root, f.Ino(), OpenRead|OpenWrite|OpenRewrites)
	want(t, err, nil)
	for _, w := range live {
		want(t, again.Rewrite(bg, k, w), nil)
	}
	want(t, again.Close(bg), nil)
	wantThrough(t, g, "aYYYYb6ccc")
	want(t, g.Close(bg), nil)

	// The next process numbers its writes above those.
	if seq := p.b.kept.Load(); seq < live[2].Seq {
		t.Errorf("the next write has the number %d, after %d", seq+1, live[2].Seq)
	}
}

// spendTokens has as many requests with tokens as there are records of them.
func spendTokens(t *testing.T, fs *FS) {
	t.Helper()
	const batch = 1 << 12
	for i := 0; i < 1<<16; i += batch {
		want(t, fs.kv.Update(bg, func(t cluster.Txn) (err error) {
			for j := range batch {
				done := record.Done{Process: 1}
				err = errors.Join(err, t.Set(record.OnceKey(uint16(i+j)), done.Encode()))
			}
			return err
		}), nil)
	}
}

// stageKV calls the test at each transaction that stores one inode, counted from one.
type stageKV struct {
	cluster.KV
	key    []byte
	n      int
	begin  func(n int)       // before it runs
	stored func(n int) error // each time that it has stored the inode; an error ends it
	ended  func(n int) error // after its commit: what the caller is told
}

type stageTxn struct {
	cluster.Txn
	kv  *stageKV
	hit *bool
}

func (kv *stageKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if kv.begin != nil {
		kv.begin(kv.n + 1)
	}
	hit := false
	err := kv.KV.Update(ctx, func(t cluster.Txn) error { return fn(stageTxn{t, kv, &hit}) })
	if hit && err == nil {
		if kv.n++; kv.ended != nil {
			err = kv.ended(kv.n)
		}
	}
	return err
}

func (t stageTxn) Set(key, value []byte) error {
	err := t.Txn.Set(key, value)
	if err == nil && bytes.Equal(key, t.kv.key) {
		if *t.hit = true; t.kv.stored != nil {
			err = t.kv.stored(t.kv.n + 1)
		}
	}
	return err
}

// inPlaces is a file of two gateways. The first one has written it in three places, each of
// which takes a transaction, and not stored that.
type inPlaces struct {
	*twoGateways
	f, g *File // at the first, and at the other one
	k    *endingKeeper
	kv   *stageKV // of the first one
}

func writeInPlaces(t *testing.T) *inPlaces {
	p := &inPlaces{twoGateways: openTwo(t), k: &endingKeeper{}}
	put(t, p.a, "file", strings.Repeat(".", 20))
	p.a.tune.flushOps = flushItemOps + flushCutOps
	p.f, p.g = openFileAt(t, p.a, "file", 0), openFileAt(t, p.b, "file", 0)
	p.f.KeepWith(p.k)
	for i, text := range []string{"aaa", "bbb", "ccc"} {
		writeThrough(t, p.f, text, int64(5*i))
	}
	p.kv = &stageKV{KV: p.a.kv, key: record.InodeKey(p.f.Ino())}
	setKV(p.a, p.kv)
	return p
}

// other has the other gateway store a byte in each place.
func (p *inPlaces) other() {
	p.t.Helper()
	for i := range int64(3) {
		writeThrough(p.t, p.g, "Y", 5*i+1)
	}
	want(p.t, p.g.Sync(bg), nil)
}

// next has the process after the first one make its writes again.
func (p *inPlaces) next() {
	p.t.Helper()
	again, err := p.b.Open(bg, Root, p.f.Ino(), OpenRead|OpenWrite|OpenRewrites)
	want(p.t, err, nil)
	for _, w := range p.k.live() {
		want(p.t, again.Rewrite(bg, p.k, w), nil)
	}
	want(p.t, again.Close(bg), nil)
}

// Of a flush of several transactions that was interrupted after some of them, what these
// stored is not made again.
func TestBesideRewriteRest(t *testing.T) {
	for done, text := range []string{"aaa..bbb..ccc.......", "aYa..bbb..ccc.......", "aYa..bYb..ccc.......", "aYa..bYb..cYc......."} {
		t.Run(fmt.Sprint(done), func(t *testing.T) {
			p := writeInPlaces(t)
			var died error
			if done < 3 {
				died = errSealed
			}
			p.kv.stored = func(n int) error {
				if n > done {
					return died
				}
				return nil
			}
			p.k.ended = true
			want(t, p.f.Sync(bg), died)
			p.other()
			p.next()
			wantThrough(t, p.g, text)
			want(t, p.g.Close(bg), nil)
		})
	}
}

// Of a write that was stored in part, the rest is made again.
func TestBesideRewritePart(t *testing.T) {
	p := writeInPlaces(t)
	writes := p.k.live()
	want(t, p.b.kv.Update(bg, func(t cluster.Txn) error {
		n, err := record.GetInode(t, p.f.Ino())
		if err != nil {
			return err
		}
		n.Stored.Note(record.StoredWrites{Keeper: p.k.ID(), Seq: writes[1].Seq, UpTo: 7})
		return record.PutInode(t, n)
	}), nil)
	p.next()
	wantThrough(t, p.g, ".......b..ccc.......")
	want(t, p.g.Close(bg), nil)
}

// A transaction of the process before that comes to the engine after the next one has begun
// to make its writes again does not store them over what others stored.
func TestBesideRewriteLate(t *testing.T) {
	p := writeInPlaces(t)
	p.a.tune.flushOps = unlimitedFlushOps
	p.k.ended = true
	attempts := 0
	p.kv.stored = func(int) error {
		if attempts++; attempts > 1 { // a process that ended does not try again
			return errSealed
		}
		again, err := p.b.Open(bg, Root, p.f.Ino(), OpenRead|OpenWrite|OpenRewrites)
		want(t, err, nil)
		want(t, again.Rewrite(bg, p.k, p.k.live()[0]), nil)
		return again.Close(bg)
	}
	want(t, p.f.Sync(bg), errSealed)
	wantThrough(t, p.g, "aaa.................")
	want(t, p.g.Close(bg), nil)
}

// What a flush stored although nobody could tell is not stored again over what others stored
// since; what was written since is.
func TestBesideUnknownFlush(t *testing.T) {
	for unknown, text := range map[int]string{1: "aYN..bbb..ccc.......", 2: "aYN..bYb..ccc.......", 3: "aYN..bYb..cYc......."} {
		t.Run(fmt.Sprint(unknown), func(t *testing.T) {
			p := writeInPlaces(t)
			p.kv.ended = func(n int) error {
				if n == unknown {
					return cluster.ErrUnavailable
				}
				return nil
			}
			want(t, p.f.Sync(bg), ErrUnavailable)
			p.other()
			writeThrough(t, p.f, "N", 2)
			p.a.tune.flushOps = unlimitedFlushOps
			want(t, p.f.Sync(bg), nil)
			wantThrough(t, p.f, text)
			wantThrough(t, p.g, text)
			if live := p.k.live(); len(live) > 0 {
				t.Errorf("%d writes are kept", len(live))
			}
			want(t, errors.Join(p.f.Close(bg), p.g.Close(bg)), nil)
		})
	}
}

// The same where the outcome shows only when it is tried again.
func TestBesideUnknownFlushLate(t *testing.T) {
	p := writeInPlaces(t)
	p.kv.stored = func(int) error { return cluster.ErrUnavailable }
	want(t, p.f.Sync(bg), ErrUnavailable)
	last := p.k.live()[2].Seq
	p.kv.stored = nil
	p.kv.begin = func(n int) {
		p.kv.begin = nil
		want(t, p.b.kv.Update(bg, func(t cluster.Txn) error {
			n, err := record.GetInode(t, p.f.Ino())
			if err != nil {
				return err
			}
			n.Stored.Note(record.StoredWrites{Keeper: p.k.ID(), Seq: last, UpTo: record.StoredWhole})
			return record.PutInode(t, n)
		}), nil)
	}
	want(t, p.f.Sync(bg), nil)
	wantThrough(t, p.g, strings.Repeat(".", 20))
	if live := p.k.live(); len(live) > 0 {
		t.Errorf("%d writes are kept", len(live))
	}
	want(t, errors.Join(p.f.Close(bg), p.g.Close(bg)), nil)
}

// endingKeeper hears of nothing that is stored once its process has ended.
type endingKeeper struct {
	bookKeeper
	ended bool
}

func (k *endingKeeper) Stored(ino Ino, seq uint64) {
	if !k.ended {
		k.bookKeeper.Stored(ino, seq)
	}
}

// What was written to a content that was replaced is not written to the next.
func TestKeeperReplaced(t *testing.T) {
	c := mem.New(mem.Options{})
	fs := openTest(t, c)
	if err := fs.Flush(bg, 12345); err != nil { // nobody has it open
		t.Fatal(err)
	}
	_, err := fs.CreateBucketWith(bg, "bucket", Root, BucketOptions{})
	want(t, err, nil)
	_, f, _, err := fs.Create(bg, Root, mustLookup(t, fs, RootIno, "bucket").Ino, "f",
		CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	want(t, err, nil)
	k := &bookKeeper{}
	f.KeepWith(k)
	_, err = f.WriteAt(bg, []byte("old"), 0)
	want(t, err, nil)
	live := k.live()
	if len(live) != 1 {
		t.Fatalf("%d writes are kept", len(live))
	}
	again := openBeside(t, c)
	_, err = again.PutObject(bg, ObjectName{"bucket", "f"}, strings.NewReader("new content"), PutOptions{Size: 11})
	want(t, err, nil)
	g, err := again.Open(bg, Root, live[0].Ino, OpenWrite)
	want(t, err, nil)
	want(t, g.Rewrite(bg, nil, live[0]), ErrStale)
	want(t, g.Close(bg), nil)
}

// openBeside opens the namespace as a process does whose predecessor was killed.
func openBeside(t *testing.T, c *cluster.Cluster) *FS {
	t.Helper()
	fs, err := Open(bg, c, Config{NoBackground: true})
	want(t, err, nil)
	return fs
}

// Room is reserved for all that is kept, also for copies by way of the buffers.
func TestKeeperReserve(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	_, f, _, err := fs.Create(bg, Root, RootIno, "f", CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	want(t, err, nil)
	k := &bookKeeper{}
	f.KeepWith(k)
	_, err = f.WriteAt(bg, make([]byte, 9<<20), 0)
	want(t, err, nil)
	_, err = f.Append(bg, []byte("x"))
	want(t, err, nil)
	before := len(k.writes)
	n, err := f.CopyRange(bg, 1<<20, f, 0, 1000)
	if n != 1000 || err != nil || len(k.writes) == before {
		t.Fatalf("%d bytes, %v; %d of it kept", n, err, len(k.writes)-before)
	}
	if k.over || k.reserved != 0 {
		t.Errorf("kept without room: %v; %d bytes stay reserved", k.over, k.reserved)
	}
	want(t, f.Close(bg), nil)
}

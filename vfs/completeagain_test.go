package vfs

import (
	"context"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
)

// dropBox makes a bucket that bob and alice may write to, and nobody may read.
func dropBox(t *testing.T, fs *FS) (bob context.Context) {
	t.Helper()
	bucketFS(t, fs)
	writes := func(user UserID) Grant { return Grant{Grantee: GranteeUser, User: user, Permission: PermWrite} }
	want(t, fs.SetBucketGrants(bg, "bucket", Grants{writes("bob"), writes("alice")}), nil)
	want(t, fs.SetBucketPolicy(bg, "bucket", []byte(`{"Statement":{"Effect":"Deny","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::bucket/*"}}`)), nil)
	return WithSubject(bg, modelSubjects["bob"])
}

// drop is an upload of dropBox that is completed, and the request that did it.
type drop struct {
	name  UploadName
	parts CompleteOptions
	info  ObjectInfo // what was answered
}

func (d *drop) again(ctx context.Context, fs *FS) (ObjectInfo, error) {
	return fs.CompleteUpload(ctx, d.name, d.parts)
}

func completeDrop(t *testing.T, ctx context.Context, fs *FS, key, body string) *drop {
	t.Helper()
	u, err := fs.CreateUpload(ctx, ObjectName{"bucket", key}, PutOptions{}, ChecksumSHA256, true)
	want(t, err, nil)
	d := &drop{name: ObjectName{"bucket", key}.Upload(u.ID)}
	p, err := fs.PutPart(ctx, d.name, 1, strings.NewReader(body), PutOptions{Size: int64(len(body))})
	want(t, err, nil)
	d.parts.Parts = []CompletePart{{Number: 1, ETag: p.ETag, Checksums: p.Checksums}}
	d.info, err = d.again(ctx, fs)
	want(t, err, nil)
	return d
}

// wantAgain wants the answer that was given: its checksums in their order, too.
func (d *drop) wantAgain(t *testing.T, ctx context.Context, fs *FS, what string) {
	t.Helper()
	got, err := d.again(ctx, fs)
	if err != nil || got.Key != d.info.Key || got.ETag != d.info.ETag || got.Size != d.info.Size ||
		!got.Modified.Equal(d.info.Modified) || !reflect.DeepEqual(got.Checksums, d.info.Checksums) {
		t.Errorf("%s: %s, %d bytes of %v with %v, %v; the first answer was %s, %d bytes of %v with %v", what,
			got.ETag, got.Size, got.Modified, got.Checksums, err, d.info.ETag, d.info.Size, d.info.Modified, d.info.Checksums)
	}
}

// TestCompleteAgain: who completed an upload and asks again gets the answer again, whether he may
// read the object or not, and whatever became of it.
func TestCompleteAgain(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bob := dropBox(t, fs)
		d := completeDrop(t, bob, fs, "k", strings.Repeat("body", 100))
		other := completeDrop(t, bob, fs, "dir/empty", "")
		folder := completeDrop(t, bob, fs, "folder/", "")
		if _, err := fs.HeadObject(bob, ObjectName{"bucket", "k"}, GetOptions{}); err == nil {
			t.Fatal("bob may read")
		}
		d.wantAgain(t, bob, fs, "who may not read")
		d.wantAgain(t, bg, fs, "the program")
		other.wantAgain(t, bob, fs, "an empty object")
		folder.wantAgain(t, bob, fs, "a folder")
		put(t, fs, "k", "other")
		d.wantAgain(t, bob, fs, "overwritten")
		_, err := fs.DeleteObject(bg, ObjectName{"bucket", "k"}, DeleteOptions{})
		want(t, err, nil)
		want(t, fs.collectUploadOf(d.name.ID), nil)
		d.wantAgain(t, bob, fs, "deleted")
		mustBeClean(t, fs)
	})
}

// TestCompleteAgainRights: nobody else learns of an object by asking for an upload to be
// completed, and nobody learns anything but with the ID that he was given.
func TestCompleteAgainRights(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	bob := dropBox(t, fs)
	d := completeDrop(t, bob, fs, "k", "body")
	refused := func(what string, ctx context.Context, d drop, as error) {
		t.Helper()
		if _, err := d.again(ctx, fs); err == nil {
			t.Errorf("%s: is answered", what)
		} else {
			wantErr(t, err, as)
		}
	}
	refused("another user who may write", WithSubject(bg, modelSubjects["alice"]), *d, ErrAccess)
	refused("a user without rights", WithSubject(bg, modelSubjects["carol"]), *d, ErrAccess)
	guess := *d
	guess.name.ID = d.name.ID[:31] + string("0123456789abcdef"[(strings.IndexByte("0123456789abcdef", d.name.ID[31])+1)%16])
	refused("another token", bob, guess, ErrNoSuchUpload)
	refused("another token, by the program", bg, guess, ErrNoSuchUpload)
	elsewhere := *d
	elsewhere.name.Key = "k2"
	refused("another key", bob, elsewhere, ErrNoSuchUpload)

	aborted, err := fs.CreateUpload(bob, ObjectName{"bucket", "k"}, PutOptions{}, "", false)
	want(t, err, nil)
	want(t, fs.AbortUpload(bob, ObjectName{"bucket", "k"}.Upload(aborted.ID)), nil)
	refused("aborted", bob, drop{name: ObjectName{"bucket", "k"}.Upload(aborted.ID), parts: d.parts}, ErrNoSuchUpload)

	want(t, fs.SetBucketGrants(bg, "bucket", nil), nil)
	refused("who may not write any more", bob, *d, ErrAccess)

	_, err = fs.DeleteObject(bg, ObjectName{"bucket", "k"}, DeleteOptions{})
	want(t, err, nil)
	want(t, fs.DeleteBucket(bg, "bucket"), nil)
	refused("the bucket is gone", bob, *d, ErrNoSuchBucket)
	dropBox(t, fs)
	refused("another bucket of that name", bob, *d, ErrNoSuchUpload)
}

// TestCompleteAgainStaged: an upload that is completed in several transactions is answered again, too.
func TestCompleteAgainStaged(t *testing.T) {
	fs := openTestWith(t, mem.New(mem.Options{Limits: cluster.Limits{Ops: 128, Bytes: 3 << 19}}), Config{InlineBytes: 100})
	bob := dropBox(t, fs)
	u, err := fs.CreateUpload(bob, ObjectName{"bucket", "k"}, PutOptions{}, "", false)
	want(t, err, nil)
	d := &drop{name: ObjectName{"bucket", "k"}.Upload(u.ID)}
	for n := 1; n <= 100; n++ {
		p, err := fs.PutPart(bob, d.name, n, strings.NewReader(strings.Repeat("p", 200)), PutOptions{Size: 200})
		want(t, err, nil)
		d.parts.Parts = append(d.parts.Parts, CompletePart{Number: n, ETag: p.ETag})
	}
	d.info, err = d.again(bob, fs)
	want(t, err, nil)
	d.wantAgain(t, bob, fs, "staged")
	mustBeClean(t, fs)
}

// TestCompleteAgainLater: an answer is kept for a day.
func TestCompleteAgainLater(t *testing.T) {
	var away time.Duration
	fs := openTestWith(t, mem.New(mem.Options{}), Config{Now: func() time.Time { return time.Unix(1.7e9, 0).Add(away) }})
	bob := dropBox(t, fs)
	d := completeDrop(t, bob, fs, "k", "body")
	away = 24*time.Hour - 1
	d.wantAgain(t, bob, fs, "within a day")
	away++
	_, err := d.again(bob, fs)
	wantErr(t, err, ErrNoSuchUpload)
}

// TestCompletedBounded: the answers that are kept have a bounded number of places, the last ones
// take those of the first.
func TestCompletedBounded(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	bob := dropBox(t, fs)
	first := completeDrop(t, bob, fs, "first", "body")
	from, to := record.Table(record.TabAnswer)
	kept := func() (n int) {
		want(t, fs.view(bg, func(r cluster.Reader) error {
			n = 0
			return r.Scan(from, to, cluster.ScanOptions{}, func(_, _ []byte) error { n++; return nil })
		}), nil)
		return n
	}
	number, _, _ := keypath.ParseUploadID(first.name.ID)
	for id := uint64(0); ContentID(id) != number+1<<16-1; { // numbers go by until the next upload's has the same place
		var err error
		id, err = fs.ids.Take(bg)
		want(t, err, nil)
	}
	second := completeDrop(t, bob, fs, "second", "body")
	if n := kept(); n != 1 {
		t.Errorf("%d answers are kept, want 1", n)
	}
	second.wantAgain(t, bob, fs, "the last one")
	_, err := first.again(bob, fs)
	wantErr(t, err, ErrNoSuchUpload)
}

// blindKV notes reads of what is kept for who asks again, which would cost round trips.
type blindKV struct {
	cluster.KV
	reads atomic.Int64
}

func (k *blindKV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	return k.KV.View(ctx, func(r cluster.Reader) error { return fn(blindReader{r, k}) })
}

func (k *blindKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	return k.KV.Update(ctx, func(t cluster.Txn) error { return fn(blindTxn{blindReader{t, k}, t}) })
}

func (k *blindKV) note(keys ...[]byte) {
	for _, key := range keys {
		if key[0] == record.TabAnswer {
			k.reads.Add(1)
		}
	}
}

type blindReader struct {
	cluster.Reader
	kv *blindKV
}

func (r blindReader) Get(key []byte) ([]byte, error) {
	r.kv.note(key)
	return r.Reader.Get(key)
}

func (r blindReader) GetMany(keys [][]byte) ([][]byte, error) {
	r.kv.note(keys...)
	return r.Reader.GetMany(keys)
}

type blindTxn struct {
	blindReader
	t cluster.Txn
}

func (t blindTxn) Set(key, value []byte) error { return t.t.Set(key, value) }

func (t blindTxn) Delete(key []byte) error { return t.t.Delete(key) }

func (t blindTxn) Expect(key, value []byte) error {
	t.kv.note(key)
	return t.t.Expect(key, value)
}

// TestCompleteBlind: what is kept for who asks again costs who does not a write, and neither a
// round trip nor a conflict.
func TestCompleteBlind(t *testing.T) {
	c := mem.New(mem.Options{})
	kv := &blindKV{KV: c.KV}
	c.KV = kv
	fs := openTest(t, c)
	bob := dropBox(t, fs)
	d := completeDrop(t, bob, fs, "k", "body")
	if n := kv.reads.Load(); n != 0 {
		t.Errorf("a completion reads it %d times", n)
	}
	d.wantAgain(t, bob, fs, "again")
	if n := kv.reads.Load(); n != 1 {
		t.Errorf("a second completion reads it %d times", n)
	}
}

package vfs

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// evict has the others find nothing of fs, as if it had stood still until they put it out.
func (p *twoGateways) evict(fs *FS) {
	p.t.Helper()
	id := fs.session.ID()
	want(p.t, p.c.KV.Update(bg, func(t cluster.Txn) error {
		return errors.Join(t.Delete(record.FenceKey(id)), t.Delete(record.BeatKey(id)), t.Delete(record.ReadKey(id)), record.MarkLeft(t))
	}), nil)
}

// sweepUntil has both look for what was left until ok.
func (p *twoGateways) sweepUntil(ok func() bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	for !ok() {
		want(p.t, errors.Join(ctx.Err(), p.a.sweepLeft(ctx), p.b.sweepLeft(ctx)), nil)
		time.Sleep(time.Millisecond) // until beats have told
	}
}

// counters returns numbers of the store.
func (p *twoGateways) counters(names ...string) (n []uint64) {
	p.t.Helper()
	want(p.t, p.c.KV.View(bg, func(r cluster.Reader) (err error) {
		n, err = record.Counters(r, names...)
		return err
	}), nil)
	return n
}

// What a gateway stores after it was put out, and after what it left was looked for, is
// removed once that gateway has ended.
func TestBesideLate(t *testing.T) {
	p := openTwo(t)
	late := p.open(beside(t, p.c))
	want(t, late.ids.Reserve(bg), nil)
	put(t, p.a, "key", blobBody)
	p.evict(late)
	p.sweepUntil(func() bool {
		n := p.counters(record.CounterSwept, record.CounterLeft)
		return n[0] >= n[1]
	})
	leaveBlob(t, late, 0)
	leaveBlob(t, late, 0)
	if n := countBlobs(t, p.c); n != 3 {
		t.Fatalf("%d of 3 blobs", n)
	}
	_ = late.Close(bg) // what it has to flush, and its numbers: it is not to
	want(t, late.kv.Close(), nil)
	p.sweepUntil(func() bool { return countBlobs(t, p.c) == 1 })
	rep, err := p.a.Check(bg, CheckOptions{Data: true})
	if want(t, err, nil); len(rep.Problems) > 0 {
		t.Errorf("check: %+v", rep.Problems)
	}
}

// The same of a blob that comes while the others look for what was left, where they have been.
func TestBesideLateMeanwhile(t *testing.T) {
	p := openTwo(t)
	late := p.open(beside(t, p.c))
	want(t, late.ids.Reserve(bg), nil)
	put(t, p.b, "key", blobBody) // of a number behind: of who leased later
	p.evict(late)
	came := false
	p.a.quarantine.Engine = listed{p.c.Blobs, sync.OnceFunc(func() {
		came = true
		leaveBlob(t, late, 0)
		_ = late.Close(bg)
		want(t, late.kv.Close(), nil)
	})}
	p.sweepUntil(func() bool { return came })
	p.sweepUntil(func() bool { return countBlobs(t, p.c) == 1 })
}

// listed calls after when it was listed.
type listed struct {
	cluster.Blobs
	after func()
}

func (l listed) List(ctx context.Context, from cluster.BlobID, fn func(cluster.BlobInfo) error) error {
	err := l.Blobs.List(ctx, from, fn)
	l.after()
	return err
}

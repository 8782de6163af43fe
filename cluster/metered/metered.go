package metered

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ogw/cluster"
)

// Wrap returns c with metrics, registered at r.
func Wrap(c *cluster.Cluster, r prometheus.Registerer) (*cluster.Cluster, error) {
	m, err := newMetrics(r)
	if err != nil {
		return nil, err
	}
	out := *c
	out.KV = &kv{KV: c.KV, m: m, view: m.op("kv", "view"), update: m.op("kv", "update"), sync: m.op("kv", "sync")}
	out.Blobs = &blobs{
		Blobs: c.Blobs, m: m,
		read: m.op("blobs", "read"), create: m.op("blobs", "create"), commit: m.op("blobs", "commit"),
		remove: m.op("blobs", "delete"), list: m.op("blobs", "list"), locate: m.op("blobs", "locate"), verify: m.op("blobs", "verify"),
		in: m.bytes.WithLabelValues("written"), out: m.bytes.WithLabelValues("read"),
	}
	return &out, nil
}

type kv struct {
	cluster.KV
	m                  *metrics
	view, update, sync op
}

// View implements cluster.KV.
func (k *kv) View(ctx context.Context, fn func(cluster.Reader) error) error {
	start := time.Now()
	err := k.KV.View(ctx, fn)
	k.view.done(start, err)
	return err
}

// Peek implements cluster.KV.
func (k *kv) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	start := time.Now()
	err := k.KV.Peek(ctx, fn)
	k.view.done(start, err)
	return err
}

// Update implements cluster.KV.
func (k *kv) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	start, runs := time.Now(), 0
	err := k.KV.Update(ctx, func(t cluster.Txn) error {
		runs++
		return fn(t)
	})
	if runs > 1 {
		k.m.attempts.Add(float64(runs - 1))
	}
	k.update.done(start, err)
	return err
}

// Sync implements cluster.KV.
func (k *kv) Sync(ctx context.Context) error {
	start := time.Now()
	err := k.KV.Sync(ctx)
	k.sync.done(start, err)
	return err
}

type blobs struct {
	cluster.Blobs
	m                                                  *metrics
	read, create, commit, remove, list, locate, verify op
	in, out                                            prometheus.Counter
}

// ReadAt implements cluster.BlobReader.
func (b *blobs) ReadAt(ctx context.Context, id cluster.BlobID, p []byte, off int64) (int, error) {
	start := time.Now()
	n, err := b.Blobs.ReadAt(ctx, id, p, off)
	b.read.done(start, err)
	b.out.Add(float64(n))
	return n, err
}

// ReadSummed implements cluster.BlobCache. It counts as a ReadAt.
func (b *blobs) ReadSummed(ctx context.Context, blob cluster.SummedBlob, p []byte, off int64) (int, error) {
	start := time.Now()
	n, err := cluster.ReadSummed(ctx, b.Blobs, blob, p, off)
	b.read.done(start, err)
	b.out.Add(float64(n))
	return n, err
}

// Splice implements cluster.BlobSplicer. It counts as a ReadAt, unless that is to
// follow.
func (b *blobs) Splice(ctx context.Context, id cluster.BlobID, w int, off, n int64) (int64, error) {
	start := time.Now()
	n, err := cluster.SplicerOf(b.Blobs).Splice(ctx, id, w, off, n)
	if err == nil {
		b.read.done(start, nil)
		b.out.Add(float64(n))
	}
	return n, err
}

// Create implements cluster.Blobs.
func (b *blobs) Create(ctx context.Context, id cluster.BlobID, sizeHint int64) (cluster.BlobWriter, error) {
	start := time.Now()
	w, err := b.Blobs.Create(ctx, id, sizeHint)
	b.create.done(start, err)
	if err != nil {
		return nil, err
	}
	return &writer{w, b}, nil
}

// Delete implements cluster.Blobs.
func (b *blobs) Delete(ctx context.Context, ids ...cluster.BlobID) error {
	start := time.Now()
	err := b.Blobs.Delete(ctx, ids...)
	b.remove.done(start, err)
	return err
}

// List implements cluster.Blobs.
func (b *blobs) List(ctx context.Context, from cluster.BlobID, fn func(cluster.BlobInfo) error) error {
	start := time.Now()
	err := b.Blobs.List(ctx, from, fn)
	b.list.done(start, err)
	return err
}

// Probe implements cluster.BlobProber. It counts as a List.
func (b *blobs) Probe(ctx context.Context, from cluster.BlobID, fn func(cluster.BlobInfo, error) error) error {
	start := time.Now()
	err := cluster.ProbeBlobs(ctx, b.Blobs, from, fn)
	b.list.done(start, err)
	return err
}

// Locate implements cluster.Blobs.
func (b *blobs) Locate(ctx context.Context, id cluster.BlobID) ([]cluster.Location, error) {
	start := time.Now()
	l, err := b.Blobs.Locate(ctx, id)
	b.locate.done(start, err)
	return l, err
}

// Verify implements cluster.BlobVerifier.
func (b *blobs) Verify(ctx context.Context, id cluster.BlobID) error {
	start := time.Now()
	err := cluster.VerifyBlob(ctx, b.Blobs, id)
	b.verify.done(start, err)
	return err
}

// Forget implements cluster.BlobCache.
func (b *blobs) Forget(contents ...uint64) { cluster.ForgetBlobs(b.Blobs, contents...) }

// Claim implements cluster.Claimer. It happens once, and is not measured.
func (b *blobs) Claim(ctx context.Context, store, known uint64) (before, now uint64, err error) {
	return cluster.ClaimBlobs(ctx, b.Blobs, store, known)
}

type writer struct {
	cluster.BlobWriter
	b *blobs
}

// Commit implements cluster.BlobWriter. Its time is that of making the blob
// durable; the bytes were streamed before.
func (w *writer) Commit(ctx context.Context) (size int64, crc uint64, err error) {
	start := time.Now()
	size, crc, err = w.BlobWriter.Commit(ctx)
	w.b.commit.done(start, err)
	if err == nil {
		w.b.in.Add(float64(size))
	}
	return size, crc, err
}

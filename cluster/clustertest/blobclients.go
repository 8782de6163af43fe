package clustertest

import (
	"context"
	"errors"
	"sync/atomic"

	"ogw/cluster"
)

// blobsInTurns is two clients as one: every second call goes to the other. What one
// stored, the other one reads, lists and deletes.
type blobsInTurns struct {
	clients [2]cluster.Blobs
	calls   atomic.Uint64
}

func (b *blobsInTurns) next() cluster.Blobs { return b.clients[b.calls.Add(1)%2] }

func (b *blobsInTurns) ReadAt(ctx context.Context, id cluster.BlobID, p []byte, off int64) (int, error) {
	return b.next().ReadAt(ctx, id, p, off)
}
func (b *blobsInTurns) ReadScattered(ctx context.Context, id cluster.BlobID, into cluster.Buffers, off int64) (int, error) {
	return cluster.ReadScattered(ctx, b.next(), id, into, off)
}
func (b *blobsInTurns) Create(ctx context.Context, id cluster.BlobID, sizeHint int64) (cluster.BlobWriter, error) {
	return b.next().Create(ctx, id, sizeHint)
}
func (b *blobsInTurns) Delete(ctx context.Context, ids ...cluster.BlobID) error {
	return b.next().Delete(ctx, ids...)
}
func (b *blobsInTurns) List(ctx context.Context, from cluster.BlobID, fn func(cluster.BlobInfo) error) error {
	return b.next().List(ctx, from, fn)
}
func (b *blobsInTurns) Locate(ctx context.Context, id cluster.BlobID) ([]cluster.Location, error) {
	return b.next().Locate(ctx, id)
}
func (b *blobsInTurns) Usage(ctx context.Context) (cluster.Usage, error) { return b.next().Usage(ctx) }
func (b *blobsInTurns) Claim(ctx context.Context, store, known uint64) (before, now uint64, err error) {
	return cluster.ClaimBlobs(ctx, b.next(), store, known)
}
func (b *blobsInTurns) Close() error { return errors.Join(b.clients[0].Close(), b.clients[1].Close()) }

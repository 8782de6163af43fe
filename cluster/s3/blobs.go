package s3

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/frame"
	"ogw/cluster/internal/occ"

	"github.com/minio/minio-go/v7"
)

// Blobs is the data half of a store.
type Blobs struct {
	client    *minio.Core
	transport *http.Transport
	gate      *occ.Gate
	endpoint  *url.URL
	bucket    string
	prefix    string
	tries     tries
	check     lastCheck
	claimed   atomic.Bool // a claim found, or made, the object of the store
}

// lastCheck is the last look whether the bucket answers.
type lastCheck struct {
	mu  sync.Mutex // held over the look
	at  time.Time
	err error
}

const (
	// checkEvery is how old an answer may be that shows whether the bucket answers.
	checkEvery = 5 * time.Second
	// checkTimeout bounds the look itself: the caller waits for it.
	checkTimeout = 5 * time.Second
)

// enter lets a call in.
func (b *Blobs) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.gate.Enter()
}

func (b *Blobs) blobPrefix() string { return b.prefix + "blob/" }

// storeKey is the key of the object that names the store whose objects they are.
func (b *Blobs) storeKey() string { return b.prefix + "store" }

func (b *Blobs) key(id cluster.BlobID) string { return b.blobPrefix() + id.String() }

// parseKey returns the blob of a key; false for what is none of ours.
func (b *Blobs) parseKey(key string) (cluster.BlobID, bool) {
	raw, err := hex.DecodeString(strings.TrimPrefix(key, b.blobPrefix()))
	if err != nil {
		return cluster.BlobID{}, false
	}
	id, err := cluster.ParseBlobID(raw)
	return id, err == nil && b.key(id) == key
}

// Delete implements cluster.Blobs.
func (b *Blobs) Delete(ctx context.Context, ids ...cluster.BlobID) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.gate.Leave()
	if len(ids) == 1 {
		return b.deleteOne(ctx, b.key(ids[0]))
	}
	results, err := b.client.RemoveObjectsWithIter(ctx, b.bucket, func(yield func(minio.ObjectInfo) bool) {
		for _, id := range ids {
			if !yield(minio.ObjectInfo{Key: b.key(id)}) {
				return
			}
		}
	}, minio.RemoveObjectsOptions{})
	if err != nil {
		return mapError(err)
	}
	for r := range results {
		if err == nil && codeOf(r.Err) != minio.NoSuchKey {
			err = r.Err
		}
	}
	if err == nil {
		return ctx.Err() // else some were not asked for
	}
	return callerOr(ctx, err)
}

func (b *Blobs) deleteOne(ctx context.Context, key string) error {
	bounded, cancel := bound(ctx)
	defer cancel()
	err := b.client.RemoveObject(bounded, b.bucket, key, minio.RemoveObjectOptions{})
	if codeOf(err) == minio.NoSuchKey {
		return nil
	}
	return callerOr(ctx, err)
}

// before returns the greatest ID below id, which is not zero.
func before(id cluster.BlobID) cluster.BlobID {
	if id.Seq == 0 {
		id.Content--
	}
	id.Seq--
	return id
}

// List implements cluster.Blobs. One request returns a thousand.
func (b *Blobs) List(ctx context.Context, from cluster.BlobID, fn func(cluster.BlobInfo) error) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.gate.Leave()
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	o := minio.ListObjectsOptions{Prefix: b.blobPrefix(), Recursive: true}
	if from != (cluster.BlobID{}) {
		o.StartAfter = b.key(before(from))
	}
	last := ""
	for listed := range b.client.ListObjectsIter(bounded, b.bucket, o) {
		if listed.Err != nil {
			return callerOr(ctx, listed.Err)
		}
		if listed.Key <= last {
			return fmt.Errorf("%w: %s is listed behind %s, not in the order of keys", ErrUnfit, listed.Key, last)
		}
		last = listed.Key
		id, ours := b.parseKey(listed.Key)
		if !ours || id.Less(from) {
			continue
		}
		if err := fn(cluster.BlobInfo{ID: id, Size: frame.DataSize(listed.Size), Modified: listed.LastModified}); err != nil {
			if errors.Is(err, cluster.ErrStop) {
				return nil
			}
			return err
		}
	}
	return ctx.Err()
}

// Locate implements cluster.Blobs: the endpoint, and bucket and key there.
func (b *Blobs) Locate(ctx context.Context, id cluster.BlobID) ([]cluster.Location, error) {
	if err := b.enter(ctx); err != nil {
		return nil, err
	}
	defer b.gate.Leave()
	found, err := b.stat(ctx, b.key(id))
	if err != nil {
		return nil, err
	}
	detail := fmt.Sprintf("object of %d bytes", found.size)
	if found.class != "" {
		detail += ", " + found.class
	}
	return []cluster.Location{{
		Node: b.endpoint.Hostname(), Address: b.endpoint.String(),
		Path: "s3://" + b.bucket + "/" + b.key(id), Detail: detail, Primary: true,
	}}, nil
}

// Usage implements cluster.Blobs. S3 reports no usage, but whether it answers, which
// is asked every checkEvery at the most.
func (b *Blobs) Usage(ctx context.Context) (cluster.Usage, error) {
	if err := b.enter(ctx); err != nil {
		return cluster.Usage{}, err
	}
	defer b.gate.Leave()
	b.check.mu.Lock()
	defer b.check.mu.Unlock()
	if b.check.at.IsZero() || time.Since(b.check.at) >= checkEvery {
		bounded, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		_, err := b.stat(bounded, b.storeKey())
		switch {
		case ctx.Err() != nil:
			return cluster.Usage{}, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			err = fmt.Errorf("%w: bucket %s at %s did not answer for %v", cluster.ErrUnavailable, b.bucket, b.endpoint, checkTimeout)
		case errors.Is(err, cluster.ErrNotFound) && b.claimed.Load():
			err = fmt.Errorf("%w: bucket %s at %s has no store below %s any more", cluster.ErrUnavailable, b.bucket, b.endpoint, b.prefix)
		case errors.Is(err, cluster.ErrNotFound): // nobody claimed it
			err = nil
		}
		b.check.at, b.check.err = time.Now(), err
	}
	return cluster.Usage{}, b.check.err
}

// Close implements cluster.Blobs.
func (b *Blobs) Close() error {
	if !b.gate.Close() {
		return cluster.ErrClosed
	}
	b.transport.CloseIdleConnections()
	return nil
}

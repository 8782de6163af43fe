package vfs

import (
	"context"
	"fmt"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// Durability is when a change is acknowledged. It is a setting of the whole
// (Config.Async), and of buckets, for what is done to their objects through
// S3 and REST; there it goes before that of the whole.
//
// It is about metadata: blobs are durable before their metadata are written.
// What asks to be durable is so whatever the setting: fsync, NFS COMMIT.
type Durability string

const (
	// Sync acknowledges what survives the loss of power.
	Sync Durability = "sync"
	// Async acknowledges what will within AsyncBound, in the order of the
	// acknowledgements. The end of the process loses nothing, a power cut
	// the last moment, as a whole.
	Async Durability = "async"
	// AsyncBound is how long an acknowledged change may be lost.
	AsyncBound = cluster.RelaxedBound
)

// attrDurability is the attribute of a bucket that holds its Durability.
const attrDurability = "durability"

// ParseDurability reads a setting; ErrInvalid.
func ParseDurability(s string) (Durability, error) {
	switch d := Durability(s); d {
	case Sync, Async:
		return d, nil
	}
	return "", fmt.Errorf("%w: durability %q; there is %q and %q", ErrInvalid, s, Sync, Async)
}

// Durability returns the setting of the whole.
func (fs *FS) Durability() Durability {
	if fs.cfg.Async {
		return Async
	}
	return Sync
}

// BucketDurability returns the setting of a bucket, "" if it has none of its
// own; ErrNoSuchBucket.
func (fs *FS) BucketDurability(ctx context.Context, bucket string) (Durability, error) {
	_, v, err := fs.BucketAttr(ctx, bucket, attrDurability)
	return Durability(v), err
}

// SetBucketDurability changes it, "" for that of the whole. What was
// acknowledged before is durable when it returns.
func (fs *FS) SetBucketDurability(ctx context.Context, bucket string, d Durability) error {
	var value []byte
	if d != "" {
		if _, err := ParseDurability(string(d)); err != nil {
			return err
		}
		value = []byte(d)
	}
	if err := fs.SetBucketAttr(cluster.Strict(ctx), bucket, attrDurability, value); err != nil {
		return err
	}
	if d != "" {
		fs.tuned.Store(true)
	}
	return nil
}

// findTuned reports whether any bucket has a durability of its own: while none
// has, nobody need ask.
func (fs *FS) findTuned(ctx context.Context) error {
	if !fs.feed.Complete() {
		return nil // engines that processes share commit durably, whatever is asked for
	}
	return fs.view(ctx, func(r cluster.Reader) error {
		return r.Scan([]byte{record.TabBucket}, []byte{record.TabBucket + 1}, cluster.ScanOptions{}, func(_, v []byte) error {
			b, err := record.DecodeBucket(v)
			if err == nil && b[attrDurability] != nil {
				fs.tuned.Store(true)
				return cluster.ErrStop
			}
			return nil // a damaged record is the business of who asks for it
		})
	})
}

// objectCtx returns a context with the durability of a bucket; without a
// bucket the key begins with its name.
func (fs *FS) objectCtx(ctx context.Context, name ObjectName) context.Context {
	if cluster.AsksDurability(ctx) {
		return ctx
	}
	if !fs.tuned.Load() {
		return fs.durably(ctx)
	}
	bucket := name.Bucket
	if bucket == "" {
		bucket, _, _ = strings.Cut(name.Key, "/")
	}
	// An error, such as that there is no such bucket, meets the caller soon.
	d, _ := fs.BucketDurability(cluster.Relaxed(ctx), bucket)
	switch d {
	case Async:
		return cluster.Relaxed(ctx)
	case Sync:
		return cluster.Strict(ctx)
	}
	return fs.durably(ctx)
}

package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"ogw/cluster"

	"github.com/minio/minio-go/v7"
)

// countDigits are those of a count in the name of its object, so that the names
// sort as the counts do.
const countDigits = 16

func (b *Blobs) claimPrefix() string { return b.prefix + "claim/" }

// claimTries bounds how often others may be faster with a count; gateways of a store
// take turns, and one that lost it may claim late.
const claimTries = 16

// Claim implements cluster.Claimer. It costs six requests.
func (b *Blobs) Claim(ctx context.Context, store, known uint64) (before, now uint64, err error) {
	if err := b.enter(ctx); err != nil {
		return 0, 0, err
	}
	defer b.gate.Leave()
	if err := b.bind(ctx, fmt.Sprintf("%016x", store), known); err != nil {
		return 0, 0, err
	}
	b.claimed.Store(true)
	for range claimTries {
		before, now, err = b.count(ctx, known)
		if !errors.Is(err, cluster.ErrExists) {
			return before, now, err
		}
	}
	return 0, 0, fmt.Errorf("%w: %d other claims of bucket %s at %s were faster", cluster.ErrUnavailable, claimTries, b.bucket, b.endpoint)
}

// count is one try to count a claim. It returns ErrExists if another one was
// faster: has the same count, or a greater one and has removed that.
func (b *Blobs) count(ctx context.Context, known uint64) (before, now uint64, err error) {
	old, before, err := b.claims(ctx)
	if err != nil {
		return 0, 0, err
	}
	now = max(before, known) + 1
	key, number := fmt.Sprintf("%s%0*x", b.claimPrefix(), countDigits, now), newNumber()
	// It has a byte, since an object without one has no first byte to be found by.
	_, err = b.put(ctx, key, []byte{0}, number)
	switch err := b.outcome(ctx, key, number, err); {
	case codeOf(err) == minio.PreconditionFailed: // it was there, and is gone
		return 0, 0, fmt.Errorf("%w: claim %d", cluster.ErrExists, now)
	case err != nil:
		return 0, 0, err
	}
	_, top, err := b.claims(ctx)
	if err != nil {
		return 0, 0, err
	}
	if top > now {
		return 0, 0, fmt.Errorf("%w: claim %d", cluster.ErrExists, now)
	}
	for _, key := range old {
		_ = b.deleteOne(ctx, key) // the next claim tries again
	}
	return before, now, nil
}

// bind sees to it that the objects are those of the store.
func (b *Blobs) bind(ctx context.Context, store string, known uint64) error {
	found, err := b.boundTo(ctx)
	if errors.Is(err, cluster.ErrNotFound) && known == 0 {
		number := newNumber()
		_, err = b.put(ctx, b.storeKey(), []byte(store), number)
		if err = b.outcome(ctx, b.storeKey(), number, err); !errors.Is(err, cluster.ErrExists) {
			return err
		}
		found, err = b.boundTo(ctx)
	}
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return fmt.Errorf("%w: the metadata are of store %s, and bucket %s at %s has no store below %s", cluster.ErrMismatch, store, b.bucket, b.endpoint, b.prefix)
	case err != nil:
		return err
	case found != store:
		return fmt.Errorf("%w: the metadata are of store %s, what is in bucket %s at %s below %s is of store %s", cluster.ErrMismatch, store, b.bucket, b.endpoint, b.prefix, found)
	}
	return nil
}

// boundTo returns the ID of the store whose objects they are.
func (b *Blobs) boundTo(ctx context.Context) (string, error) {
	bounded, cancel := bound(ctx)
	defer cancel()
	body, _, err := b.get(bounded, b.storeKey(), 0, 63)
	if err != nil {
		return "", missingOr(ctx, err)
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, 64))
	return string(text), callerOr(ctx, err)
}

// claims returns the objects that earlier claims left, and the greatest count.
func (b *Blobs) claims(ctx context.Context) (keys []string, count uint64, err error) {
	bounded, cancel := bound(ctx)
	defer cancel()
	for listed := range b.client.ListObjectsIter(bounded, b.bucket, minio.ListObjectsOptions{Prefix: b.claimPrefix(), Recursive: true}) {
		if listed.Err != nil {
			return nil, 0, callerOr(ctx, listed.Err)
		}
		if n, err := strconv.ParseUint(strings.TrimPrefix(listed.Key, b.claimPrefix()), 16, 64); err == nil {
			keys, count = append(keys, listed.Key), max(count, n)
		}
	}
	return keys, count, callerOr(ctx, bounded.Err())
}

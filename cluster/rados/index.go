package rados

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"ogw/cluster"

	"github.com/minio/crc64nvme"
)

const (
	// shards is how many objects the index is divided into. Ceph warns of objects
	// with more than 200,000 pairs, which this makes 50 million blobs.
	shards = 256

	// entryLife is how old the entry of a writer gets before it is written anew, with
	// the next part or the head.
	entryLife = time.Hour
	// writerLimit is how old it may be at the head: the time that a writer may do nothing.
	writerLimit = 12 * time.Hour
	// staleEntry is the age from which an entry without a head is of a writer that
	// is gone. The clocks of gateways may differ by the time between it and writerLimit.
	staleEntry = 24 * time.Hour
)

// entry names a blob that there is, or was to be, and its writer.
type entry struct {
	id    cluster.BlobID
	token token
	at    time.Time
}

func (e entry) key() string { return e.id.String() + "." + e.token.String() }

func shardName(shard int) string { return fmt.Sprintf("index/%02x", shard) }

// shardOf spreads the blobs evenly, whatever pattern their IDs have.
func shardOf(id cluster.BlobID) int {
	return int(crc64nvme.Checksum(id.Append(nil)) % shards)
}

// add writes the entry.
func (b *Blobs) add(ctx context.Context, e entry) error {
	return b.pool.Add(ctx, shardName(shardOf(e.id)), e.key(), binary.BigEndian.AppendUint64(nil, uint64(e.at.Unix())))
}

// parseEntry decodes what add wrote.
func parseEntry(p Entry) (entry, error) {
	const idDigits, digits = 2 * cluster.BlobIDBytes, 2*cluster.BlobIDBytes + 1 + 16
	if len(p.Key) != digits || p.Key[idDigits] != '.' || len(p.Value) != 8 {
		return entry{}, fmt.Errorf("%w: entry %q of the index", cluster.ErrCorrupt, p.Key)
	}
	raw, err := hex.DecodeString(p.Key[:idDigits])
	t, e := parseToken(p.Key[idDigits+1:])
	if err = errors.Join(err, e); err != nil {
		return entry{}, fmt.Errorf("%w: entry %q of the index: %w", cluster.ErrCorrupt, p.Key, err)
	}
	id, err := cluster.ParseBlobID(raw)
	return entry{id, t, time.Unix(int64(binary.BigEndian.Uint64(p.Value)), 0)}, err
}

// drop removes the entries of blobs whose parts are gone.
func (b *Blobs) drop(ctx context.Context, entries ...entry) error {
	var keys [shards][]string
	for _, e := range entries {
		keys[shardOf(e.id)] = append(keys[shardOf(e.id)], e.key())
	}
	var used []int
	for shard := range keys {
		if len(keys[shard]) > 0 {
			used = append(used, shard)
		}
	}
	return parallel(ctx, len(used), func(i int) error {
		return b.pool.Drop(ctx, shardName(used[i]), keys[used[i]]...)
	})
}

// clear removes what a writer left: the parts from 1 on, then the entry. A head with
// another token is another one's.
func (b *Blobs) clear(ctx context.Context, e entry, parts int64) error {
	for n := int64(1); n < parts; n++ {
		if err := b.pool.Remove(ctx, partName(e.id, e.token, n)); err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return err
		}
	}
	return b.drop(ctx, e)
}

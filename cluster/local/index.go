package local

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/cluster/local/internal/ioerr"

	"github.com/cockroachdb/pebble/v2"
)

// index finds blobs.
type index struct{ kv *KV }

// get returns ErrNotFound for blobs that do not exist.
func (x index) get(id cluster.BlobID) (place, error) {
	if err := x.kv.gate.Enter(); err != nil {
		return place{}, err
	}
	defer x.kv.gate.Leave()
	value, closer, err := x.kv.db.Get(blobKey(id))
	if errors.Is(err, pebble.ErrNotFound) {
		return place{}, fmt.Errorf("%w: %v", cluster.ErrNotFound, id)
	}
	if err != nil {
		return place{}, ioerr.Map(err)
	}
	p, err := parsePlace(value)
	if e := closer.Close(); err == nil {
		err = ioerr.Map(e)
	}
	if err != nil {
		return p, fmt.Errorf("blob %v: %w", id, err)
	}
	return p, nil
}

// sync makes the index durable.
func (x index) sync() error { return x.kv.Sync(context.Background()) }

func (x index) put(id cluster.BlobID, p *place) error {
	return x.kv.applyInternal(func(b *pebble.Batch) error { return b.Set(blobKey(id), p.encode(), nil) })
}

func (x index) remove(ids []cluster.BlobID) error {
	return x.kv.applyInternal(func(b *pebble.Batch) error {
		for _, id := range ids {
			if err := b.Delete(blobKey(id), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// doubt remembers that damage was found in a segment.
func (x index) doubt(segment uint64) error {
	return x.kv.applyInternal(func(b *pebble.Batch) error { return b.Set(doubtKey(segment), nil, nil) })
}

// undoubt forgets segments that are gone.
func (x index) undoubt(segments ...uint64) error {
	return x.kv.applyInternal(func(b *pebble.Batch) error {
		for _, n := range segments {
			if err := b.Delete(doubtKey(n), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// doubted returns the segments in which damage was found.
func (x index) doubted() (segments []uint64, err error) {
	it, err := x.kv.db.NewIter(&pebble.IterOptions{LowerBound: doubtPrefix, UpperBound: cluster.PrefixEnd(doubtPrefix)})
	if err != nil {
		return nil, ioerr.Map(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if number := it.Key()[len(doubtPrefix):]; len(number) == 8 {
			segments = append(segments, binary.BigEndian.Uint64(number))
		}
	}
	return segments, ioerr.Map(it.Close())
}

// indexEntry is a blob and its place.
type indexEntry struct {
	id cluster.BlobID
	place
}

// page returns up to limit entries with IDs of at least from, or after it.
func (x index) page(from cluster.BlobID, after bool, limit int) ([]indexEntry, error) {
	if err := x.kv.gate.Enter(); err != nil {
		return nil, err
	}
	defer x.kv.gate.Leave()
	start := blobKey(from)
	if after {
		start = append(start, 0)
	}
	it, err := x.kv.db.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: cluster.PrefixEnd(blobPrefix)})
	if err != nil {
		return nil, ioerr.Map(err)
	}
	var entries []indexEntry
	for ok := it.First(); ok && len(entries) < limit; ok = it.Next() {
		entry, err := decodeEntry(it)
		if err != nil {
			it.Close()
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, ioerr.Map(it.Close())
}

func decodeEntry(it *pebble.Iterator) (e indexEntry, err error) {
	if e.id, err = cluster.ParseBlobID(it.Key()[len(blobPrefix):]); err != nil {
		return e, fmt.Errorf("%w: damaged key in the blob index", cluster.ErrCorrupt)
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return e, ioerr.Map(err)
	}
	if e.place, err = parsePlace(value); err != nil {
		return e, fmt.Errorf("blob %v: %w", e.id, err)
	}
	return e, nil
}

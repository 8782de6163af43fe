package local

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2"
)

// index finds blobs.
type index struct{ kv *KV }

// get returns ErrNotFound for blobs that do not exist.
func (x index) get(id cluster.BlobID) (record.Place, error) {
	if err := x.kv.gate.Enter(); err != nil {
		return record.Place{}, err
	}
	defer x.kv.gate.Leave()
	value, closer, err := x.kv.db.Get(record.BlobKey(id))
	if errors.Is(err, pebble.ErrNotFound) {
		return record.Place{}, fmt.Errorf("%w: %v", cluster.ErrNotFound, id)
	}
	if err != nil {
		return record.Place{}, ioerr.Map(err)
	}
	p, err := record.ParsePlace(value)
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

func (x index) put(id cluster.BlobID, p *record.Place) error {
	return x.kv.applyInternal(func(b *pebble.Batch) error { return b.Set(record.BlobKey(id), p.Encode(), nil) })
}

func (x index) remove(ids []cluster.BlobID) error {
	return x.kv.applyInternal(func(b *pebble.Batch) error {
		for _, id := range ids {
			if err := b.Delete(record.BlobKey(id), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// doubt remembers that damage was found in a segment.
func (x index) doubt(segment uint64) error {
	return x.kv.applyInternal(func(b *pebble.Batch) error { return b.Set(record.DoubtKey(segment), nil, nil) })
}

// undoubt forgets segments that are gone.
func (x index) undoubt(segments ...uint64) error {
	return x.kv.applyInternal(func(b *pebble.Batch) error {
		for _, n := range segments {
			if err := b.Delete(record.DoubtKey(n), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// doubted returns the segments in which damage was found.
func (x index) doubted() (segments []uint64, err error) {
	it, err := x.kv.db.NewIter(&pebble.IterOptions{LowerBound: record.DoubtPrefix, UpperBound: cluster.PrefixEnd(record.DoubtPrefix)})
	if err != nil {
		return nil, ioerr.Map(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if number := it.Key()[len(record.DoubtPrefix):]; len(number) == 8 {
			segments = append(segments, binary.BigEndian.Uint64(number))
		}
	}
	return segments, ioerr.Map(it.Close())
}

// indexEntry is a blob and its place.
type indexEntry struct {
	id cluster.BlobID
	record.Place
}

// page returns up to limit entries with IDs of at least from, or after it.
func (x index) page(from cluster.BlobID, after bool, limit int) ([]indexEntry, error) {
	if err := x.kv.gate.Enter(); err != nil {
		return nil, err
	}
	defer x.kv.gate.Leave()
	start := record.BlobKey(from)
	if after {
		start = append(start, 0)
	}
	it, err := x.kv.db.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: cluster.PrefixEnd(record.BlobPrefix)})
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
	if e.id, err = cluster.ParseBlobID(it.Key()[len(record.BlobPrefix):]); err != nil {
		return e, fmt.Errorf("%w: damaged key in the blob index", cluster.ErrCorrupt)
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return e, ioerr.Map(err)
	}
	if e.Place, err = record.ParsePlace(value); err != nil {
		return e, fmt.Errorf("blob %v: %w", e.id, err)
	}
	return e, nil
}

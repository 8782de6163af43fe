package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ogw/cluster"

	"github.com/cockroachdb/pebble/v2"
)

// The engine's own keys, in the same Pebble as the metadata. 0xFF keeps them
// apart from the keys of the layers above.
//
//	FF 'b' blob ID (16)  → place of the blob
//	FF 'd' segment (8)   → nothing: damage was found in the segment
//	FF 'e'               → nothing: written by Erase
//	FF 'm'               → state (8), see mark
//	FF 's'               → store ID (16), as in FORMAT
//	FF 't'               → epoch (8), version (8) of the newest commit, see tail
//
// A place is, little-endian:
//
//	0  kind: 1 file of its own, 2 in a segment
//	1  length of the data (8)
//	9  time of creation, Unix nanoseconds (8)
//	segments only:
//	17 segment number (8)
//	25 offset of the record (8)
//	33 CRC64NVME of each block (8 each)
const (
	placeFile    = 1
	placeSegment = 2

	placeFileBytes    = 17
	placeSegmentBytes = 33
)

var (
	blobPrefix  = []byte{0xff, 'b'}
	doubtPrefix = []byte{0xff, 'd'}
	storeKey    = []byte{0xff, 's'}
	eraseKey    = []byte{0xff, 'e'} // written by Erase, so that there is something to flush
)

func blobKey(id cluster.BlobID) []byte {
	return id.Append(append(make([]byte, 0, len(blobPrefix)+cluster.BlobIDBytes), blobPrefix...))
}

// place is where a blob is. Blobs in files have their checksums there.
type place struct {
	size     int64
	modified time.Time
	segment  uint64 // 0: a file of its own
	offset   int64
	blocks   []uint64 // nil for files
}

func (p *place) encode() []byte {
	b := make([]byte, 0, placeSegmentBytes+crcBytes*len(p.blocks))
	kind := byte(placeFile)
	if p.segment != 0 {
		kind = placeSegment
	}
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.size))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.modified.UnixNano()))
	if kind == placeFile {
		return b
	}
	b = binary.LittleEndian.AppendUint64(b, p.segment)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.offset))
	for _, crc := range p.blocks {
		b = binary.LittleEndian.AppendUint64(b, crc)
	}
	return b
}

var errPlace = fmt.Errorf("%w: damaged place of a blob in the index", cluster.ErrCorrupt)

func parsePlace(b []byte) (p place, err error) {
	if len(b) < placeFileBytes {
		return p, errPlace
	}
	size := binary.LittleEndian.Uint64(b[1:])
	if size > cluster.MaxBlobBytes {
		return p, errPlace
	}
	p.size = int64(size)
	p.modified = time.Unix(0, int64(binary.LittleEndian.Uint64(b[9:])))
	switch b[0] {
	case placeFile:
		if len(b) != placeFileBytes {
			return p, errPlace
		}
		return p, nil
	case placeSegment:
		blocks := blockCount(p.size)
		if len(b) != placeSegmentBytes+crcBytes*blocks {
			return p, errPlace
		}
		p.segment = binary.LittleEndian.Uint64(b[17:])
		p.offset = int64(binary.LittleEndian.Uint64(b[25:]))
		if p.segment == 0 || p.offset < 0 || p.offset%pageBytes != 0 {
			return p, errPlace
		}
		p.blocks = make([]uint64, blocks)
		for i := range p.blocks {
			p.blocks[i] = binary.LittleEndian.Uint64(b[placeSegmentBytes+i*crcBytes:])
		}
		return p, nil
	default:
		return p, errPlace
	}
}

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
		return place{}, mapError(err)
	}
	p, err := parsePlace(value)
	if e := closer.Close(); err == nil {
		err = mapError(e)
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

func doubtKey(segment uint64) []byte {
	return binary.BigEndian.AppendUint64(bytes.Clone(doubtPrefix), segment)
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
		return nil, mapError(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if number := it.Key()[len(doubtPrefix):]; len(number) == 8 {
			segments = append(segments, binary.BigEndian.Uint64(number))
		}
	}
	return segments, mapError(it.Close())
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
		return nil, mapError(err)
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
	return entries, mapError(it.Close())
}

func decodeEntry(it *pebble.Iterator) (e indexEntry, err error) {
	if e.id, err = cluster.ParseBlobID(it.Key()[len(blobPrefix):]); err != nil {
		return e, fmt.Errorf("%w: damaged key in the blob index", cluster.ErrCorrupt)
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return e, mapError(err)
	}
	if e.place, err = parsePlace(value); err != nil {
		return e, fmt.Errorf("blob %v: %w", e.id, err)
	}
	return e, nil
}

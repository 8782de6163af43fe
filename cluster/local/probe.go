package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"
)

var _ cluster.BlobProber = (*Blobs)(nil)

// probeSegments bounds the segments whose lengths one Probe remembers.
const probeSegments = 4096

// Probe implements cluster.BlobProber: it asks for the length of each blob's
// file, and once for that of a segment.
func (b *Blobs) Probe(ctx context.Context, from cluster.BlobID, fn func(cluster.BlobInfo, error) error) error {
	p := prober{blobs: b, segments: make(map[uint64]int64)}
	return b.walk(ctx, from, func(e *indexEntry) error {
		damage, err := p.look(e)
		if err != nil {
			return err
		}
		return fn(e.info(), damage)
	})
}

// prober looks at the files of blobs.
type prober struct {
	blobs    *Blobs
	segments map[uint64]int64 // lengths in bytes
}

// look reports what is wrong with a blob. What looks wrong may have been deleted
// or moved since its place was looked up, as for those who read.
func (p *prober) look(e *indexEntry) (damage, err error) {
	at := e.Place
	for attempt := 1; ; attempt++ {
		damage = p.lookOnce(e.id, &at)
		if damage == nil || attempt == readAttempts {
			return damage, nil
		}
		delete(p.segments, at.Segment)
		at, err = p.blobs.index.get(e.id)
		if errors.Is(err, cluster.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *prober) lookOnce(id cluster.BlobID, at *record.Place) error {
	path := p.blobs.placePath(id, at)
	bytes, known := p.segments[at.Segment]
	if !known {
		var err error
		if bytes, err = p.blobs.disk.Length(path); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: file %s is missing", cluster.ErrCorrupt, path)
		} else if err != nil {
			return fmt.Errorf("%w: %w", cluster.ErrCorrupt, err)
		}
		if at.Segment != 0 {
			if len(p.segments) == probeSegments {
				clear(p.segments)
			}
			p.segments[at.Segment] = bytes
		}
	}
	if end := at.Offset + record.Bytes(at.Size); bytes < end {
		return fmt.Errorf("%w: file %s is cut short: it has %d bytes, the blob ends at %d", cluster.ErrCorrupt, path, bytes, end)
	}
	return nil
}

package local

import (
	"path/filepath"
	"slices"

	"ogw/cluster"
	"ogw/cluster/local/internal/ioerr"
)

// A segment in which damage was found is in doubt: its medium may be bad. It
// takes no more records, the collector moves the good ones out, gives back the
// space around those that stay, and removes the file, in place of reusing it,
// once they are deleted. That holds through restarts.

// doubt notes that a blob is damaged where it is.
func (b *Blobs) doubt(id cluster.BlobID) {
	p, err := b.index.get(id)
	if err != nil || p.Segment == 0 || !b.segments.Doubt(p.Segment) {
		return
	}
	if err := b.index.doubt(p.Segment); err != nil {
		b.log.Warn("damage in a data segment is forgotten with the process", "path", b.segments.Path(p.Segment), "err", err)
	}
}

// recallDoubts takes up what earlier processes found. Segments that are gone
// are forgotten, since new ones may get their numbers.
func (b *Blobs) recallDoubts() error {
	found, err := b.index.doubted()
	if err != nil {
		return err
	}
	gone := slices.DeleteFunc(found, b.segments.Doubt)
	if len(gone) == 0 {
		return nil
	}
	if err := b.index.undoubt(gone...); err != nil {
		b.log.Warn("segments in doubt that are gone are not forgotten", "err", err)
	}
	return nil
}

// removeDoubtful removes the file of a segment that was forgotten. The doubt
// ends when it cannot come back.
func (c *collector) removeDoubtful(number uint64) error {
	path := c.segments.Path(number)
	if err := c.blobs.unlink(path); err != nil {
		return ioerr.Map(err)
	}
	if err := c.blobs.disk.SyncDir(filepath.Dir(path)); err != nil {
		return ioerr.Map(err)
	}
	return c.blobs.index.undoubt(number)
}

// stuck is a live record that cannot be moved.
type stuck struct {
	id         cluster.BlobID
	off, bytes int64
}

// punchRest gives back the space around the records that stay, if they are
// all that lives in the segment.
func (c *collector) punchRest(number uint64, stay []stuck) error {
	var sum int64
	for _, r := range stay {
		sum += r.bytes
	}
	if g, _ := c.segments.Figures(number); g.Live != sum {
		return nil // there is one that cannot be found, since its trailer is damaged
	}
	for _, r := range stay {
		p, err := c.blobs.index.get(r.id)
		if err != nil || p.Segment != number || p.Offset != r.off {
			return nil //nolint:nilerr // it was deleted: the sum was not of these
		}
	}
	// A power cut must not bring back index entries that point there.
	if err := c.blobs.index.sync(); err != nil {
		return err
	}
	path := c.segments.Path(number)
	end, err := c.blobs.disk.Length(path)
	if err != nil {
		return ioerr.Map(err)
	}
	from := int64(0)
	for _, r := range append(stay, stuck{off: end}) { // in the order of the file
		if r.off > from {
			if err := c.blobs.disk.Punch(path, from, r.off-from); err != nil {
				return ioerr.Map(err)
			}
		}
		from = r.off + r.bytes
	}
	return nil
}

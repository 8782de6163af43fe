package rados

import (
	"container/heap"
	"context"
	"errors"
	"strings"
	"time"

	"ogw/cluster"
)

const (
	// firstPage is how many entries are read of a shard at first: those who list take a few
	// hundred blobs at a time, which are two of each shard. It doubles up to maxPage,
	// which bounds the memory of a listing to some 5 MB.
	firstPage = 8
	maxPage   = 256
	// listBatch is how many heads are read before the first is shown.
	listBatch = 64
)

// List implements cluster.Blobs: the shards of the index are merged, and the head of
// each blob is read.
func (b *Blobs) List(ctx context.Context, from cluster.BlobID, fn func(cluster.BlobInfo) error) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.gate.Leave()
	m := merge{blobs: b, ctx: ctx}
	if err := m.begin(from); err != nil {
		return err
	}
	for {
		batch, err := m.batch()
		if err != nil || len(batch) == 0 {
			return err
		}
		found, err := b.lookAll(ctx, batch)
		if err != nil {
			return err
		}
		for _, h := range found {
			if h == nil {
				continue
			}
			if err := fn(cluster.BlobInfo{ID: h.id, Size: h.size, Modified: h.modified}); err != nil {
				if errors.Is(err, cluster.ErrStop) {
					return nil
				}
				return err
			}
		}
	}
}

// lookAll reads the heads that entries name; nil is an entry of no blob.
func (b *Blobs) lookAll(ctx context.Context, batch []entry) ([]*head, error) {
	found := make([]*head, len(batch))
	err := parallel(ctx, len(batch), func(i int) error {
		h, err := b.readHead(ctx, batch[i].id)
		switch {
		case err == nil && h.token == batch[i].token:
			found[i] = &h
		case err == nil, errors.Is(err, cluster.ErrNotFound):
			b.clearStale(ctx, batch[i])
		case errors.Is(err, cluster.ErrCorrupt): // there is a blob, and nobody knows how long it was
			found[i] = &head{id: batch[i].id, token: batch[i].token, modified: batch[i].at}
		default:
			return err
		}
		return nil
	})
	return found, err
}

// clearStale removes what the writer of an old entry left. What fails is tried by the next
// listing.
func (b *Blobs) clearStale(ctx context.Context, e entry) {
	if time.Since(e.at) > staleEntry {
		_ = b.clear(ctx, e, maxParts)
	}
}

// entriesOf returns the entries of one blob.
func (b *Blobs) entriesOf(ctx context.Context, id cluster.BlobID) (found []entry, err error) {
	after := id.String()
	for {
		page, more, err := b.pool.Entries(ctx, shardName(shardOf(id)), after, firstPage)
		if err != nil {
			return nil, err
		}
		for _, p := range page {
			if !strings.HasPrefix(p.Key, id.String()) {
				return found, nil
			}
			e, err := parseEntry(p)
			if err != nil {
				return nil, err
			}
			found, after = append(found, e), p.Key
		}
		if !more || len(page) == 0 {
			return found, nil
		}
	}
}

// merge is the entries of all shards, in the order of their keys.
type merge struct {
	blobs   *Blobs
	ctx     context.Context
	streams streams
}

// stream is what is left of one shard.
type stream struct {
	shard int
	page  []Entry // read, and not taken; not empty in a heap
	after string  // key behind which to read on
	more  bool    // there may be something
	size  int     // of the next page
}

// read reads a page.
func (m *merge) read(s *stream) (err error) {
	s.page, s.more, err = m.blobs.pool.Entries(m.ctx, shardName(s.shard), s.after, s.size)
	if n := len(s.page); n > 0 {
		s.after, s.size = s.page[n-1].Key, min(2*s.size, maxPage)
	} else {
		s.more = false
	}
	return err
}

// begin reads the first page of each shard. Keys are longer than IDs, and so behind that
// of from.
func (m *merge) begin(from cluster.BlobID) error {
	all := make([]*stream, shards)
	err := parallel(m.ctx, shards, func(i int) error {
		all[i] = &stream{shard: i, after: from.String(), size: firstPage}
		return m.read(all[i])
	})
	if err != nil {
		return err
	}
	for _, s := range all {
		if len(s.page) > 0 {
			m.streams = append(m.streams, s)
		}
	}
	heap.Init(&m.streams)
	return nil
}

// batch returns the next entries, none at the end.
func (m *merge) batch() (batch []entry, err error) {
	for len(batch) < listBatch && len(m.streams) > 0 {
		s := m.streams[0]
		e, err := parseEntry(s.page[0])
		if err != nil {
			return nil, err
		}
		batch = append(batch, e)
		if s.page = s.page[1:]; len(s.page) == 0 && s.more {
			if err := m.read(s); err != nil {
				return nil, err
			}
		}
		if len(s.page) == 0 {
			heap.Pop(&m.streams)
		} else {
			heap.Fix(&m.streams, 0)
		}
	}
	return batch, m.ctx.Err()
}

// streams is a heap.
type streams []*stream

func (s streams) Len() int           { return len(s) }
func (s streams) Less(i, j int) bool { return s[i].page[0].Key < s[j].page[0].Key }
func (s streams) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *streams) Push(x any)        { *s = append(*s, x.(*stream)) }
func (s *streams) Pop() any {
	last := len(*s) - 1
	x := (*s)[last]
	*s = (*s)[:last]
	return x
}

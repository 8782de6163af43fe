package local

import (
	"container/list"
	"sync"

	"ogw/cluster"
	"ogw/cluster/local/internal/crc64"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"
)

const (
	// sumsBytes bounds the memory of the checksums of pages: those of 2 GiB
	// of what is read in parts.
	sumsBytes = 8 << 20
	// sumsEntryBytes is what those of one block take, with their place in the
	// map and the list.
	sumsEntryBytes = pagesPerBlock*record.CRCBytes + 128
	// sumsShards spreads the locks.
	sumsShards = 16
	// pagesPerBlock is how many pages make a block.
	pagesPerBlock = cluster.BlockBytes / fileio.PageBytes
)

// pageSums remembers checksums of the pages of blocks that were verified. A
// part of a block can only be verified with all of the block, or with these:
// programs that read here and there in a blob, or step by step, would
// otherwise read 64 KiB for every 4.
type pageSums struct {
	shards [sumsShards]sumsShard
	max    int // blocks of a shard
}

type sumsShard struct {
	mu      sync.Mutex
	entries map[blockID]*list.Element
	order   list.List // of *blockSumsEntry, the longest unused first
}

// blockID names a block of a blob.
type blockID struct {
	blob  cluster.BlobID
	block int64
}

// blockPages are the CRC64NVME of the pages of a block, the last of which may
// be short.
type blockPages [pagesPerBlock]uint64

type blockSumsEntry struct {
	id   blockID
	sums blockPages
}

func newPageSums() *pageSums {
	c := &pageSums{max: sumsBytes / sumsShards / sumsEntryBytes}
	for i := range c.shards {
		c.shards[i].entries = make(map[blockID]*list.Element)
	}
	return c
}

func (c *pageSums) shard(id blockID) *sumsShard {
	return &c.shards[(id.blob.Content+id.blob.Seq+uint64(id.block))%sumsShards]
}

func (c *pageSums) get(id blockID) (sums blockPages, ok bool) {
	s := c.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[id]
	if e == nil {
		return sums, false
	}
	s.order.MoveToBack(e)
	return e.Value.(*blockSumsEntry).sums, true
}

// put stores the checksums of a block that was just verified.
func (c *pageSums) put(id blockID, block []byte) {
	var sums blockPages
	for i := 0; len(block) > 0; i++ {
		n := min(len(block), fileio.PageBytes)
		sums[i] = crc64.Checksum(block[:n])
		block = block[n:]
	}
	s := c.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[id]
	if e == nil && len(s.entries) < c.max {
		s.entries[id] = s.order.PushBack(&blockSumsEntry{id, sums})
		return
	}
	if e == nil {
		e = s.order.Front()
		delete(s.entries, e.Value.(*blockSumsEntry).id)
		s.entries[id] = e
	}
	*e.Value.(*blockSumsEntry) = blockSumsEntry{id, sums}
	s.order.MoveToBack(e)
}

// match reports whether data, whole pages of a block from page on (the last may
// be short), are right.
func (sums *blockPages) match(data []byte, page int64) bool {
	for len(data) > 0 {
		n := min(len(data), fileio.PageBytes)
		if crc64.Checksum(data[:n]) != sums[page] {
			return false
		}
		data = data[n:]
		page++
	}
	return true
}

package rados

import (
	"sync"

	"ogw/cluster"
)

// maxHeads bounds the heads that are remembered, some 100 bytes each.
const maxHeads = 8192

// heads are heads of blobs of several parts, as they were last seen: a read of a later part
// needs the token of its writer. One that is wrong names parts that are gone.
type heads struct {
	mu   sync.Mutex
	seen map[cluster.BlobID]head
}

// get returns the head of a blob, or nil.
func (k *heads) get(id cluster.BlobID) *head {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h, ok := k.seen[id]; ok {
		return &h
	}
	return nil
}

// put remembers h, in the place of any other one if there are many.
func (k *heads) put(h head) {
	if h.parts() == 1 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil {
		k.seen = make(map[cluster.BlobID]head)
	}
	for id := range k.seen {
		if len(k.seen) < maxHeads {
			break
		}
		delete(k.seen, id)
	}
	k.seen[h.id] = h
}

func (k *heads) drop(id cluster.BlobID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.seen, id)
}

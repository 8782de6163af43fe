package vfs

import (
	"context"
	"fmt"
	"math"
	"sync"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// blobHolds keep blobs for backups: the collector leaves alone what one of them
// may need, and finds it in its queue again when the last one has ended.
//
// A hold is added while no pass of the collector runs, and before the snapshot
// that it is for. So what a transaction names in that snapshot is there, and
// whoever stops naming it later puts it into the queue. Blobs that no
// transaction ever named are nobody's.
type blobHolds struct {
	mu   sync.Mutex
	list map[*blobHold]bool
	// passed tells that the collector left something alone since it looked
	// whether there is room for that.
	passed bool
}

// blobHold holds blobs of the contents from from on, if their number is below
// limit.
type blobHold struct {
	holds *blobHolds
	from  ContentID
	limit uint64
	end   func(error)
}

// holdBlobs adds a hold of everything; ErrBusy. It waits for the collector.
func (fs *FS) holdBlobs(end func(error)) (*blobHold, error) {
	fs.collectMu.Lock()
	defer fs.collectMu.Unlock()
	h := &fs.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.list) == maxBackups {
		return nil, fmt.Errorf("%w: %d backups are being made already", ErrBusy, maxBackups)
	}
	if h.list == nil {
		h.list = make(map[*blobHold]bool)
	}
	hold := &blobHold{holds: h, limit: math.MaxUint64, end: end}
	h.list[hold] = true
	return hold, nil
}

// bound lets go of what has this number or a higher one.
func (x *blobHold) bound(limit uint64) {
	x.holds.mu.Lock()
	defer x.holds.mu.Unlock()
	x.limit = limit
}

// release lets go of the contents before from.
func (x *blobHold) release(from ContentID) {
	x.holds.mu.Lock()
	defer x.holds.mu.Unlock()
	x.from = max(x.from, from)
}

func (x *blobHold) remove() {
	x.holds.mu.Lock()
	defer x.holds.mu.Unlock()
	delete(x.holds.list, x)
}

// keeps tells that an entry of the queue must wait.
func (h *blobHolds) keeps(e *record.QueueEntry) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	number := uint64(e.Content)
	if e.Kind == record.QueueBlob {
		number = e.Seq
	}
	for x := range h.list {
		if e.Content >= x.from && number < x.limit {
			h.passed = true
			return true
		}
	}
	return false
}

// relieve ends all holds when what they keep is space that the store needs.
func (fs *FS) relieve(ctx context.Context) error {
	h := &fs.holds
	h.mu.Lock()
	passed := h.passed
	h.passed = false
	h.mu.Unlock()
	if !passed {
		return nil
	}
	u, err := fs.blobs.Usage(ctx)
	if err != nil || u.Total == 0 || u.Free >= backupRoomBytes {
		return fserr.Map(err)
	}
	fs.log.Warn("backups are ended: the store needs the space of what was deleted since they began", "free_bytes", u.Free)
	h.endAll(fmt.Errorf("%w: the store ran short of space, and took that of what was deleted since", ErrBackupEnded))
	return nil
}

// endAll ends all backups.
func (h *blobHolds) endAll(why error) {
	h.mu.Lock()
	var list []*blobHold
	for x := range h.list {
		list = append(list, x)
	}
	h.mu.Unlock()
	for _, x := range list {
		x.end(why)
	}
}

package content

import (
	"errors"
	"sync"

	"ogw/vfs/internal/record"
)

const (
	// MaxHolds bounds the backups at a time: each keeps a snapshot, and what
	// was deleted since.
	MaxHolds = 4
)

// ErrHoldEnded means that a Hold was ended since the store needs the space.
var ErrHoldEnded = errors.New("the store ran short of space, and took that of what was deleted since")

// blobHolds keep blobs for backups: the collector leaves alone what one of them
// may need, and finds it in its queue again when the last one has ended.
//
// A hold is added before the snapshot that it is for. So what a transaction names in
// that snapshot is there, unless it is in the queue of the snapshot, too: a pass of the
// collector may have taken it from there before. Whoever stops naming it later puts it
// into the queue. Blobs that no transaction ever named are nobody's.
type blobHolds struct {
	mu   sync.Mutex
	list map[*Hold]bool
	// passed reports whether the collector left something alone since it looked
	// whether there is room for that.
	passed bool
}

// Hold holds blobs of the contents from from on, if their number is below
// limit.
type Hold struct {
	holds *blobHolds
	from  record.ContentID
	limit uint64
	end   func(error)
}

// Bound lets go of what has this number or a higher one.
func (x *Hold) Bound(limit uint64) {
	x.holds.mu.Lock()
	defer x.holds.mu.Unlock()
	x.limit = limit
}

// Release lets go of the contents before from.
func (x *Hold) Release(from record.ContentID) {
	x.holds.mu.Lock()
	defer x.holds.mu.Unlock()
	x.from = max(x.from, from)
}

// Remove ends the hold.
func (x *Hold) Remove() {
	x.holds.mu.Lock()
	defer x.holds.mu.Unlock()
	delete(x.holds.list, x)
}

// keeps reports whether an entry of the queue must wait.
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

// endAll ends all holds.
func (h *blobHolds) endAll(why error) {
	h.mu.Lock()
	var list []*Hold
	for x := range h.list {
		list = append(list, x)
	}
	h.mu.Unlock()
	for _, x := range list {
		x.end(why)
	}
}

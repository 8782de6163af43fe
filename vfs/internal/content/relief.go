package content

import (
	"context"
	"fmt"
	"math"

	"ogw/vfs/internal/fserr"
)

// holdRoomBytes is what must be free while deletions wait for a backup:
// below it, the store needs their space.
const holdRoomBytes = 256 << 20

// Hold adds a hold of everything; ErrBusy. A pass of the collector that is under way may still
// remove what it looked at before, which is queued since then.
func (s *Store) Hold(end func(error)) (*Hold, error) {
	h := &s.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.list) == MaxHolds {
		return nil, fmt.Errorf("%w: %d backups are being made already", fserr.ErrBusy, MaxHolds)
	}
	if h.list == nil {
		h.list = make(map[*Hold]bool)
	}
	hold := &Hold{holds: h, limit: math.MaxUint64, end: end}
	h.list[hold] = true
	return hold, nil
}

// relieve ends all holds when what they keep is space that the store needs.
func (s *Store) relieve(ctx context.Context) error {
	h := &s.holds
	h.mu.Lock()
	passed := h.passed
	h.passed = false
	h.mu.Unlock()
	if !passed {
		return nil
	}
	u, err := s.Engine.Usage(ctx)
	if err != nil || u.Total == 0 || u.Free >= holdRoomBytes {
		return fserr.Map(err)
	}
	s.Log.Warn("backups are ended: the store needs the space of what was deleted since they began", "free_bytes", u.Free)
	h.endAll(ErrHoldEnded)
	return nil
}

// EndHolds ends all holds, whose owners get the reason.
func (s *Store) EndHolds(why error) { s.holds.endAll(why) }

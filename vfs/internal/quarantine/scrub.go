package quarantine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/cluster/pause"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

const (
	// DefaultScrubBytes is how fast the scrub reads, per second: 5 TB a week,
	// a hundredth of what the disk gives.
	DefaultScrubBytes = 8 << 20
	// scrubEvery is the time from the begin of one pass to that of the next.
	scrubEvery = 7 * 24 * time.Hour
	// scrubPage is how many blobs are listed at a time.
	scrubPage = 256
	// scrubSave is how often the place is stored, from which a start goes on.
	scrubSave = time.Minute
	// scrubSetting is the name under which all of this is stored.
	scrubSetting = "scrub"
)

// ScrubState describes what the scrub does. Times are zero for never.
type ScrubState struct {
	Rate     int64         `json:"rate"`    // bytes per second; 0: it is off
	Running  bool          `json:"running"` // a pass is under way
	Started  time.Time     `json:"started"` // the pass under way, or the last
	Finished time.Time     `json:"finished"`
	Blobs    int64         `json:"blobs"` // of the pass
	Bytes    int64         `json:"bytes"`
	Damaged  []DamagedBlob `json:"damaged"` // in quarantine, and in use
	// Aside and AsideBytes are those in quarantine that no file uses any more.
	Aside      int   `json:"aside"`
	AsideBytes int64 `json:"aside_bytes"`
}

// scrubRecord is what is stored, as JSON.
type scrubRecord struct {
	Running  bool           `json:"running"`
	Started  time.Time      `json:"started"`
	Finished time.Time      `json:"finished"`
	Blobs    int64          `json:"blobs"`
	Bytes    int64          `json:"bytes"`
	Next     cluster.BlobID `json:"next"` // the pass goes on here

	// Damaged is the quarantine of a store that was written before damaged
	// blobs had records of their own.
	Damaged []DamagedBlob `json:"damaged,omitempty"`
}

// Scrubber reads every blob again and again, slowly, to find what the medium
// lost while nobody looked.
type Scrubber struct {
	q     *Blobs
	store Settings
	rate  int64      // bytes per second
	pass  sync.Mutex // one pass or recheck at a time
	mu    sync.Mutex
	rec   scrubRecord
	saved time.Time
}

// State returns the state of the scrub, and what is damaged as far as this
// process knows, without the files (see Quarantine).
func (s *Scrubber) State() ScrubState {
	s.mu.Lock()
	r := s.rec
	s.mu.Unlock()
	state := ScrubState{Rate: s.rate, Running: r.Running, Started: r.Started, Finished: r.Finished, Blobs: r.Blobs, Bytes: r.Bytes,
		Damaged: s.q.Damaged()}
	state.Damaged = slices.DeleteFunc(state.Damaged, func(d DamagedBlob) bool {
		if d.Aside {
			state.Aside++
			state.AsideBytes += d.Size
		}
		return d.Aside
	})
	return state
}

// Current is State, where another process may run the scrub, too: as it stored it last,
// scrubSave ago at the most. With an error it is what this process knows.
func (s *Scrubber) Current(ctx context.Context) (ScrubState, error) {
	if s.q.Feed.Complete() || !s.pass.TryLock() { // it is this one
		return s.State(), nil
	}
	err := s.q.Refresh(ctx)
	if err == nil {
		err = s.load(ctx)
	}
	s.pass.Unlock()
	return s.State(), err
}

// Settings keeps the state of the scrub.
type Settings interface {
	// Setting returns a small value, nil if there is none.
	Setting(ctx context.Context, name string) ([]byte, error)
	// UpdateSetting changes it in one transaction.
	UpdateSetting(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error
}

// NewScrubber returns a Scrubber that goes on where the last one stopped. rate
// is in bytes per second.
func NewScrubber(ctx context.Context, q *Blobs, store Settings, rate int64) (*Scrubber, error) {
	s := &Scrubber{q: q, store: store, rate: rate}
	return s, s.load(ctx)
}

// load reads the stored state.
func (s *Scrubber) load(ctx context.Context) error {
	b, err := s.store.Setting(ctx, scrubSetting)
	if err != nil || b == nil {
		return err
	}
	var rec scrubRecord
	if err := json.Unmarshal(b, &rec); err != nil {
		s.q.Log.Error("the stored state of the scrub is damaged; it begins anew", "err", err)
		rec = scrubRecord{}
	}
	found := rec.Damaged
	rec.Damaged = nil
	s.mu.Lock()
	s.rec = rec
	s.mu.Unlock()
	for i := range found {
		if err := s.q.Note(FoundBy(ctx, "scrub"), found[i].ID, errors.New(found[i].Error)); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		return nil
	}
	return s.save(ctx)
}

// Run makes passes until ctx ends. It goes on where the last one stopped, also that of
// another process.
func (s *Scrubber) Run(ctx context.Context) {
	if !s.q.Feed.Complete() {
		if err := s.load(ctx); err != nil && ctx.Err() == nil {
			s.q.Log.Warn("the state of the scrub cannot be read, it goes on by what it knows", "err", err)
		}
	}
	for {
		s.mu.Lock()
		wait := time.Duration(0)
		if !s.rec.Running && !s.rec.Started.IsZero() {
			wait = s.rec.Started.Add(scrubEvery).Sub(s.q.Now())
		}
		s.mu.Unlock()
		if wait > 0 {
			// At the most an hour at a time: clocks jump.
			if pause.For(ctx, min(wait, time.Hour)) != nil {
				return
			}
			continue
		}
		if err := s.Pass(ctx, s.rate); err != nil && ctx.Err() == nil {
			s.q.Log.Error("scrub fails, it is tried again", "err", err)
			_ = pause.For(ctx, time.Minute) // ctx is looked at below
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// Pass begins a pass, or goes on with the one that a stop interrupted.
func (s *Scrubber) Pass(ctx context.Context, rate int64) error {
	s.pass.Lock()
	defer s.pass.Unlock()
	s.mu.Lock()
	if !s.rec.Running {
		s.rec.Running, s.rec.Started = true, s.q.Now()
		s.rec.Blobs, s.rec.Bytes, s.rec.Next = 0, 0, cluster.BlobID{}
	}
	from := s.rec.Next
	s.mu.Unlock()
	ctx = FoundBy(ctx, "scrub")
	if err := s.q.Refresh(ctx); err != nil {
		return err
	}
	if _, err := s.q.Recheck(ctx, true); err != nil {
		return err
	}
	for {
		var page []cluster.BlobInfo
		if err := s.q.Engine.List(ctx, from, func(b cluster.BlobInfo) error {
			if page = append(page, b); len(page) == scrubPage {
				return cluster.ErrStop
			}
			return nil
		}); err != nil {
			return fserr.Map(err)
		}
		for i := range page {
			if err := s.verify(ctx, &page[i], rate); err != nil {
				return err
			}
		}
		if len(page) < scrubPage {
			break
		}
		from = record.NextBlob(page[len(page)-1].ID)
	}
	s.mu.Lock()
	s.rec.Running, s.rec.Finished, s.rec.Next = false, s.q.Now(), cluster.BlobID{}
	s.mu.Unlock()
	return s.save(ctx)
}

// verify checks one blob and rests for as long as its bytes are worth.
func (s *Scrubber) verify(ctx context.Context, b *cluster.BlobInfo, rate int64) error {
	begun := time.Now()
	err := cluster.VerifyBlob(ctx, s.q.Engine, b.ID)
	switch {
	case errors.Is(err, cluster.ErrCorrupt):
		if err := s.q.Note(ctx, b.ID, err); err != nil {
			s.q.Log.Error("the note of a damaged blob is not stored, it is tried again", "blob", b.ID.String(), "err", err)
		}
	case errors.Is(err, cluster.ErrNotFound): // deleted concurrently
	case err != nil:
		return fserr.Map(err)
	}
	s.mu.Lock()
	s.rec.Blobs++
	s.rec.Bytes += b.Size
	s.rec.Next = record.NextBlob(b.ID)
	due := time.Since(s.saved) > scrubSave
	s.mu.Unlock()
	if due {
		if err := s.save(ctx); err != nil && ctx.Err() == nil {
			s.q.Log.Warn("the state of the scrub is not stored, it is tried again", "err", err)
		}
	}
	if rate > 0 {
		_ = pause.For(ctx, time.Duration(float64(b.Size)/float64(rate)*float64(time.Second))-time.Since(begun))
	}
	return ctx.Err()
}

// save stores the state, for the next start.
func (s *Scrubber) save(ctx context.Context) error {
	s.mu.Lock()
	b, err := json.Marshal(&s.rec)
	s.saved = time.Now()
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	return s.store.UpdateSetting(cluster.Relaxed(ctx), scrubSetting, func([]byte) ([]byte, error) { return b, nil })
}

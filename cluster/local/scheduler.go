package local

import (
	"errors"
	"sync"
	"time"

	"ogw/cluster/local/internal/metafs"

	"github.com/cockroachdb/pebble/v2"
)

// grantEvery is how often the scheduler looks whether more compactions may
// run, besides when one ends or Pebble asks: what Pebble allows grows with its
// backlog, which nothing reports.
const grantEvery = 100 * time.Millisecond

// scheduler runs as many compactions as Pebble wants, as Pebble's own does,
// but none before begin: Pebble's Open schedules compactions after it has
// replayed the log, and then waits for them, which can take seconds.
//
// mu comes after Pebble's locks, so that it is not held while Pebble is asked
// to start a compaction; only the granter does that.
type scheduler struct {
	mu      sync.Mutex
	db      pebble.DBForCompaction
	running int
	begun   bool
	ended   bool
	allowed int       // as of the last look
	rest    time.Time // no compaction begins before

	poke chan struct{} // room for one: more would ask the same
	stop chan struct{}
	done chan struct{} // closed by the granter
}

func newScheduler() *scheduler {
	return &scheduler{poke: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
}

// Register implements pebble.CompactionScheduler.
func (s *scheduler) Register(_ int, db pebble.DBForCompaction) { s.db = db }

// begin lets compactions run. It is called once, after Open.
func (s *scheduler) begin() {
	s.mu.Lock()
	s.begun = true
	s.mu.Unlock()
	go s.granter()
	s.wake()
}

// Unregister implements pebble.CompactionScheduler.
func (s *scheduler) Unregister() {
	s.mu.Lock()
	s.ended = true
	begun := s.begun
	s.mu.Unlock()
	if begun {
		close(s.stop)
		<-s.done
	}
}

// TrySchedule implements pebble.CompactionScheduler.
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !s.take() {
		return false, nil
	}
	return true, s
}

// take reserves the right to run a compaction, if there is one.
func (s *scheduler) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun || s.ended || time.Now().Before(s.rest) {
		return false
	}
	if s.allowed = s.db.GetAllowedWithoutPermission(); s.allowed <= s.running {
		return false
	}
	s.running++
	return true
}

func (s *scheduler) giveBack() {
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
}

// compacted notes how a compaction ended. After one that failed all rest: Pebble would
// begin it again at once.
func (s *scheduler) compacted(info pebble.CompactionInfo) {
	if info.Err == nil || errors.Is(info.Err, pebble.ErrCancelledCompaction) {
		return
	}
	s.mu.Lock()
	s.rest = time.Now().Add(metafs.RetryPause)
	s.mu.Unlock()
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler.
func (s *scheduler) UpdateGetAllowedWithoutPermission() {
	s.mu.Lock()
	before := s.allowed
	s.allowed = s.db.GetAllowedWithoutPermission()
	more := s.allowed > before
	s.mu.Unlock()
	if more {
		s.wake()
	}
}

// Started implements pebble.CompactionGrantHandle.
func (s *scheduler) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (s *scheduler) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (s *scheduler) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements pebble.CompactionGrantHandle.
func (s *scheduler) Done() {
	s.giveBack()
	s.wake()
}

func (s *scheduler) wake() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// granter starts compactions that wait.
func (s *scheduler) granter() {
	defer close(s.done)
	tick := time.NewTicker(grantEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.poke:
		case <-tick.C:
		}
		s.grant()
	}
}

func (s *scheduler) grant() {
	for s.take() {
		waiting, _ := s.db.GetWaitingCompaction()
		if !waiting || !s.db.Schedule(s) {
			s.giveBack()
			return
		}
	}
}

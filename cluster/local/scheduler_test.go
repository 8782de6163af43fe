package local

import (
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ogw/cluster/local/internal/metafs"

	"github.com/cockroachdb/pebble/v2"
)

// backlog is a pebble.DBForCompaction with compactions that wait.
type backlog struct {
	mu      sync.Mutex
	allowed int
	waiting int
	started chan pebble.CompactionGrantHandle
}

func (b *backlog) GetAllowedWithoutPermission() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.allowed
}

func (b *backlog) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting > 0, pebble.WaitingCompaction{}
}

func (b *backlog) Schedule(h pebble.CompactionGrantHandle) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == 0 {
		return false
	}
	b.waiting--
	b.started <- h
	return true
}

func (b *backlog) next(t *testing.T) pebble.CompactionGrantHandle {
	t.Helper()
	select {
	case h := <-b.started:
		return h
	case <-time.After(10 * time.Second):
		t.Fatal("no compaction was started")
		return nil
	}
}

func TestSchedulerBeginsAfterOpen(t *testing.T) {
	db := &backlog{allowed: 2, waiting: 3, started: make(chan pebble.CompactionGrantHandle, 3)}
	s := newScheduler()
	s.Register(2, db)
	s.UpdateGetAllowedWithoutPermission()
	if ok, _ := s.TrySchedule(); ok {
		t.Fatal("a compaction may run while the store opens")
	}
	s.begin()
	first := db.next(t)
	db.next(t)
	if ok, _ := s.TrySchedule(); ok {
		t.Error("a third compaction may run where two are allowed")
	}
	select {
	case <-db.started:
		t.Error("a third compaction was started where two are allowed")
	default:
	}
	first.Done()
	third := db.next(t)
	third.Done()
	if ok, h := s.TrySchedule(); !ok {
		t.Error("no compaction may run where two are allowed and one runs")
	} else {
		h.Done()
	}
	s.Unregister()
	if ok, _ := s.TrySchedule(); ok {
		t.Error("a compaction may run after the end")
	}
}

// TestSchedulerWithoutBegin is an Open that failed.
func TestSchedulerWithoutBegin(t *testing.T) {
	s := newScheduler()
	s.Register(2, &backlog{allowed: 1})
	s.Unregister()
}

// TestSchedulerRests: after a compaction that failed, the next one begins a while later; one
// that was cancelled did not fail.
func TestSchedulerRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &backlog{allowed: 1, waiting: 2, started: make(chan pebble.CompactionGrantHandle, 2)}
		s := newScheduler()
		s.Register(1, db)
		s.begin()
		defer s.Unregister()
		for _, test := range []struct {
			err  error
			rest time.Duration
		}{{pebble.ErrCancelledCompaction, 0}, {syscall.EIO, metafs.RetryPause}} {
			h, began := db.next(t), time.Now()
			s.compacted(pebble.CompactionInfo{Done: true, Err: test.err})
			h.Done()
			db.mu.Lock()
			db.waiting = 1
			db.mu.Unlock()
			next := db.next(t)
			if waited := time.Since(began); waited < test.rest || waited > test.rest+2*grantEvery {
				t.Errorf("%v: the next compaction began after %s", test.err, waited)
			}
			db.started <- next
		}
	})
}

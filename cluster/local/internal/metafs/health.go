package metafs

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/watchdog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Health knows whether the metadata store can still take writes. It is
// Pebble's logger and listener, since these are what Pebble reports about its
// troubles.
//
// After a failed write of the log nobody knows what a restart will find,
// so the store takes no more writes until it is opened again. Reads go on.
type Health struct {
	log    *slog.Logger
	failed atomic.Pointer[error]
	ended  chan struct{}               // closed once it failed
	flush  atomic.Pointer[failedFlush] // the last one; nil after one that was well
	stalls atomic.Int32                // writes of the log that wait for space
	onFail func()                      // wakes who waits for a sync
	once   sync.Once

	// Disk is that of the store, which may neither work nor fail.
	Disk *watchdog.Watchdog
}

// failedFlush is a flush that Pebble tries again, the first time at once. While it fails again,
// new commits are refused: soon they would wait in Pebble for a memtable, with no end and no error.
type failedFlush struct {
	err   error
	at    time.Time
	again bool // not for the first time; or the disk is full
}

// NewHealth returns that of a store that is well.
func NewHealth(log *slog.Logger) *Health {
	h := &Health{log: log, ended: make(chan struct{})}
	h.Disk = watchdog.New(log, func() bool { return h.stalls.Load() > 0 })
	return h
}

// Failure returns why the store takes no writes until it is opened again, or
// nil.
func (h *Health) Failure() error {
	if p := h.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// Failed returns a channel that is closed when the store has failed.
func (h *Health) Failed() <-chan struct{} { return h.ended }

// OnFailure has f called when the store fails, or its disk begins to hang. It is set before its use.
func (h *Health) OnFailure(f func()) {
	h.onFail = f
	h.Disk.OnHang(f)
}

// Err returns why the store cannot be written to, or nil.
func (h *Health) Err() error {
	if err := h.Failure(); err != nil {
		return err
	}
	if err := h.Disk.Err(); err != nil {
		return err
	}
	f := h.flush.Load()
	if f != nil && ioerr.IsFull(f.err) || h.stalls.Load() > 0 {
		return fmt.Errorf("%w: the metadata store waits for space", cluster.ErrNoSpace)
	}
	if f != nil && f.again {
		return fmt.Errorf("the metadata store cannot write tables, and tries again: %w", ioerr.Map(f.err))
	}
	return nil
}

// Waiting returns why there is no use in waiting for a sync that is under way, or nil.
func (h *Health) Waiting() error {
	if h.Failure() != nil {
		return h.Err()
	}
	return h.Disk.Err()
}

// flushRest returns how long a flush rests after one that failed.
func (h *Health) flushRest() time.Duration {
	if f := h.flush.Load(); f != nil && f.again {
		return RetryPause - time.Since(f.at)
	}
	return 0
}

// stall notes that a write of the log waits for space; resume ends that.
func (h *Health) stall() {
	if h.stalls.Add(1) == 1 {
		h.log.Error("metadata store: the disk is full, writes wait for space")
	}
}

func (h *Health) resume() {
	if h.stalls.Add(-1) == 0 {
		h.log.Info("metadata store: writes go on")
	}
}

// Fail marks the store as failed for good, with the first cause.
func (h *Health) Fail(cause error) error {
	h.once.Do(func() {
		err := fmt.Errorf("the metadata store failed and %w: %w", cluster.ErrFailed, ioerr.Map(cause))
		if !errors.Is(err, cluster.ErrNoSpace) && !errors.Is(err, cluster.ErrReadOnly) && !errors.Is(err, cluster.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", cluster.ErrUnavailable, err)
		}
		h.failed.Store(&err)
		close(h.ended)
		h.log.Error("metadata store failed; no writes until it is opened again", "err", cause)
		if h.onFail != nil {
			h.onFail()
		}
	})
	return *h.failed.Load()
}

// fatalError is what Fatalf panics with below catch.
type fatalError struct{ cause error }

// catchName is catch as the runtime names it.
const catchName = "(*Health).Catch"

// Catch calls into Pebble, and marks the store as failed by what that returns,
// its fatal errors and panics included.
func (h *Health) Catch(call func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case fatalError:
			err = h.Fail(p.cause)
		case error:
			err = h.Fail(p)
		default:
			err = h.Fail(fmt.Errorf("panic: %v", p))
		}
	}()
	if err := call(); err != nil {
		return h.Fail(err)
	}
	return nil
}

// Infof implements pebble.Logger.
func (h *Health) Infof(format string, args ...any) {}

// Errorf implements pebble.Logger.
func (h *Health) Errorf(format string, args ...any) {
	h.log.Warn("pebble", "message", fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger. Pebble expects that it does not return: it
// would go on to delete logs that hold the only copy of what it failed to
// write elsewhere. So it ends the goroutine: with a panic that catch
// recovers, or with Goexit when Pebble's own goroutines meet the error.
func (h *Health) Fatalf(format string, args ...any) {
	cause := fmt.Errorf(format, args...)
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			cause = fmt.Errorf("%s: %w", cause.Error(), err)
			break
		}
	}
	_ = h.Fail(cause)
	if calledFrom(catchName) {
		panic(fatalError{cause})
	}
	runtime.Goexit()
}

// calledFrom reports whether a function of that name waits for this one.
func calledFrom(function string) bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "."+function) {
			return true
		}
		if !more {
			return false
		}
	}
}

// Listener reports background work to h.
func (h *Health) Listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			if f := h.flush.Load(); !ioerr.IsFull(err) && (f == nil || !errors.Is(err, f.err)) {
				h.log.Error("metadata store: background work failed", "err", err)
			}
		},
		FlushEnd: func(info pebble.FlushInfo) { h.flushed(info.Err) },
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			h.log.Error("metadata store: corrupt data", "path", info.Path, "err", info.Details)
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			h.log.Warn("metadata store: writes wait", "reason", info.Reason)
		},
	}
}

// emptyTable is how Pebble says that a flush had nothing to write; it ended well.
const emptyTable = "pebble: empty table"

// flushed notes how a flush ended, and tells of the first failure and of its end.
func (h *Health) flushed(err error) {
	if err == nil || err.Error() == emptyTable {
		if h.flush.Swap(nil) != nil {
			h.log.Info("metadata store: tables are written again")
		}
		return
	}
	full, before := ioerr.IsFull(err), h.flush.Load()
	h.flush.Store(&failedFlush{err: err, at: time.Now(), again: full || before != nil})
	switch {
	case before != nil && before.again && ioerr.IsFull(before.err) == full:
	case full:
		h.log.Error("metadata store: the disk is full, cannot flush", "err", err)
	case before != nil:
		h.log.Error("metadata store: cannot write tables; no commits until it can", "err", err)
	default:
		h.log.Warn("metadata store: cannot write a table, tries again", "err", err)
	}
}

// guardFS keeps Pebble from deleting files once the store failed: any of them
// might be what a restart needs.
type guardFS struct {
	vfs.FS
	health *Health
}

// Remove implements vfs.FS.
func (g guardFS) Remove(name string) error {
	if g.health.failed.Load() != nil {
		return nil
	}
	return g.FS.Remove(name)
}

// ReuseForWrite implements vfs.FS.
func (g guardFS) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := g.health.failed.Load(); err != nil {
		return nil, *err
	}
	return g.FS.ReuseForWrite(old, name, category)
}

// Unwrap implements vfs.FS.
func (g guardFS) Unwrap() vfs.FS { return g.FS }

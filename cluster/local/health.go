package local

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"ogw/cluster"
	"ogw/cluster/local/internal/ioerr"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// health knows whether the metadata store can still take writes. It is
// Pebble's logger and listener, since these are what Pebble tells about its
// troubles.
//
// After a failed write of the log nobody can tell what a restart will find,
// so the store takes no more writes until it is opened again. Reads go on.
type health struct {
	log    *slog.Logger
	failed atomic.Pointer[error]
	full   atomic.Bool  // the last flush ended for lack of space
	stalls atomic.Int32 // writes of the log that wait for space
	onFail func()       // wakes who waits for a sync
	once   sync.Once
}

// err returns why the store cannot be written to, or nil.
func (h *health) err() error {
	if p := h.failed.Load(); p != nil {
		return *p
	}
	if h.full.Load() || h.stalls.Load() > 0 {
		return fmt.Errorf("%w: the metadata store waits for space", cluster.ErrNoSpace)
	}
	return nil
}

// stall notes that a write of the log waits for space; resume ends that.
func (h *health) stall() {
	if h.stalls.Add(1) == 1 {
		h.log.Error("metadata store: the disk is full, writes wait for space")
	}
}

func (h *health) resume() {
	if h.stalls.Add(-1) == 0 {
		h.log.Info("metadata store: writes go on")
	}
}

// fail marks the store as failed for good, with the first cause.
func (h *health) fail(cause error) error {
	h.once.Do(func() {
		err := ioerr.Map(cause)
		if !errors.Is(err, cluster.ErrNoSpace) && !errors.Is(err, cluster.ErrReadOnly) {
			err = fmt.Errorf("%w: the metadata store failed and takes no writes until it is opened again: %w", cluster.ErrUnavailable, cause)
		}
		h.failed.Store(&err)
		h.log.Error("metadata store failed; no writes until it is opened again", "err", cause)
		if h.onFail != nil {
			h.onFail()
		}
	})
	return *h.failed.Load()
}

// fatalError is what Fatalf panics with below applyBatch.
type fatalError struct{ cause error }

// Infof implements pebble.Logger.
func (h *health) Infof(format string, args ...any) {}

// Errorf implements pebble.Logger.
func (h *health) Errorf(format string, args ...any) {
	h.log.Warn("pebble", "message", fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger. Pebble expects that it does not return: it
// would go on to delete logs that hold the only copy of what it failed to
// write elsewhere. So it ends the goroutine: with a panic that applyBatch
// recovers, or with Goexit when Pebble's own goroutines meet the error.
func (h *health) Fatalf(format string, args ...any) {
	cause := fmt.Errorf(format, args...)
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			cause = fmt.Errorf("%s: %w", cause.Error(), err)
			break
		}
	}
	_ = h.fail(cause)
	if calledFrom("applyBatch") {
		panic(fatalError{cause})
	}
	runtime.Goexit()
}

// calledFrom tells whether a function of that name waits for this one.
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

// listener tells h about background work.
func (h *health) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			if !ioerr.IsFull(err) {
				h.log.Error("metadata store: background work failed", "err", err)
			}
		},
		FlushEnd: func(info pebble.FlushInfo) {
			switch full := ioerr.IsFull(info.Err); {
			case full && h.full.CompareAndSwap(false, true):
				h.log.Error("metadata store: the disk is full, cannot flush", "err", info.Err)
			case !full && h.full.CompareAndSwap(true, false):
				h.log.Info("metadata store: space is back")
			}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			h.log.Error("metadata store: corrupt data", "path", info.Path, "err", info.Details)
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			h.log.Warn("metadata store: writes wait", "reason", info.Reason)
		},
	}
}

// guardFS keeps Pebble from deleting files once the store failed: any of them
// might be what a restart needs.
type guardFS struct {
	vfs.FS
	health *health
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

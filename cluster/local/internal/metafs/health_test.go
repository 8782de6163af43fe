package metafs

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"ogw/cluster"
)

// TestCatch: fatal errors and panics of a call into Pebble are its error, and the
// store takes no more writes. Elsewhere a fatal error ends the goroutine.
func TestCatch(t *testing.T) {
	for name, call := range map[string]func(*Health) error{
		"error": func(*Health) error { return io.ErrClosedPipe },
		"fatal": func(h *Health) error { h.Fatalf("%v", io.ErrClosedPipe); return nil },
		"panic": func(*Health) error { panic(io.ErrClosedPipe) },
	} {
		h := NewHealth(slog.New(slog.DiscardHandler))
		told, returned := false, false
		h.OnFailure(func() { told = true })
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			err := h.Catch(func() error { return call(h) })
			returned = true
			if !errors.Is(err, cluster.ErrUnavailable) || !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%s: %v", name, err)
			}
		}()
		<-ended
		if !returned || !told || h.Failure() == nil || h.Err() == nil {
			t.Errorf("%s: returned %t, told %t, %v", name, returned, told, h.Failure())
		}
	}
	h := NewHealth(slog.New(slog.DiscardHandler))
	ended, after := make(chan struct{}), false
	go func() {
		defer close(ended)
		h.Fatalf("the disk is gone: %v", io.ErrClosedPipe)
		after = true
	}()
	<-ended
	if after || h.Failure() == nil || !strings.Contains(h.Failure().Error(), "the disk is gone") {
		t.Errorf("it went on: %t, %v", after, h.Failure())
	}
}

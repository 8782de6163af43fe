package session

import (
	"context"
	"errors"
	"testing"
	"time"

	"ogw/vfs/internal/record"
)

var bg = context.Background()

func TestQuiesceWaitsForOlderViewsAlone(t *testing.T) {
	r := &New(nil, nil).Readers
	old := r.Enter()
	done := make(chan error, 1)
	go func() { done <- r.Quiesce(bg) }()
	for now := old; now == old; { // until it has begun
		now = r.Enter()
		r.Leave(now)
	}
	select {
	case err := <-done:
		t.Fatalf("Quiesce returned %v before an older view ended", err)
	default:
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := r.Quiesce(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Quiesce with an ended context: %v", err)
	}
	newer := r.Enter()
	defer r.Leave(newer)
	r.Leave(old)
	if err := <-done; err != nil {
		t.Errorf("Quiesce after the older view: %v", err)
	}
}

type file struct{ written bool }

func (f *file) Written() bool { return f.written }
func (f *file) Leave()        {}

type inodes struct{ unused []record.Ino }

func (s *inodes) Look(context.Context, record.Ino) (stored, orphan bool, err error) {
	return true, true, nil
}
func (s *inodes) Unused(ino record.Ino) { s.unused = append(s.unused, ino) }

func TestRemovalAndOpening(t *testing.T) {
	store := &inodes{}
	open := &New(nil, store).Open
	mk := func() File { return &file{written: true} }
	if _, err := open.Acquire(bg, 7, mk); err != nil {
		t.Fatal(err)
	}
	r := open.Removals()
	if !r.Begin(7) {
		t.Error("an open file may be removed")
	}
	mark := open.Mark()
	if last, orphan := open.Release(7); !last || !orphan {
		t.Errorf("the last use ends: last %v, orphan %v", last, orphan)
	}
	if open.Get(7) != nil || !open.LeftSince(mark, 7) {
		t.Error("a written file left, and that cannot be told")
	}

	if r.Begin(7) {
		t.Error("a closed file is in use")
	}
	ctx, cancel := context.WithTimeout(bg, time.Millisecond)
	defer cancel()
	if _, err := open.Acquire(ctx, 7, mk); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it is opened while its removal runs: %v", err)
	}
	h := open.NewHolder()
	before := h.Mark()
	r.Committed(bg, true)
	if err := h.Hold(bg, 7, 1, before); err != nil { // the store still has it
		t.Error(err)
	}
	open.MarkOrphan(7)
	h.Close()
	if len(store.unused) != 1 {
		t.Errorf("%d orphans lost their last hold, want 1", len(store.unused))
	}
}

// Who gives some of its holds back has the others still.
func TestReleaseSome(t *testing.T) {
	s := New(nil, &inodes{})
	h := s.Open.NewHolder()
	for range 2 {
		if err := h.Hold(bg, 7, 1, h.Mark()); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []bool{false, true, true} { // the last one has nothing to give back
		if got := h.Release(7, 1); got != want {
			t.Errorf("%d: free is %t", i, got)
		}
	}
}

package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"ogw/cluster"
)

// closeFull writes a file and closes it while the store is full, as a program that
// ignores errors.
func closeFull(t *testing.T, fs *FS, ino Ino) {
	t.Helper()
	f := mustOpen(t, fs, ino, OpenWrite)
	_, err := f.WriteAt(relaxed, []byte("x"), 0)
	want(t, err, nil)
	want(t, f.SaveBehind(relaxed, func() {}), ErrNoSpace)
	if err := f.CloseBehind(relaxed); err != nil {
		want(t, err, ErrNoSpace)
	}
}

// While the store is full, closes that were told so leave no more files to store than
// maxBehind, and have nobody try all of these again each time.
func TestClosedWhileFull(t *testing.T) {
	fs, kv := openBehind(t, nil)
	b := mustLookup(t, fs, RootIno, "bucket").Ino
	ino := mustFile(t, fs, b, "file")
	closedBehind(t, fs, ino, "x", 0)
	kv.err = cluster.ErrNoSpace
	want(t, fs.StoreClosed(relaxed), ErrNoSpace)
	for range 2 * maxBehind {
		closeFull(t, fs, ino)
	}
	if n := fs.behind.len(); n > maxBehind {
		t.Errorf("%d files wait, want %d at most", n, maxBehind)
	}
	select {
	case <-fs.behind.wake:
		t.Error("a pass is wanted at once while the store is full")
	default:
	}
	kv.err = nil
	want(t, fs.StoreClosed(relaxed), nil)
	wantText(t, fs, ino, "x")
	if fs.behind.len() != 0 || fs.opened(ino) != nil {
		t.Error("it is open still")
	}
}

// What was removed needs no room: it does not keep others from being closed.
func TestRemovedWhileFull(t *testing.T) {
	var log bytes.Buffer
	fs, kv := openBehind(t, slog.New(slog.NewTextHandler(&log, nil)))
	b := mustLookup(t, fs, RootIno, "bucket").Ino
	ino := mustFile(t, fs, b, "file")
	closedBehind(t, fs, ino, "one", 0)
	closedBehind(t, fs, ino, "two", 0)
	want(t, fs.Unlink(relaxed, Root, b, "file"), nil)
	kv.err = cluster.ErrNoSpace
	want(t, fs.StoreClosed(relaxed), nil)
	if fs.behind.len() != 0 || fs.opened(ino) != nil {
		t.Error("it is open still")
	}
	if strings.Contains(log.String(), "is lost") {
		t.Errorf("the log says %s", log.String())
	}
	kv.err = nil
}

// keptBehind is a Keeper that counts what it has.
type keptBehind struct{ kept, lost int }

func (k *keptBehind) Reserve(context.Context, int) (func(), error) { return func() {}, nil }
func (k *keptBehind) Keep(*KeptWrite)                              { k.kept++ }
func (k *keptBehind) Stored(Ino, uint64)                           { k.kept = 0 }
func (k *keptBehind) Lost(Ino)                                     { k.lost++ }
func (k *keptBehind) Oldest(Ino) (uint64, bool)                    { return 0, k.kept > 0 }
func (k *keptBehind) ID() uint64                                   { return 7 }

// What a Keeper has for the next process stays with it when a store that is full stops.
func TestClosedBehindIsKept(t *testing.T) {
	var log bytes.Buffer
	fs, kv := openBehind(t, slog.New(slog.NewTextHandler(&log, nil)))
	b := mustLookup(t, fs, RootIno, "bucket").Ino
	f := mustOpen(t, fs, mustFile(t, fs, b, "file"), OpenWrite)
	k := new(keptBehind)
	f.KeepWith(k)
	_, err := f.WriteAt(relaxed, []byte("one"), 0)
	want(t, err, nil)
	want(t, f.SaveBehind(relaxed, func() {}), nil)
	want(t, f.CloseBehind(relaxed), nil)
	kv.err = cluster.ErrNoSpace
	want(t, fs.behind.end(bg), ErrNoSpace)
	if k.kept != 1 || k.lost != 0 || log.Len() > 0 {
		t.Errorf("%d writes are kept, %d lost; the log says %s", k.kept, k.lost, log.String())
	}
	kv.err = nil
}

// Many close at the same time: all end, nothing of what was
// closed is lost, and never more files wait than may.
func TestCloseBehindAtOnce(t *testing.T) {
	fs, _ := openBehind(t, nil)
	b := mustLookup(t, fs, RootIno, "bucket").Ino
	var inos []Ino
	for i := range 8 {
		inos = append(inos, mustFile(t, fs, b, fmt.Sprint("f", i)))
	}
	ctx, stop := context.WithCancel(bg)
	var passes, wait sync.WaitGroup
	passes.Go(func() { fs.behind.run(ctx, fs.log) })
	for i, ino := range inos {
		wait.Go(func() {
			for k := range 1500 {
				f, err := fs.Open(relaxed, Root, ino, OpenWrite)
				if err == nil {
					_, err = f.WriteAt(relaxed, fmt.Appendf(nil, "%4d", k), 0)
				}
				if err == nil {
					err = errors.Join(f.SaveBehind(relaxed, func() {}), f.CloseBehind(relaxed))
				}
				if err != nil {
					t.Errorf("file %d, round %d: %v", i, k, err)
					return
				}
				if n := fs.behind.len(); n > maxBehind {
					t.Errorf("%d files wait", n)
				}
			}
		})
	}
	wait.Wait()
	stop()
	passes.Wait()
	fs.behind.serves.Store(true)
	want(t, fs.StoreClosed(relaxed), nil)
	for _, ino := range inos {
		wantText(t, fs, ino, "1499")
		if fs.opened(ino) != nil {
			t.Error("it is open still")
		}
	}
	if fs.behind.len() != 0 {
		t.Error("files wait still")
	}
}

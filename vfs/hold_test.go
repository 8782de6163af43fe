package vfs

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// mustHold looks name up and holds it.
func mustHold(t testing.TB, fs *FS, h *Holder, dir Ino, name string) Attr {
	t.Helper()
	mark := h.Mark()
	a, err := fs.Lookup(bg, Root, dir, name)
	want(t, err, nil)
	want(t, h.Hold(bg, a.Ino, 1, mark), nil)
	return a
}

// collectAll runs a pass of the collector.
func collectAll(t testing.TB, fs *FS) {
	t.Helper()
	_, err := fs.Collect(bg)
	want(t, err, nil)
}

// countTable returns how many pairs a table has.
func countTable(t testing.TB, fs *FS, tab byte) (n int) {
	t.Helper()
	want(t, fs.view(bg, func(r cluster.Reader) error {
		n = 0
		return r.Scan([]byte{tab}, []byte{tab + 1}, cluster.ScanOptions{KeysOnly: true}, func(_, _ []byte) error { n++; return nil })
	}), nil)
	return n
}

// TestHeldInodesStay removes an inode of each kind, in each way, while it is
// held, and looks when it goes.
func TestHeldInodesStay(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		top := mustMkdir(t, fs, RootIno, "bucket")
		makers := map[string]func(name string) error{
			"file": func(n string) error {
				_, _, _, err := fs.Create(bg, Root, top, n, CreateOptions{NoOpen: true})
				return err
			},
			"dir": func(n string) error { _, err := fs.Mkdir(bg, Root, top, n, 0o755); return err },
			"fifo": func(n string) error {
				_, err := fs.Mknod(bg, Root, top, n, NodeOptions{Mode: ModeFIFO | 0o644})
				return err
			},
			"symlink": func(n string) error { _, err := fs.Symlink(bg, Root, top, n, "x"); return err },
		}
		for kind, mk := range makers {
			removers := map[string]func(name string) error{
				"unlink": func(n string) error {
					if kind == "dir" {
						return fs.Rmdir(bg, Root, top, n)
					}
					return fs.Unlink(bg, Root, top, n)
				},
				"rename": func(n string) error {
					if err := mk("other"); err != nil {
						return err
					}
					return fs.Rename(bg, Root, EntryName{top, "other"}, EntryName{top, n}, 0)
				},
			}
			for how, remove := range removers {
				h, other := fs.NewHolder(), fs.NewHolder()
				want(t, mk("x"), nil)
				a := mustHold(t, fs, h, top, "x")
				mustHold(t, fs, h, top, "x")
				mustHold(t, fs, other, top, "x")
				want(t, remove("x"), nil)
				for i, release := range []func(){func() { h.Release(a.Ino, 1) }, func() { h.Release(a.Ino, 1) }, other.Close} {
					collectAll(t, fs)
					got, err := fs.GetAttr(bg, a.Ino)
					if err != nil || got.Nlink != 0 {
						t.Fatalf("%s after %s and %d releases: %d links, %v", kind, how, i, got.Nlink, err)
					}
					release()
				}
				collectAll(t, fs)
				_, err := fs.GetAttr(bg, a.Ino)
				want(t, err, ErrStale)
				h.Close()
				if how == "rename" {
					want(t, removers["unlink"]("x"), nil)
				}
			}
		}
		r, err := fs.Check(bg, CheckOptions{})
		want(t, err, nil)
		if len(r.Problems) > 0 {
			t.Errorf("check: %v", r.Problems)
		}
	})
}

// TestRemovedDirectory asks a directory that was removed and is held.
func TestRemovedDirectory(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		top := mustMkdir(t, fs, RootIno, "bucket")
		d := mustMkdir(t, fs, top, "d")
		file := mustFile(t, fs, top, "f")
		h := fs.NewHolder()
		defer h.Close()
		mustHold(t, fs, h, top, "d")
		want(t, fs.Rmdir(bg, Root, top, "d"), nil)
		_, err := fs.Lookup(bg, Root, d, "x")
		want(t, err, ErrNotExist)
		_, err = fs.Lookup(bg, NewCred(1, 0), d, "x")
		want(t, err, ErrNotExist)
		_, err = fs.Mkdir(bg, Root, d, "x", 0o755)
		want(t, err, ErrNotExist)
		_, _, _, err = fs.Create(bg, Root, d, "x", CreateOptions{})
		want(t, err, ErrNotExist)
		_, _, err = fs.OpenTemp(bg, Root, d, 0o644, OpenWrite)
		want(t, err, ErrNotExist)
		_, err = fs.Link(bg, Root, file, d, "x")
		want(t, err, ErrNotExist)
		want(t, fs.Rename(bg, Root, EntryName{top, "f"}, EntryName{d, "x"}, 0), ErrNotExist)
		want(t, fs.ReadDir(bg, Root, d, ReadDirOptions{}, func(DirEntry) error { return nil }), ErrNotExist)
		mode := uint32(0o700)
		a, err := fs.SetAttr(bg, Root, d, SetAttr{Mode: &mode})
		want(t, err, nil)
		if a.Mode != ModeDirectory|0o700 || a.Nlink != 0 {
			t.Errorf("attributes %+v", a)
		}
	})
}

// TestHeldAndOpen ends the last use of an unlinked file in both orders.
func TestHeldAndOpen(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		for _, closeFirst := range []bool{true, false} {
			top := mustMkdir(t, fs, RootIno, fmt.Sprint("bucket", closeFirst))
			h := fs.NewHolder()
			mark := h.Mark()
			a, f, _, err := fs.Create(bg, Root, top, "f", CreateOptions{Flags: OpenRead | OpenWrite})
			want(t, err, nil)
			want(t, h.Hold(bg, a.Ino, 1, mark), nil)
			_, err = f.WriteAt(bg, []byte("text"), 0)
			want(t, err, nil)
			want(t, fs.Unlink(bg, Root, top, "f"), nil)
			if closeFirst {
				want(t, f.Close(bg), nil)
				again, err := fs.Open(bg, Root, a.Ino, OpenRead)
				want(t, err, nil)
				b := make([]byte, 4)
				if _, err := again.ReadAt(bg, b, 0); string(b) != "text" {
					t.Fatalf("read %q, %v", b, err)
				}
				want(t, again.Close(bg), nil)
				h.Close()
			} else {
				h.Close()
				collectAll(t, fs)
				_, err = fs.GetAttr(bg, a.Ino)
				want(t, err, nil)
				want(t, f.Close(bg), nil)
			}
			collectAll(t, fs)
			_, err = fs.GetAttr(bg, a.Ino)
			want(t, err, ErrStale)
		}
	})
}

// TestHoldsOverRestart restores what another process held.
func TestHoldsOverRestart(t *testing.T) {
	c := mem.New(mem.Options{})
	first := openTest(t, c)
	top := mustMkdir(t, first, RootIno, "bucket")
	held, lost := mustMkdir(t, first, top, "held"), mustMkdir(t, first, top, "lost")
	h := first.NewHolder()
	mustHold(t, first, h, top, "held")
	mustHold(t, first, h, top, "lost")
	want(t, first.Rmdir(bg, Root, top, "held"), nil)
	want(t, first.Rmdir(bg, Root, top, "lost"), nil)
	counts := map[Ino]uint64{}
	h.Each(func(ino Ino, n uint64) { counts[ino] = n })
	if len(counts) != 2 || counts[held] != 1 {
		t.Fatalf("holds are %v", counts)
	}

	second, err := Open(bg, c, Config{NoBackground: true, Restore: func(ctx context.Context, fs *FS) error {
		h = fs.NewHolder()
		want(t, h.Restore(ctx, 1<<40, 1), ErrStale)
		return h.Restore(ctx, held, counts[held]+3)
	}})
	want(t, err, nil)
	collectAll(t, second)
	_, err = second.GetAttr(bg, held)
	want(t, err, nil)
	_, err = second.GetAttr(bg, lost)
	want(t, err, ErrStale)
	h.Close()
	collectAll(t, second)
	_, err = second.GetAttr(bg, held)
	want(t, err, ErrStale)
}

// TestHoldsBesideRemovals looks names up and holds them while others replace
// and remove them: what is held must answer.
func TestHoldsBesideRemovals(t *testing.T) {
	fs, err := Open(bg, mem.New(mem.Options{}), Config{}) // with the queue of orphans
	want(t, err, nil)
	defer fs.Close(bg)
	top := mustMkdir(t, fs, RootIno, "bucket")
	const rounds, names = 3000, 3
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for w := range 2 {
		writers.Go(func() {
			for i := range rounds {
				name := fmt.Sprint("f", i%names)
				mine := fmt.Sprint("w", w)
				if _, err := fs.Mknod(bg, Root, top, mine, NodeOptions{Mode: ModeRegular | 0o644}); err != nil {
					t.Error(err)
				}
				if err := fs.Rename(bg, Root, EntryName{top, mine}, EntryName{top, name}, 0); err != nil {
					t.Error(err)
				}
				if i%7 == 0 {
					if err := fs.Unlink(bg, Root, top, name); err != nil && !errors.Is(err, ErrNotExist) {
						t.Error(err)
					}
				}
			}
		})
	}
	var held, again int
	var mu sync.Mutex
	for range 3 {
		readers.Go(func() {
			h := fs.NewHolder()
			defer h.Close()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				mark := h.Mark()
				a, err := fs.Lookup(bg, Root, top, fmt.Sprint("f", i%names))
				if errors.Is(err, ErrNotExist) {
					continue
				}
				want(t, err, nil)
				err = h.Hold(bg, a.Ino, 1, mark)
				mu.Lock()
				if err == nil {
					held++
				} else {
					again++
				}
				mu.Unlock()
				if errors.Is(err, ErrStale) {
					continue
				}
				want(t, err, nil)
				runtime.Gosched()
				if _, err := fs.GetAttr(bg, a.Ino); err != nil {
					t.Errorf("held inode %d: %v", a.Ino, err)
				}
				h.Release(a.Ino, 1)
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	t.Logf("%d held, %d looked up again", held, again)
	if held == 0 {
		t.Error("nothing was held")
	}
	for i := range names {
		if err := fs.Unlink(bg, Root, top, fmt.Sprint("f", i)); err != nil && !errors.Is(err, ErrNotExist) {
			t.Error(err)
		}
	}
	fs.orphans.Again()
	collectAll(t, fs) // beside the queue
	if n := countTable(t, fs, record.TabOrphan); n != 0 {
		t.Errorf("%d orphans are left", n)
	}
	if n := countTable(t, fs, record.TabInode); n != 2 {
		t.Errorf("%d inodes are left, want the root and the bucket", n)
	}
}

// BenchmarkHold is what a lookup pays.
func BenchmarkHold(b *testing.B) {
	fs := openTest(b, mem.New(mem.Options{}))
	h := fs.NewHolder()
	defer h.Close()
	ino := mustMkdir(b, fs, RootIno, "bucket")
	for b.Loop() {
		if err := h.Hold(bg, ino, 1, h.Mark()); err != nil {
			b.Fatal(err)
		}
	}
}

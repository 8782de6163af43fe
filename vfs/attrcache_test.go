package vfs

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// TestAttrCacheIsNeverBehind changes files from several goroutines while
// others keep their attributes in use: the caller that changed something must see it.
func TestAttrCacheIsNeverBehind(t *testing.T) {
	fs := openTest(t, openLocal(t))
	ctx := context.Background()
	const files, rounds = 8, 60
	inos := make([]Ino, files)
	for i := range inos {
		inos[i] = mustFile(t, fs, RootIno, fmt.Sprintf("f%d", i))
	}
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	for range 4 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := fs.GetAttr(ctx, inos[i%files]); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	for i, ino := range inos {
		writers.Add(1)
		go func() {
			defer writers.Done()
			if err := changeAndLook(ctx, fs, ino, i, rounds); err != nil {
				t.Errorf("file %d: %v", i, err)
			}
		}()
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	if _, ok := fs.TryAttr(inos[0]); !ok {
		t.Error("nothing is remembered")
	}
}

// changeAndLook changes mode, size and content of a file in turns.
func changeAndLook(ctx context.Context, fs *FS, ino Ino, seed, rounds int) error {
	f, err := fs.Open(ctx, Root, ino, OpenRead|OpenWrite)
	if err != nil {
		return err
	}
	size := int64(0)
	for round := range rounds {
		mode := uint32(0o600 + (seed+round)%8)
		switch round % 4 {
		case 0:
			if _, err := fs.SetAttr(ctx, Root, ino, SetAttr{Mode: &mode}); err != nil {
				return err
			}
			if a, err := fs.GetAttr(ctx, ino); err != nil || a.Mode&ModePermMask != mode {
				return fmt.Errorf("round %d: mode %o, want %o: %w", round, a.Mode, mode, err)
			}
			continue
		case 1:
			n, err := f.WriteAt(ctx, make([]byte, 1000+round), size)
			if err != nil {
				return err
			}
			size += int64(n)
		case 2:
			if err := f.Sync(ctx); err != nil {
				return err
			}
		case 3:
			size /= 2
			if _, err := fs.SetAttr(ctx, Root, ino, SetAttr{Size: &size}); err != nil {
				return err
			}
		}
		if a, err := fs.GetAttr(ctx, ino); err != nil || a.Size != size {
			return fmt.Errorf("round %d: size %d, want %d: %w", round, a.Size, size, err)
		}
	}
	return f.Close(ctx)
}

// TestAttrCacheForgets what is removed, and what was asked to be dropped.
func TestAttrCacheForgets(t *testing.T) {
	fs := openTest(t, openLocal(t))
	ctx := context.Background()
	ino := mustFile(t, fs, RootIno, "f")
	known := func() bool {
		if _, err := fs.GetAttr(ctx, ino); err != nil {
			t.Fatal(err)
		}
		_, ok := fs.TryAttr(ino)
		return ok
	}
	if !known() {
		t.Fatal("nothing is remembered")
	}
	if _, err := fs.Purge(ctx, "f"); err != nil {
		t.Fatal(err)
	}
	if _, ok := fs.TryAttr(ino); ok {
		t.Error("remembered after a purge")
	}
	if !known() {
		t.Fatal("nothing is remembered after a purge")
	}
	want(t, fs.Unlink(ctx, Root, RootIno, "f"), nil)
	_, err := fs.GetAttr(ctx, ino)
	want(t, err, ErrStale)
}

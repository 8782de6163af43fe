package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"ogw/cluster/local"
	"ogw/vfs/internal/content"
)

// fileRaceOps is how many operations TestFileBesideBackground does; more with
// OGW_FILE_OPS.
const fileRaceOps = 4000

// TestFileBesideBackground changes one file in every way and compares all of
// it with a model, while the flusher, the collector and the compaction run
// without pause, and somebody else changes the file's attributes.
func TestFileBesideBackground(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	ops := fileRaceOps
	if n, err := strconv.Atoi(os.Getenv("OGW_FILE_OPS")); err == nil {
		ops = n
	}
	t.Logf("seed %d", seed)
	c, err := local.Open(bg, local.Options{Dir: t.TempDir()})
	want(t, err, nil)
	fs, err := Open(bg, c, Config{NoBackground: true})
	want(t, err, nil)
	ctx, cancel := context.WithCancel(bg)
	var others sync.WaitGroup
	defer func() {
		cancel()
		others.Wait()
		want(t, fs.Close(bg), nil)
		want(t, c.Close(), nil)
	}()
	a, f, _, err := fs.Create(bg, Root, RootIno, "f", CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	want(t, err, nil)
	defer f.Close(bg)
	beside := func(name string, pause time.Duration, fn func() error) {
		others.Go(func() {
			for ctx.Err() == nil {
				if err := fn(); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				time.Sleep(pause)
			}
		})
	}
	beside("flush", 300*time.Microsecond, func() error {
		return fs.flushWhere(ctx, func(*openFile) bool { return true })
	})
	beside("collect", 2*time.Millisecond, func() error { _, err := fs.Collect(ctx); return err })
	beside("compact", 2*time.Millisecond, func() error {
		if err := fs.contents.CompactFile(ctx, a.Ino, 8, content.CompactWindow); err != nil && !errors.Is(err, ErrStale) {
			return err
		}
		return nil
	})
	mode := uint32(0o600)
	beside("chmod", 500*time.Microsecond, func() error {
		mode ^= 0o40
		_, err := fs.SetAttr(ctx, Root, a.Ino, SetAttr{Mode: &mode})
		return err
	})
	r := rand.New(rand.NewPCG(seed, 7))
	const size = 400 << 10
	var model []byte
	var log []string
	for n := range ops {
		off := int64(r.IntN(min(size, len(model)+len(model)/4+100)))
		k := int64(1 + r.IntN(min(size-int(off), []int{100, 5000, 70000}[r.IntN(3)])))
		grow := func(to int64) {
			if to > int64(len(model)) {
				model = append(model, make([]byte, to-int64(len(model)))...)
			}
		}
		what := ""
		switch r.IntN(8) {
		case 0, 1, 2:
			what = fmt.Sprintf("write %d at %d", k, off)
			b := bytes.Repeat([]byte{byte(1 + r.IntN(255))}, int(k))
			_, err = f.WriteAt(bg, b, off)
			grow(off + k)
			copy(model[off:], b)
		case 3:
			to := int64(r.IntN(len(model) + 1))
			what = fmt.Sprintf("truncate to %d", to)
			_, err = fs.SetAttr(bg, Root, a.Ino, SetAttr{Size: &to})
			model = model[:to]
		case 4:
			what = fmt.Sprintf("punch %d at %d", k, off)
			err = f.Allocate(bg, AllocPunchHole|AllocKeepSize, off, k)
			if off < int64(len(model)) {
				clear(model[off:min(off+k, int64(len(model)))])
			}
		case 5, 6:
			if len(model) == 0 {
				continue
			}
			from := int64(r.IntN(len(model)))
			k = min(int64(len(model))-from, 1+int64(r.IntN(100000)))
			to := int64(r.IntN(int(size - k + 1)))
			if from < to+k && to < from+k {
				continue
			}
			what = fmt.Sprintf("copy %d from %d to %d", k, from, to)
			var got int64
			got, err = f.CopyRange(bg, to, f, from, k)
			if err == nil && got != k {
				err = fmt.Errorf("copied %d", got)
			}
			grow(to + k)
			copy(model[to:to+k], bytes.Clone(model[from:from+k]))
		case 7:
			what = "sync"
			err = f.Sync(bg)
		}
		if log = append(log, what); len(log) > 40 {
			log = log[1:]
		}
		if err != nil {
			t.Fatalf("seed %d, operation %d: %s: %v", seed, n, what, err)
		}
		if n%4 > 0 {
			continue
		}
		got := make([]byte, len(model)+1)
		m, err := f.ReadAt(bg, got, 0)
		if !errors.Is(err, io.EOF) || m != len(model) || !bytes.Equal(got[:m], model) {
			i := 0
			for i < m && i < len(model) && got[i] == model[i] {
				i++
			}
			t.Fatalf("seed %d, operation %d: read %d of %d bytes, %v; wrong from %d\n%q", seed, n, m, len(model), err, i, log)
		}
	}
	report, err := fs.Check(bg, CheckOptions{})
	want(t, err, nil)
	if len(report.Problems) > 0 {
		t.Errorf("%+v", report.Problems)
	}
}

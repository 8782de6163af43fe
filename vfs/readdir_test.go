package vfs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
)

// Entries that stay are shown exactly once while others come and go.
func TestReadDirWhileChanging(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	d := mustMkdir(t, fs, RootIno, "d")
	const stay = 3000 // more than one page of each size
	for i := range stay {
		mustFile(t, fs, d, fmt.Sprintf("stay%05d", i))
		if i%3 == 0 {
			mustFile(t, fs, d, fmt.Sprintf("go%05d", i))
		}
	}
	seen := map[string]int{}
	i := 0
	want(t, fs.ReadDir(bg, Root, d, ReadDirOptions{}, func(e DirEntry) error {
		seen[e.Name]++
		i++
		if i%10 == 0 {
			mustFile(t, fs, d, fmt.Sprintf("new%05d", i)) // fn may call back
		}
		if e.Name[0] == 'g' {
			want(t, fs.Unlink(bg, Root, d, e.Name), nil) // the position stays good
		}
		return nil
	}), nil)
	for i := range stay {
		if n := seen[fmt.Sprintf("stay%05d", i)]; n != 1 {
			t.Fatalf("entry %d was shown %d times", i, n)
		}
	}
}

func TestReadDirPositions(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		d := mustMkdir(t, fs, RootIno, "d")
		mustImplied(t, fs, d, "a")
		mustImplied(t, fs, d, "a", "x")
		mustImplied(t, fs, d, "", "x")
		mustImplied(t, fs, d, "a!")
		var one []string
		for after := ""; ; {
			n := 0
			want(t, fs.ReadDir(bg, Root, d, ReadDirOptions{After: after}, func(e DirEntry) error {
				n++
				after = e.Pos
				one = append(one, e.Name)
				return cluster.ErrStop
			}), nil)
			if n == 0 {
				break
			}
		}
		if w := []string{".ogw~e~", ".ogw~f~a", "a!", "a"}; !slices.Equal(one, w) {
			t.Errorf("one by one: %q, want %q", one, w)
		}
		want(t, fs.ReadDir(bg, Root, mustLookup(t, fs, d, "a!").Ino, ReadDirOptions{}, nil), ErrNotDir)
	})
}

// A listing reads as many entries as its caller said that it takes, and not the rest of a page.
func TestReadDirFew(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	d := mustMkdir(t, fs, RootIno, "d")
	const names = maxPage + 600
	for i := range names {
		mustFile(t, fs, d, fmt.Sprintf("f%05d", i))
	}
	scanned := 0
	hook(fs).reader = func(r cluster.Reader) cluster.Reader { return &scanCounter{r, &scanned} }
	for _, few := range []int{1, 26, maxPage, maxPage + 300} {
		scanned = 0
		n := 0
		want(t, fs.ReadDir(bg, Root, d, ReadDirOptions{Few: few, Attrs: true}, func(DirEntry) error {
			if n++; n == few {
				return cluster.ErrStop
			}
			return nil
		}), nil)
		if n != few || scanned != few {
			t.Errorf("%d entries of %d were taken, %d read", n, few, scanned)
		}
		n = 0
		want(t, fs.ReadDir(bg, Root, d, ReadDirOptions{Few: few}, func(DirEntry) error { n++; return nil }), nil)
		if n != names {
			t.Errorf("few are %d: %d entries, want %d", few, n, names)
		}
	}
}

// scanCounter counts the pairs that scans meet.
type scanCounter struct {
	cluster.Reader
	n *int
}

func (s *scanCounter) Scan(start, end []byte, o cluster.ScanOptions, fn func(key, value []byte) error) error {
	return s.Reader.Scan(start, end, o, func(k, v []byte) error {
		*s.n++
		return fn(k, v)
	})
}

func TestDirectoryTimes(t *testing.T) {
	now := time.Unix(1000, 0)
	c := mem.New(mem.Options{})
	fs, err := Open(bg, c, Config{NoBackground: true, Now: func() time.Time { return now }})
	want(t, err, nil)
	defer c.Close()
	defer fs.Close(bg)
	tick := func() int64 { now = now.Add(time.Second); return now.UnixNano() }
	t0 := tick()
	d := mustMkdir(t, fs, RootIno, "d")
	check := func(what string, mtime, ctime int64) {
		t.Helper()
		a, err := fs.GetAttr(bg, d)
		want(t, err, nil)
		if a.Mtime.UnixNS() != mtime || a.CtimeNS != ctime {
			t.Errorf("%s: mtime %d, ctime %d; want %d, %d", what, a.Mtime.UnixNS(), a.CtimeNS, mtime, ctime)
		}
	}
	check("made", t0, t0)
	t1 := tick()
	mustFile(t, fs, d, "f")
	check("entry made", t1, t1)
	t2 := tick()
	_, err = fs.SetAttr(bg, Root, d, SetAttr{Mode: ptr(uint32(0o700))})
	want(t, err, nil)
	check("chmod", t1, t2)
	t3 := tick()
	_, err = fs.SetAttr(bg, Root, d, SetAttr{Mtime: ptr(TimeNS(5)), Atime: ptr(TimeNS(6))})
	want(t, err, nil)
	check("utimes", 5, t3)
	t4 := tick()
	want(t, fs.Unlink(bg, Root, d, "f"), nil)
	check("entry removed", t4, t4)
	if a, _ := fs.GetAttr(bg, d); a.Atime.UnixNS() != 6 || a.BtimeNS != t0 {
		t.Errorf("atime %d, birth %d", a.Atime.UnixNS(), a.BtimeNS)
	}
}

// countingKV counts how often transactions ran.
type countingKV struct {
	cluster.KV
	attempts atomic.Int64
}

func (k *countingKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	return k.KV.Update(ctx, func(t cluster.Txn) error {
		k.attempts.Add(1)
		return fn(t)
	})
}

// Creates and removals in one directory at the same time do not conflict.
func TestCreatesDoNotConflict(t *testing.T) {
	c := mem.New(mem.Options{Latency: 100 * time.Microsecond})
	kv := &countingKV{KV: c.KV}
	c.KV = kv
	fs := openTest(t, c)
	b := mustMkdir(t, fs, RootIno, "bucket")
	mustImplied(t, fs, b, "dir", "sub", "first")
	d := mustLookup(t, fs, b, "dir").Ino
	sub := mustLookup(t, fs, d, "sub").Ino
	start := kv.attempts.Load()
	const workers, each = 16, 40
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				name := fmt.Sprintf("f%d-%d", w, i)
				switch i % 4 {
				case 0:
					mustFile(t, fs, sub, name)
				case 1:
					mustImplied(t, fs, b, "dir", "sub", name)
				case 2:
					mustMkdir(t, fs, sub, name)
				default:
					_, err := fs.Symlink(bg, Root, sub, name, "x")
					want(t, err, nil)
				}
			}
		})
	}
	wg.Wait()
	if n := kv.attempts.Load() - start; n != workers*each {
		t.Errorf("%d transactions ran %d times", workers*each, n)
	}
}

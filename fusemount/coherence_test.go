package fusemount

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ogw/vfs"
)

// coherenceKeys are few, so that names come and go and are replaced often.
const coherenceKeys = 12

type randomDoors struct {
	t     *testing.T
	fs    *vfs.FS
	dir   string
	r     *rand.Rand
	state map[string]string // key to content; what the bucket holds
}

func keyName(i int) string {
	if i%3 == 0 {
		return fmt.Sprintf("sub%d/f%d", i%2, i)
	}
	return fmt.Sprintf("f%d", i)
}

// With names, absent names and attributes cached for a minute, a change made
// through another door is seen by the next system call.
func TestCoherence(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		fs, dir := mountBucket(t, over)
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		c := &randomDoors{t: t, fs: fs, dir: dir, r: rand.New(rand.NewPCG(seed, 3)), state: map[string]string{}}
		steps := 3000
		if testing.Short() {
			steps = 300
		}
		for i := range steps {
			changed := c.change(i)
			for _, k := range changed {
				c.check(i, k)
			}
			c.check(i, keyName(c.r.IntN(coherenceKeys)))
			if i%50 == 0 {
				c.checkListing(i)
			}
			if t.Failed() {
				return
			}
		}
	})
}

// change does one random change through the object or POSIX interface and
// returns the keys that it concerned.
func (c *randomDoors) change(i int) []string {
	k := keyName(c.r.IntN(coherenceKeys))
	switch c.r.IntN(6) {
	case 0, 1, 2:
		body := bytes.Repeat([]byte(fmt.Sprintf("%d.", i)), 1+c.r.IntN(3000))
		_, err := c.fs.PutObject(bg, vfs.ObjectName{Bucket: "bucket", Key: k}, bytes.NewReader(body), vfs.PutOptions{Size: int64(len(body)), Owner: vfs.Root})
		if err != nil {
			c.t.Fatalf("step %d: put %s: %v", i, k, err)
		}
		c.state[k] = string(body)
	case 3:
		if _, err := c.fs.DeleteObject(bg, vfs.ObjectName{Bucket: "bucket", Key: k}, vfs.DeleteOptions{}); err != nil {
			c.t.Fatalf("step %d: delete %s: %v", i, k, err)
		}
		delete(c.state, k)
	case 4:
		return c.rename(i, k, keyName(c.r.IntN(coherenceKeys)))
	case 5:
		c.write(i, k)
	}
	return []string{k}
}

func (c *randomDoors) parent(key string) (vfs.Ino, bool) {
	a, err := c.fs.Resolve(bg, vfs.Root, "bucket/"+filepath.Dir(key), true)
	return a.Ino, err == nil
}

func (c *randomDoors) rename(i int, from, to string) []string {
	body, ok := c.state[from]
	fromDir, ok1 := c.parent(from)
	toDir, ok2 := c.parent(to)
	if !ok || !ok1 || !ok2 || from == to {
		return []string{from}
	}
	err := c.fs.Rename(bg, vfs.Root, vfs.EntryName{Dir: fromDir, Name: filepath.Base(from)}, vfs.EntryName{Dir: toDir, Name: filepath.Base(to)}, 0)
	if err != nil {
		c.t.Fatalf("step %d: rename %s %s: %v", i, from, to, err)
	}
	delete(c.state, from)
	c.state[to] = body
	return []string{from, to}
}

// write changes a file as NFS would: through an open file of the VFS.
func (c *randomDoors) write(i int, k string) {
	body, ok := c.state[k]
	if !ok {
		return
	}
	a, err := c.fs.Resolve(bg, vfs.Root, "bucket/"+k, true)
	if err != nil {
		c.t.Fatalf("step %d: resolve %s: %v", i, k, err)
	}
	f, err := c.fs.Open(bg, vfs.Root, a.Ino, vfs.OpenRead|vfs.OpenWrite)
	if err != nil {
		c.t.Fatalf("step %d: open %s: %v", i, k, err)
	}
	off := c.r.IntN(len(body) + 1)
	patch := fmt.Sprintf("<%d>", i)
	if _, err := f.WriteAt(bg, []byte(patch), int64(off)); err != nil {
		c.t.Fatalf("step %d: write %s: %v", i, k, err)
	}
	c.state[k] = body[:off] + patch + body[min(len(body), off+len(patch)):]
	c.check(i, k) // also before it is closed
	if err := f.Close(bg); err != nil {
		c.t.Fatalf("step %d: close %s: %v", i, k, err)
	}
}

// check compares one file through the mount with what it must be: stat
// first, so that a stale name or size shows.
func (c *randomDoors) check(i int, k string) {
	c.t.Helper()
	want, exists := c.state[k]
	name := filepath.Join(c.dir, k)
	info, err := os.Lstat(name)
	switch {
	case !exists && !errors.Is(err, os.ErrNotExist):
		c.t.Errorf("step %d: %s is gone, but lstat: %v", i, k, err)
		return
	case !exists:
		return
	case err != nil:
		c.t.Errorf("step %d: lstat %s: %v", i, k, err)
		return
	case info.Size() != int64(len(want)):
		c.t.Errorf("step %d: %s has size %d, want %d", i, k, info.Size(), len(want))
		return
	}
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		c.t.Errorf("step %d: %s holds %.30q… (%d bytes), %v; want %.30q… (%d)", i, k, got, len(got), err, want, len(want))
	}
}

func (c *randomDoors) checkListing(i int) {
	c.t.Helper()
	seen := 0
	err := filepath.WalkDir(c.dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(c.dir, p)
		if _, ok := c.state[rel]; !ok {
			c.t.Errorf("step %d: %s is listed, but gone", i, rel)
		}
		seen++
		return nil
	})
	if err != nil {
		c.t.Errorf("step %d: walk: %v", i, err)
	}
	if seen != len(c.state) {
		c.t.Errorf("step %d: %d files listed, want %d", i, seen, len(c.state))
	}
}

// Readers hammer the mount while another door replaces objects: after each
// put returned, no reader may find an older one. This is the race between a
// reply on its way and the notification.
func TestCoherenceUnderLoad(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		fs, dir := mountBucket(t, over)
		const objects = 4
		var done [objects]atomic.Int64 // generation that was acknowledged
		var stop atomic.Bool
		var wg sync.WaitGroup
		put := func(o int, gen int64) {
			body := bytes.Repeat([]byte{byte('a' + gen%26)}, int(gen))
			key := fmt.Sprintf("o%d", o)
			if gen%5 == 0 { // a new inode, which the kernel does not know
				if _, err := fs.DeleteObject(bg, vfs.ObjectName{Bucket: "bucket", Key: key}, vfs.DeleteOptions{}); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
			if _, err := fs.PutObject(bg, vfs.ObjectName{Bucket: "bucket", Key: key}, bytes.NewReader(body), vfs.PutOptions{Size: gen}); err != nil {
				t.Errorf("put: %v", err)
			}
			done[o].Store(gen)
		}
		for o := range objects {
			put(o, 1)
			for range 2 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					name := filepath.Join(dir, fmt.Sprintf("o%d", o))
					for !stop.Load() {
						before := done[o].Load()
						f, err := os.Open(name)
						if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESTALE) {
							continue // between delete and put
						}
						if err != nil {
							t.Errorf("open: %v", err)
							return
						}
						b, err := io.ReadAll(f)
						f.Close()
						if err != nil && !errors.Is(err, syscall.ESTALE) {
							t.Errorf("read: %v", err)
						}
						if err == nil && int64(len(b)) < before {
							t.Errorf("object %d: read generation %d after %d was acknowledged", o, len(b), before)
							return
						}
						info, err := os.Lstat(name)
						if err == nil && info.Size() < before {
							t.Errorf("object %d: stat shows generation %d after %d was acknowledged", o, info.Size(), before)
							return
						}
					}
				}()
			}
		}
		end := time.Now().Add(3 * time.Second)
		for gen := int64(2); time.Now().Before(end) && !t.Failed(); gen++ {
			for o := range objects {
				put(o, gen)
			}
		}
		stop.Store(true)
		wg.Wait()
		t.Logf("%d generations", done[0].Load())
	})
}

// twoMountRounds of each program of TestTwoMounts.
const twoMountRounds = 40

// warnings counts what a logger is warned of.
type warnings struct {
	slog.Handler
	n *atomic.Int32
}

func (w warnings) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		w.n.Add(1)
	}
	return w.Handler.Handle(ctx, r)
}

// Two mounts of one process work on one directory and on one page at a time.
// Each finds what the other did by its next system call, and none waits for one
// that waits for it: that would end after tellWait, with a warning.
func TestTwoMounts(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		for name, beside := range map[string]Options{
			"shared":     {Transport: over},
			"own caches": {Transport: over, EntryTimeout: 50 * time.Second},
			"own ring":   {Transport: TransportRing, AttrTimeout: 50 * time.Second},
		} {
			t.Run(name, func(t *testing.T) {
				needTransport(t, beside.Transport)
				var warned atomic.Int32
				log := slog.New(warnings{testLogger(t).Handler(), &warned})
				m := NewMounts(openFS(t))
				beside.Logger = log
				one, _ := mountOf(t, m, Options{Transport: over, Logger: log})
				two, _ := mountOf(t, m, beside)
				must(t, os.Mkdir(filepath.Join(one, "b"), 0o755))
				write(t, filepath.Join(two, "b", "page"), strings.Repeat("-", 64))
				var wg sync.WaitGroup
				for g := range 4 {
					mine, other := filepath.Join(one, "b"), filepath.Join(two, "b")
					if g%2 == 1 {
						mine, other = other, mine
					}
					wg.Go(func() {
						for i := range twoMountRounds {
							if err := handOverNames(mine, other, fmt.Sprintf("g%d-%d", g, i%5)); err != nil {
								t.Errorf("%d, round %d: %v", g, i, err)
								return
							}
							if err := handOverBytes(mine, other, 16*g, fmt.Sprintf("%d:%06d", g, i)); err != nil {
								t.Errorf("%d, round %d: %v", g, i, err)
								return
							}
						}
					})
				}
				inTime(t, "both", wg.Wait)
				if warned.Load() > 0 {
					t.Errorf("%d warnings", warned.Load())
				}
			})
		}
	})
}

// handOverNames makes, renames and removes through one directory, and looks
// through the other.
func handOverNames(mine, other, name string) error {
	from, to := filepath.Join(mine, name), filepath.Join(mine, name+"-moved")
	if err := os.WriteFile(from, []byte(name), 0o644); err != nil {
		return err
	}
	if b, err := os.ReadFile(filepath.Join(other, name)); err != nil || string(b) != name {
		return fmt.Errorf("made: %q, %w", b, err)
	}
	if err := syscall.Rename(from, to); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(other, name)); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the old name: %w", err)
	}
	if _, err := os.ReadDir(other); err != nil {
		return err
	}
	if err := os.Chmod(to, 0o600); err != nil {
		return err
	}
	if i, err := os.Lstat(filepath.Join(other, name+"-moved")); err != nil || i.Mode() != 0o600 {
		return fmt.Errorf("the new name: %v, %w", i, err)
	}
	return syscall.Unlink(to)
}

// handOverBytes writes a part of a page that everybody writes.
func handOverBytes(mine, other string, off int, text string) error {
	f, err := os.OpenFile(filepath.Join(mine, "page"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), int64(off)); err != nil {
		return err
	}
	for _, dir := range []string{other, mine} {
		if b, err := os.ReadFile(filepath.Join(dir, "page")); err != nil || len(b) != 64 || string(b[off:off+len(text)]) != text {
			return fmt.Errorf("the page is %q, %w; want %q at %d", b, err, text, off)
		}
	}
	return nil
}

// Directories that S3 implied vanish with their last entry where S3 removes it,
// and stay where a program does, which may be at work in them.
func TestImpliedDirectories(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		fs, dir := mountBucket(t, over)
		put := func(key string) {
			t.Helper()
			_, err := fs.PutObject(bg, vfs.ObjectName{Bucket: "bucket", Key: key}, bytes.NewReader([]byte("x")), vfs.PutOptions{Size: 1})
			must(t, err)
		}
		put("a/b/c/f")
		put("a/b/g")
		if err := run(t, "rm", "-r", filepath.Join(dir, "a")); err != nil {
			t.Error(err)
		}
		put("d/e/f")
		must(t, os.Remove(filepath.Join(dir, "d/e/f")))
		must(t, os.WriteFile(filepath.Join(dir, "d/e/g"), nil, 0o644))
		put("g/h/f")
		if _, err := os.Stat(filepath.Join(dir, "g/h/f")); err != nil {
			t.Error(err)
		}
		_, err := fs.DeleteObject(bg, vfs.ObjectName{Bucket: "bucket", Key: "g/h/f"}, vfs.DeleteOptions{})
		must(t, err)
		must(t, os.Mkdir(filepath.Join(dir, "g"), 0o755))
	})
}

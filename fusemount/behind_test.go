package fusemount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"

	"golang.org/x/sys/unix"
)

// strictKV counts what waits for the disk: commits and syncs, and reads, which wait if what
// they find is not durable yet.
type strictKV struct {
	cluster.KV
	waits, reads atomic.Int64
}

func (kv *strictKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if !cluster.IsRelaxed(ctx) {
		kv.waits.Add(1)
	}
	return kv.KV.Update(ctx, fn)
}

func (kv *strictKV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	if !cluster.IsRelaxed(ctx) {
		kv.reads.Add(1)
	}
	return kv.KV.View(ctx, fn)
}

func (kv *strictKV) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	if !cluster.IsRelaxed(ctx) {
		kv.reads.Add(1)
	}
	return kv.KV.Peek(ctx, fn)
}

func (kv *strictKV) Sync(ctx context.Context) error {
	kv.waits.Add(1)
	return kv.KV.Sync(ctx)
}

func openStrict(t *testing.T) (*vfs.FS, *strictKV) {
	t.Helper()
	clu := mem.New(mem.Options{})
	kv := &strictKV{KV: clu.KV}
	clu.KV = kv
	fs, err := vfs.Open(bg, clu, vfs.Config{})
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(fs.Close(bg), clu.Close())) })
	return fs, kv
}

// TestRequestsAreRelaxed: no request but those that promise it waits for the disk, nor does what is
// done with it for who listens.
func TestRequestsAreRelaxed(t *testing.T) {
	const times = 50
	fs, kv := openStrict(t)
	top, _ := mountFS(t, fs, Options{
		FlushBehind: true, DoneAll: true, Done: func(*Record) {}, Observe: func(string, time.Duration, syscall.Errno) {},
	})
	dir := filepath.Join(top, "bucket")
	must(t, os.Mkdir(dir, 0o755))
	open := make([]*os.File, times)
	name := func(kind string, i int) string { return filepath.Join(dir, fmt.Sprint(kind, i)) }
	for _, step := range []struct {
		what string
		do   func(i int) error
	}{
		{"create", func(i int) (err error) { open[i], err = os.Create(name("file", i)); return err }},
		{"write", func(i int) error { _, err := open[i].Write(make([]byte, 5000)); return err }},
		{"futimes", func(i int) error { return unix.Futimes(int(open[i].Fd()), make([]unix.Timeval, 2)) }},
		{"fchown", func(i int) error { return open[i].Chown(1, 1) }},
		{"fchmod", func(i int) error { return open[i].Chmod(0o640) }},
		{"pread", func(i int) error { _, err := open[i].ReadAt(make([]byte, 9), 0); return err }},
		{"ftruncate", func(i int) error { return open[i].Truncate(4500) }},
		{"fallocate", func(i int) error { return unix.Fallocate(int(open[i].Fd()), 0, 0, 9000) }},
		{"seek to data", func(i int) error { _, err := open[i].Seek(0, unix.SEEK_DATA); return err }},
		{"flock", func(i int) error { return unix.Flock(int(open[i].Fd()), unix.LOCK_EX) }},
		{"close", func(i int) error { return open[i].Close() }},
		{"truncate", func(i int) error { return os.Truncate(name("file", i), 4000) }},
		{"chmod", func(i int) error { return os.Chmod(name("file", i), 0o600) }},
		{"chown", func(i int) error { return os.Chown(name("file", i), 2, 2) }},
		{"setxattr", func(i int) error { return unix.Setxattr(name("file", i), "user.name", []byte("value"), 0) }},
		{"getxattr", func(i int) error { _, err := unix.Getxattr(name("file", i), "user.name", make([]byte, 99)); return err }},
		{"removexattr", func(i int) error { return unix.Removexattr(name("file", i), "user.name") }},
		{"mkdir", func(i int) error { return os.Mkdir(name("dir", i), 0o755) }},
		{"chmod of a directory", func(i int) error { return os.Chmod(name("dir", i), 0o700) }},
		{"link", func(i int) error { return os.Link(name("file", i), name("dir", i)+"/link") }},
		{"symlink", func(i int) error { return os.Symlink("target", name("dir", i)+"/symlink") }},
		{"readlink", func(i int) error { _, err := os.Readlink(name("dir", i) + "/symlink"); return err }},
		{"readdir", func(i int) error { _, err := os.ReadDir(name("dir", i)); return err }},
		{"rename", func(i int) error { return os.Rename(name("file", i), name("renamed", i)) }},
		{"read", func(i int) error { _, err := os.ReadFile(name("renamed", i)); return err }},
		{"unlink", func(i int) error { return os.Remove(name("renamed", i)) }},
		{"removal of a tree", func(i int) error { return os.RemoveAll(name("dir", i)) }},
	} {
		waits, reads := kv.waits.Load(), kv.reads.Load()
		for i := range times {
			if err := step.do(i); err != nil {
				t.Fatalf("%s: %v", step.what, err)
			}
		}
		waits, reads = kv.waits.Load()-waits, kv.reads.Load()-reads
		if most := int64(times / 10); waits > most || reads > most { // what the background does
			t.Errorf("%s, %d times: %d commits and syncs and %d reads wait for the disk", step.what, times, waits, reads)
		}
	}
}

// With flush_behind, close does not wait for the disk, and fsync does. What was closed is
// stored when the mount ends.
func TestFlushBehind(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		const files = 200
		fs, kv := openStrict(t)
		top, s := mountFS(t, fs, Options{Transport: over, FlushBehind: true})
		dir := filepath.Join(top, "bucket")
		must(t, os.Mkdir(dir, 0o755))
		name := func(i int) string { return filepath.Join(dir, fmt.Sprint("f", i)) }
		make := func(sync bool) int64 {
			before := kv.waits.Load()
			for i := range files {
				f, err := os.Create(name(i))
				must(t, err)
				_, err = fmt.Fprint(f, i)
				must(t, err)
				if sync {
					must(t, f.Sync())
				}
				must(t, f.Close())
				if !sync {
					continue
				}
				must(t, os.Remove(name(i)))
			}
			return kv.waits.Load() - before
		}
		if n := make(true); n < files {
			t.Errorf("%d of %d calls of fsync waited for the disk", n, files)
		}
		if n := make(false); n > files/10 { // what the background does
			t.Errorf("%d of %d closes waited for the disk", n, files)
		}
		for i := range files {
			got, err := os.ReadFile(name(i))
			if err != nil || string(got) != fmt.Sprint(i) {
				t.Fatalf("%s holds %q, %v", name(i), got, err)
			}
		}
		before := kv.waits.Load()
		must(t, s.Unmount())
		s.Wait()
		if kv.waits.Load() == before {
			t.Error("unmounted, and nothing waited for the disk")
		}
	})
}

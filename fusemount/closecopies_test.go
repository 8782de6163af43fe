package fusemount

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
)

// heldKV is a store whose next commit waits, and then fails.
type heldKV struct {
	cluster.KV
	armed atomic.Bool
	made  atomic.Int64  // commits
	held  chan struct{} // closed when a commit waits
	free  chan struct{}
}

var errHeld = errors.New("the disk failed once")

func (kv *heldKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if kv.armed.CompareAndSwap(true, false) {
		close(kv.held)
		<-kv.free
		return errHeld
	}
	err := kv.KV.Update(ctx, fn)
	if err == nil {
		kv.made.Add(1)
	}
	return err
}

// Two copies of a descriptor are closed at once, as when a program starts another
// between its open and its close: neither is answered before what was written is
// durable, and the failure of one does not count as the other's success.
func TestCopiesOfDescriptorClosed(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		for _, c := range []struct {
			name string
			end  func(fd int) error
		}{
			{"close", unix.Close},
			{"fsync", func(fd int) error {
				err := unix.Fsync(fd)
				return errors.Join(err, unix.Close(fd))
			}},
		} {
			t.Run(c.name, func(t *testing.T) {
				clu := mem.New(mem.Options{})
				kv := &heldKV{KV: clu.KV, held: make(chan struct{}), free: make(chan struct{})}
				clu.KV = kv
				fs, err := vfs.Open(bg, clu, vfs.Config{NoBackground: true})
				must(t, err)
				t.Cleanup(func() { must(t, errors.Join(fs.Close(bg), clu.Close())) })
				top, _ := mountFS(t, fs, Options{Transport: over, Logger: slog.New(slog.DiscardHandler)})
				dir := filepath.Join(top, "bucket")
				must(t, os.Mkdir(dir, 0o755))
				name := filepath.Join(dir, "f")
				first, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY, 0o644)
				must(t, err)
				second, err := unix.Dup(first)
				must(t, err)
				_, err = unix.Write(first, []byte("acknowledged"))
				must(t, err)

				before := kv.made.Load()
				kv.armed.Store(true)
				ended, closed := make(chan error, 1), make(chan error, 1)
				go func() { ended <- c.end(first) }()
				<-kv.held
				go func() { closed <- unix.Close(second) }()
				select {
				case err := <-closed:
					t.Errorf("a close was answered with %v before anything was durable", err)
				case <-time.After(300 * time.Millisecond): // the longer, the surer it fails
				}
				close(kv.free)
				inTime(t, c.name, func() {
					if err := <-ended; !errors.Is(err, unix.EIO) {
						t.Errorf("%s whose commit failed: %v, want EIO", c.name, err)
					}
				})
				if t.Failed() {
					return
				}
				inTime(t, "close", func() {
					if err := <-closed; err != nil {
						t.Errorf("the close after it: %v", err)
					}
				})
				if kv.made.Load() == before {
					t.Error("closed, and nothing was stored")
				}
			})
		}
	})
}

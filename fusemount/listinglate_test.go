package fusemount

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
)

// slowAttrs is an engine that has read the names of a listing, and takes long for their attributes.
type slowAttrs struct {
	cluster.KV
	mu    sync.Mutex
	gate  chan struct{} // nil: it takes no time
	waits chan struct{} // closed by who waits
}

func (k *slowAttrs) View(ctx context.Context, fn func(cluster.Reader) error) error {
	k.mu.Lock()
	gate := k.gate
	if gate != nil && strings.Contains(string(debug.Stack()), "loadAttrs") {
		close(k.waits)
		k.gate = nil
		k.mu.Unlock()
		<-gate
	} else {
		k.mu.Unlock()
	}
	return k.KV.View(ctx, fn)
}

// A listing that takes longer than others wait to tell of their changes brings names that are
// old: the kernel does not keep them.
func TestListingLate(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		c := mem.New(mem.Options{})
		slow := &slowAttrs{KV: c.KV}
		c.KV = slow
		fs, err := vfs.Open(bg, c, vfs.Config{Logger: testLogger(t)})
		must(t, err)
		t.Cleanup(func() { must(t, fs.Close(bg)); must(t, c.Close()) })
		m := NewMounts(fs)
		one, _ := mountOf(t, m, Options{Transport: over})
		two, _ := mountOf(t, m, Options{Transport: over, EntryTimeout: time.Hour})
		must(t, os.Mkdir(filepath.Join(one, "bucket"), 0o777))
		write(t, filepath.Join(one, "bucket/old"), "")
		long := unix.Timespec{Sec: 1_000_000_000}
		d := openRaw(t, filepath.Join(one, "bucket"))
		slow.mu.Lock()
		slow.gate, slow.waits = make(chan struct{}), make(chan struct{})
		gate, waits := slow.gate, slow.waits
		slow.mu.Unlock()
		listed := make(chan []rawEntry)
		go func() { listed <- d.all(4096) }()
		<-waits
		write(t, filepath.Join(two, "bucket/new"), "")
		must(t, unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(two, "bucket"), []unix.Timespec{long, long}, 0))
		close(gate)
		<-listed
		eventually(t, func() error {
			d.seek(0)
			if list := d.all(4096); !hasName(list, "new") {
				return fmt.Errorf("%v", list)
			}
			return nil
		})
	})
}

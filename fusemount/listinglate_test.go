package fusemount

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
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

// slowListed is a directory with a name, through two superblocks, the first of which keeps
// listings, over an engine that can be slow.
func slowListed(t *testing.T, over Transport) (one, two string, slow *slowAttrs) {
	t.Helper()
	c := mem.New(mem.Options{})
	slow = &slowAttrs{KV: c.KV}
	c.KV = slow
	fs, err := vfs.Open(bg, c, vfs.Config{Logger: testLogger(t)})
	must(t, err)
	t.Cleanup(func() { must(t, fs.Close(bg)); must(t, c.Close()) })
	m := NewMounts(fs)
	one, _ = mountOf(t, m, Options{Transport: over})
	two, _ = mountOf(t, m, Options{Transport: over, EntryTimeout: time.Hour})
	one, two = filepath.Join(one, "bucket"), filepath.Join(two, "bucket")
	must(t, os.MkdirAll(filepath.Join(one, "dir"), 0o777))
	write(t, filepath.Join(one, "dir/old"), "")
	return one, two, slow
}

// during calls fn while d is listed, and has read the names.
func (k *slowAttrs) during(d *rawDir, fn func()) {
	k.mu.Lock()
	k.gate, k.waits = make(chan struct{}), make(chan struct{})
	gate, waits := k.gate, k.waits
	k.mu.Unlock()
	listed := make(chan []rawEntry)
	go func() { listed <- d.all(4096) }()
	<-waits
	fn()
	close(gate)
	<-listed
}

// A listing that takes longer than others wait to tell of their changes brings names that are
// old: the kernel does not keep them.
func TestListingLate(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		one, two, slow := slowListed(t, over)
		d := openRaw(t, filepath.Join(one, "dir"))
		slow.during(d, func() {
			write(t, filepath.Join(two, "dir/new"), "")
			long := unix.Timespec{Sec: 1_000_000_000}
			must(t, unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(two, "dir"), []unix.Timespec{long, long}, 0))
		})
		eventually(t, func() error {
			d.seek(0)
			if list := d.all(4096); !hasName(list, "new") {
				return fmt.Errorf("%v", list)
			}
			return nil
		})
	})
}

// A directory that another superblock moves while it is listed lists its new parent.
func TestListingMovedLate(t *testing.T) {
	one, two, slow := slowListed(t, TransportDevice)
	must(t, os.Mkdir(filepath.Join(one, "to"), 0o755))
	var parent unix.Stat_t
	must(t, unix.Stat(filepath.Join(one, "to"), &parent))
	d := openRaw(t, filepath.Join(one, "dir"))
	slow.during(d, func() { must(t, os.Rename(filepath.Join(two, "dir"), filepath.Join(two, "to/dir"))) })
	eventually(t, func() error {
		d.seek(0)
		if list := d.all(4096); !slices.ContainsFunc(list, func(e rawEntry) bool { return e.name == ".." && e.ino == parent.Ino }) {
			return fmt.Errorf("%v, want %d", list, parent.Ino)
		}
		return nil
	})
}

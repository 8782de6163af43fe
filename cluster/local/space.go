package local

import (
	"fmt"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/occ"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// dataReserveBytes is the free space at which blobs are refused, so that
	// deletes, which need a little metadata, still work on a full disk.
	dataReserveBytes = 256 << 20
	// metaReserveBytes is the free space at which every Update is refused:
	// what Pebble needs to flush its memtables and go on.
	metaReserveBytes = 64 << 20
	// reserveShare bounds both reserves on small disks: a reserve is at most
	// one part in so many of the whole.
	reserveShare = 16
	// spaceCheckEvery is how old the measurement may be, and
	// spaceCheckBytes how much may be written before the next.
	spaceCheckEvery = time.Second
	spaceCheckBytes = 16 << 20
)

// spaceGuard refuses writes before the disk is full: a store whose log cannot
// grow could not even delete.
type spaceGuard struct {
	fs  vfs.FS
	dir string

	free, total atomic.Int64
	checked     atomic.Int64 // unix nanoseconds
	written     atomic.Int64 // since the last measurement
}

// usage measures the disk.
func (g *spaceGuard) usage() (cluster.Usage, error) {
	u, err := g.fs.GetDiskUsage(g.dir)
	if err != nil {
		return cluster.Usage{}, mapError(err)
	}
	g.free.Store(int64(u.AvailBytes))
	g.total.Store(int64(u.TotalBytes))
	g.checked.Store(time.Now().UnixNano())
	g.written.Store(0)
	return cluster.Usage{Total: int64(u.TotalBytes), Free: int64(u.AvailBytes)}, nil
}

// left returns the free bytes above reserve, measured not long ago.
func (g *spaceGuard) left(bytes int, reserve int64) int64 {
	if g.written.Add(int64(bytes)) > spaceCheckBytes || time.Now().UnixNano()-g.checked.Load() > int64(spaceCheckEvery) {
		g.usage() // an error leaves the old figures
	}
	total := g.total.Load()
	if total == 0 {
		return spaceCheckBytes // unknown: the medium will tell
	}
	return g.free.Load() - int64(bytes) - min(reserve, total/reserveShare)
}

// admit refuses a transaction when the disk is full. One that deletes may use
// the last reserve, since it is how space comes back.
func (g *spaceGuard) admit(t *occ.Txn) error {
	if g.left(t.Bytes(), dataReserveBytes) > 0 {
		return nil
	}
	if t.Deletes() > 0 && g.left(0, metaReserveBytes) > 0 {
		return nil
	}
	return fmt.Errorf("%w: %d MiB left", cluster.ErrNoSpace, g.free.Load()>>20)
}

// admitData refuses data when the disk is full.
func (g *spaceGuard) admitData(bytes int) error {
	if g.left(bytes, dataReserveBytes) > 0 {
		return nil
	}
	return fmt.Errorf("%w: %d MiB left, kept for metadata", cluster.ErrNoSpace, g.free.Load()>>20)
}

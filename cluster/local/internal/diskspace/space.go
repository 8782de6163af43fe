package diskspace

import (
	"fmt"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/occ"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/ioerr"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

const (
	// dataReserveMax is the free space at which data are refused, and
	// half of it that at which metadata are: what is left is for deletes, which
	// need a little of both, and for the collector, which needs a segment to empty
	// others.
	dataReserveMax = 256 << 20
	// reserveFileMax is the length of a file that does nothing but hold space: a
	// neighbour who fills the disk cannot take it. See ReserveFile.
	reserveFileMax = 128 << 20
	// lastReserveMax is kept from deletes too: what Pebble needs to end what
	// it began.
	lastReserveMax = 16 << 20
	// On small disks each is at most one part in so many of the whole.
	dataReserveShare = 16
	reserveFileShare = 16
	lastReserveShare = 256
	// tinyTxnBytes is what a transaction may write on a full disk, though it
	// deletes nothing: counters, by which a start takes its numbers.
	tinyTxnBytes = 64
	// shrinkBytes is what a transaction may write for each key that it
	// deletes to count as one that makes room: a place in a queue, a
	// directory's time.
	shrinkBytes = 1 << 10
	// spaceCheckEvery is how old a measurement may be, and spaceCheckBytes
	// how much may be written before the next, or a quarter of the reserve.
	spaceCheckEvery = time.Second
	spaceCheckBytes = 16 << 20
)

// reserves are what is kept free on a disk of total bytes. On one of unknown
// size nothing is: the medium reports when it is full.
type reserves struct{ data, grow, file, last int64 }

func reservesOf(total int64) reserves {
	data := min(dataReserveMax, total/dataReserveShare)
	return reserves{data: data, grow: data / 2, file: min(reserveFileMax, total/reserveFileShare) &^ (fileio.PageBytes - 1),
		last: min(lastReserveMax, total/lastReserveShare)}
}

// Reserve is one of the reserves.
type Reserve int

// What each is kept for.
const (
	ForMetadata Reserve = iota // data are refused
	ForDeletes                 // metadata are refused, too
	ForLast                    // deletes are refused, too: what was begun is ended
)

func (r reserves) of(what Reserve) int64 {
	switch what {
	case ForMetadata:
		return r.data
	case ForDeletes:
		return r.grow
	default:
		return r.last
	}
}

// ReserveFileBytes is the length of the reserve file on a disk of total bytes.
func ReserveFileBytes(total int64) int64 { return reservesOf(total).file }

// Guard refuses writes before the disk is full: a store whose log cannot
// grow could not even delete.
type Guard struct {
	fs   vfs.FS
	Dir  string
	Held func() int64 // what the reserve file holds; nil: nothing

	// readOnly reports whether the medium takes no writes, as file systems do after
	// an error of theirs. It is found out before the log meets it, since a
	// failed write of the log is the end until the next start.
	readOnly atomic.Bool

	began             time.Time // any, for a clock that does not jump
	free, used, total atomic.Int64
	checked           atomic.Int64 // nanoseconds since began
	written           atomic.Int64 // since the last measurement
}

// New returns the guard of the disk of dir. Nothing is refused before
// Measure.
func New(fs vfs.FS, dir string) *Guard {
	return &Guard{fs: fs, Dir: dir, began: time.Now()}
}

// Measure asks the file system.
func (g *Guard) Measure() error {
	u, err := g.fs.GetDiskUsage(g.Dir)
	if err != nil {
		return ioerr.Map(err)
	}
	g.readOnly.Store(mountedReadOnly(g.Dir))
	g.free.Store(int64(u.AvailBytes))
	g.used.Store(int64(u.UsedBytes))
	g.total.Store(int64(u.TotalBytes))
	g.checked.Store(int64(time.Since(g.began)))
	g.written.Store(0)
	return nil
}

// Usage measures the disk; free is what data may take.
func (g *Guard) Usage() (cluster.Usage, error) {
	if err := g.Measure(); err != nil {
		return cluster.Usage{}, err
	}
	total := g.total.Load()
	return cluster.Usage{Total: total, Used: g.used.Load(), Free: max(0, g.free.Load()-reservesOf(total).data)}, nil
}

// left returns the free bytes, measured not long ago, after bytes more were
// written; ok is false when nothing is known of the disk.
func (g *Guard) left(bytes int64) (left int64, r reserves, ok bool) {
	r = reservesOf(g.total.Load())
	written := g.written.Add(bytes)
	if written > min(spaceCheckBytes, r.data/4) || int64(time.Since(g.began))-g.checked.Load() > int64(spaceCheckEvery) {
		if g.Measure() == nil {
			r = reservesOf(g.total.Load())
			written = g.written.Add(bytes)
		} // else the old figures stay
	}
	return g.free.Load() - written, r, g.total.Load() > 0
}

// Admit refuses a transaction when the disk is full. One that makes room may
// use the reserve, since that is how space comes back.
func (g *Guard) Admit(t *occ.Txn) error {
	left, r, ok := g.left(int64(t.Bytes()))
	if g.readOnly.Load() {
		return ErrMedium
	}
	if !ok || left > r.grow {
		return nil
	}
	if t.Bytes() <= tinyTxnBytes || t.Bytes() <= shrinkBytes*t.Deletes() {
		if g.Held != nil {
			left += g.Held()
		}
		if left > r.last {
			return nil
		}
	}
	return g.Full("deletes")
}

// AdmitData refuses data when the disk is full.
func (g *Guard) AdmitData(bytes int64) error {
	left, r, ok := g.left(bytes)
	if g.readOnly.Load() {
		return ErrMedium
	}
	if ok && left <= r.data {
		return g.Full("metadata and deletes")
	}
	return nil
}

// ErrMedium refuses what would be written while the medium takes nothing.
var ErrMedium = fmt.Errorf("%w: its medium takes no writes", cluster.ErrReadOnly)

// mountedReadOnly asks the file system of dir; of one that is not the operating
// system's, nothing is known.
func mountedReadOnly(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Flags&unix.ST_RDONLY != 0
}

// Roomy reports whether bytes more would leave a reserve.
func (g *Guard) Roomy(bytes int64, what Reserve) bool {
	left, r, ok := g.left(0)
	return !ok || left-bytes > r.of(what)
}

// ReadOnly reports whether the medium took no writes when it was measured.
func (g *Guard) ReadOnly() bool { return g.readOnly.Load() }

// DiskBytes returns the size of the disk as it was measured; 0 means unknown.
func (g *Guard) DiskBytes() int64 { return g.total.Load() }

// Full is the error for who finds no room, and for whom the rest is.
func (g *Guard) Full(keptFor string) error {
	return fmt.Errorf("%w: %d MiB left, kept for %s", cluster.ErrNoSpace, max(0, g.free.Load())>>20, keptFor)
}

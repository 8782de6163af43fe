package local

import (
	"log/slog"
	"time"

	"ogw/cluster/local/internal/fileio"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// defaultCacheBytes is the block cache: the hot directories and inodes
	// of a few million files.
	defaultCacheBytes = 128 << 20
	// defaultSegmentBytes is the length of a segment: large enough that
	// creating one is rare, small enough that rewriting one is short.
	defaultSegmentBytes = 64 << 20
	// On a small disk it is one part in so many, but not below the minimum.
	segmentShare    = 128
	segmentMinBytes = 4 << 20
)

// Options of the engine.
type Options struct {
	// Dir is the data folder; it is created if it does not exist.
	Dir string
	// MustExist has Open make no store: without one it returns ErrNoStore, and the
	// folder stays as it is.
	MustExist bool
	// Logger for troubles and background work; nil for none.
	Logger *slog.Logger
	// CacheBytes bounds the cache of metadata blocks; 0 means 128 MiB.
	CacheBytes int64
	// MemTableBytes is the size of a memtable, of which there are four at the
	// most; 0 means 32 MiB. On disks under 8 GiB it is less.
	MemTableBytes int64
	// SegmentBytes is the length of new segments; 0 means 64 MiB, less on
	// disks under 8 GiB. It must be a multiple of 4 KiB and hold the largest
	// small blob.
	SegmentBytes int64
	// NetworkFS lets Dir be on NFS, SMB, AFS, Coda or Lustre, with a warning.
	NetworkFS bool

	// The rest is for tests of this package.

	fs           vfs.FS        // nil: the operating system's
	disk         fileio.Disk   // nil: one of the operating system's
	collectEvery time.Duration // 0: the constant
	memTable     uint64        // bytes; 0: the constant
	tailRest     int           // with tailHalf: commits until the tail rests
	tailHalf     int64         // bytes; 0: the constant
	tailAlone    int           // 0: aloneMin
	markEvery    time.Duration // 0: the constant
	patience     time.Duration // 0: watchdog.Limit
	openFiles    uint64        // limit of open files; 0: that of the process

	now    func() time.Time                 // nil: the system's clock
	fsType func(dir string) (uint32, error) // nil: what statfs returns
}

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.fsType == nil {
		o.fsType = statfsType
	}
	if o.markEvery == 0 {
		o.markEvery = markEvery
	}
	if o.openFiles == 0 {
		o.openFiles = OpenFileLimit()
	}
}

// segmentBytes returns the default for a disk of DiskBytes; 0 means unknown.
func segmentBytes(diskBytes int64) int64 {
	if diskBytes == 0 {
		return defaultSegmentBytes
	}
	return min(defaultSegmentBytes, max(segmentMinBytes, diskBytes/segmentShare&^(1<<20-1)))
}

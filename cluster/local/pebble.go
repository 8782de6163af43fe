package local

import (
	"sync/atomic"
	"time"

	"ogw/cluster/local/internal/metafs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// memTableBytes is the size of a memtable: large enough that a burst of
	// small objects is sorted in memory, small enough that replaying one at
	// a start takes well under a second.
	memTableBytes = 32 << 20
	// On a small disk it is one part in so many, but not below the minimum.
	memTableShare    = 256
	memTableMinBytes = 1 << 20
	// memTablesMax bounds the memtables in memory; beyond it, writers wait.
	memTablesMax = 4
	// separateBytes is the size from which values (inline contents) leave
	// the tables for files of their own, so that scans and compactions do
	// not carry them.
	separateBytes = 8 << 10
	// separateDepth bounds how many value files one table may refer to.
	separateDepth = 10
	// bloomBits per key: 1 % of the lookups of absent keys read a block.
	bloomBits = 10
	// compactionsMax uses one core of two for compactions, and both when
	// they fall behind.
	compactionsMax = 2
	// tableBytes is the size of a table of the first level.
	tableBytes = 8 << 20
)

// memTable returns the size for a disk of DiskBytes; 0 means unknown. The log
// of each is reserved in one piece.
func memTable(diskBytes int64) int64 {
	if diskBytes == 0 {
		return memTableBytes
	}
	return min(memTableBytes, max(memTableMinBytes, diskBytes/memTableShare))
}

// pebbleOptions returns the settings for metadata: small pairs, point reads of
// absent names, scans of directories.
func pebbleOptions(fs vfs.FS, h *metafs.Health, cache *pebble.Cache, s *scheduler, diskBytes int64) *pebble.Options {
	listener := h.Listener()
	listener.CompactionEnd = s.compacted
	o := &pebble.Options{
		FS:                          fs,
		Cache:                       cache,
		Logger:                      h,
		EventListener:               listener,
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                uint64(memTable(diskBytes)),
		MemTableStopWritesThreshold: memTablesMax,
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       1000,
		LBaseMaxBytes:               64 << 20,
		CompactionConcurrencyRange:  func() (int, int) { return 1, compactionsMax },
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(bloomBits)
	}
	o.TargetFileSizes[0] = tableBytes
	o.Experimental.CompactionScheduler = s
	return o
}

// separation is which values have files of their own.
type separation struct {
	// renew has compactions write all values that they meet to new files, instead of keeping
	// the references to where they are.
	renew atomic.Bool
}

func (s *separation) policy() pebble.ValueSeparationPolicy {
	p := pebble.ValueSeparationPolicy{
		Enabled:               true,
		MinimumSize:           separateBytes,
		MaxBlobReferenceDepth: separateDepth,
		RewriteMinimumAge:     time.Minute,
		TargetGarbageRatio:    0.3,
	}
	if s.renew.Load() {
		p.MaxBlobReferenceDepth = 0
	}
	return p
}

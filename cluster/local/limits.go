package local

import (
	"fmt"

	"ogw/cluster"

	"golang.org/x/sys/unix"
)

// The limit of open files is shared with the sockets of the gateways. Of it,
// Pebble's tables and the data files that are kept open for the next reader
// get a quarter each; the rest is for connections, and for files that are
// open while they are written.
const (
	filesShare = 4
	// filesMin is the least limit: Pebble keeps 64 tables open whatever it is
	// told, and 10 other files.
	filesMin = 256
	// metaFilesMax bounds Pebble's open files, and openFilesMax the data files
	// that stay open without a reader.
	metaFilesMax = 1024
	openFilesMax = 512
)

// fileLimits are how many files may stay open.
type fileLimits struct{ meta, data int }

// limitFiles divides a limit of open files.
func limitFiles(limit uint64) (fileLimits, error) {
	if limit < filesMin {
		return fileLimits{}, fmt.Errorf("%w: the limit of open files is %d, at least %d are needed (ulimit -n, LimitNOFILE=)",
			cluster.ErrInvalid, limit, filesMin)
	}
	share := int(min(limit/filesShare, metaFilesMax))
	return fileLimits{meta: share, data: min(share, openFilesMax)}, nil
}

// OpenFileLimit is how many files this process may have open, sockets
// included. Go raised it as far as it may be.
func OpenFileLimit() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return filesShare * metaFilesMax
	}
	return l.Cur
}

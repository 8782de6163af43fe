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

// openWith opens a file. When the process, or the system, has no more of them,
// relieve closes some that are only kept for later.
func openWith[F any](relieve func() bool, open func() (F, error)) (F, error) {
	f, err := open()
	if outOfFiles(err) && relieve != nil && relieve() {
		return open()
	}
	return f, err
}

// networkFS names file systems whose files other machines change, by the type
// that statfs tells.
var networkFS = map[uint32]string{
	unix.NFS_SUPER_MAGIC:  "NFS",
	unix.SMB_SUPER_MAGIC:  "SMB",
	unix.SMB2_SUPER_MAGIC: "SMB",
	unix.CIFS_SUPER_MAGIC: "SMB",
	unix.AFS_SUPER_MAGIC:  "AFS",
}

// checkFileSystem refuses network file systems: two machines may hold the lock
// of the folder there (NFS with nolock, or local_lock), each removing the
// files that the other made; and what was written a moment ago may be gone
// after the server's restart.
func checkFileSystem(o *Options) error {
	fsType := o.fsType
	if fsType == nil {
		fsType = statfsType
	}
	found, err := fsType(o.Dir)
	if err != nil {
		o.Logger.Warn("cannot tell the file system of the data folder", "dir", o.Dir, "err", err)
		return nil
	}
	name, ok := networkFS[found]
	switch {
	case !ok:
		return nil
	case o.NetworkFS:
		o.Logger.Warn("the data folder is on a network file system: no other machine may open it, and its durability is the server's",
			"dir", o.Dir, "type", name)
		return nil
	}
	return fmt.Errorf("%w: folder %s is on a network file system (%s), whose locks and durability cannot be relied on; "+
		"use a local disk, or set cluster.network_fs", cluster.ErrInvalid, o.Dir, name)
}

func statfsType(dir string) (uint32, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return uint32(st.Type), err
}

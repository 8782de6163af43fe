package local

import (
	"fmt"
	"log/slog"

	"ogw/cluster"

	"golang.org/x/sys/unix"
)

// networkFS names file systems whose files other machines change, by the type
// that statfs returns.
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
func checkFileSystem(dir string, fsType func(string) (uint32, error), allowed bool, log *slog.Logger) error {
	found, err := fsType(dir)
	if err != nil {
		log.Warn("cannot tell the file system of the data folder", "dir", dir, "err", err)
		return nil
	}
	name, ok := networkFS[found]
	switch {
	case !ok:
		return nil
	case allowed:
		log.Warn("the data folder is on a network file system: no other machine may open it, and its durability is the server's",
			"dir", dir, "type", name)
		return nil
	}
	return fmt.Errorf("%w: folder %s is on a network file system (%s), whose locks and durability cannot be relied on; "+
		"use a local disk, or set cluster.network_fs", cluster.ErrInvalid, dir, name)
}

func statfsType(dir string) (uint32, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return uint32(st.Type), err
}

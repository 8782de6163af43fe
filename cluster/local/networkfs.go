package local

import (
	"fmt"
	"log/slog"

	"ogw/cluster"

	"golang.org/x/sys/unix"
)

// Types of file systems, as statfs returns them, that the unix package does not have.
const (
	lustreMagic = 0x0BD00BD0
	gpfsMagic   = 0x47504653
	gfs2Magic   = 0x01161970
)

// networkFS names file systems whose files other machines change, and on which two of
// them may hold the same lock.
var networkFS = map[uint32]string{
	unix.NFS_SUPER_MAGIC:  "NFS",
	unix.SMB_SUPER_MAGIC:  "SMB",
	unix.SMB2_SUPER_MAGIC: "SMB",
	unix.CIFS_SUPER_MAGIC: "SMB",
	unix.AFS_SUPER_MAGIC:  "AFS",
	unix.AFS_FS_MAGIC:     "AFS",
	unix.CODA_SUPER_MAGIC: "Coda",
	lustreMagic:           "Lustre",
}

// sharedFS names file systems that other machines may have mounted, too: those of
// clusters, where a lock holds on all machines, and those of which the type does not say
// what serves them. Many of the latter are local, such as a folder that a virtual machine
// or a container has of its host.
var sharedFS = map[uint32]string{
	unix.CEPH_SUPER_MAGIC:  "CephFS",
	unix.OCFS2_SUPER_MAGIC: "OCFS2",
	gfs2Magic:              "GFS2",
	gpfsMagic:              "GPFS",
	unix.V9FS_MAGIC:        "9p",
	unix.FUSE_SUPER_MAGIC:  "FUSE",
}

// checkFileSystem refuses network file systems: two machines may hold the lock
// of the folder there (NFS with nolock, or local_lock; Lustre with localflock), each
// removing the files that the other made; and what was written a moment ago may be gone
// after the server's restart. Of those that may be shared it warns.
func checkFileSystem(dir string, fsType func(string) (uint32, error), allowed bool, log *slog.Logger) error {
	found, err := fsType(dir)
	if err != nil {
		log.Warn("cannot tell the file system of the data folder", "dir", dir, "err", err)
		return nil
	}
	name, network := networkFS[found]
	if !network {
		if name, shared := sharedFS[found]; shared && !allowed {
			log.Warn("other machines may use the file system of the data folder: none may open it (cluster.network_fs ends this warning)",
				"dir", dir, "type", name)
		}
		return nil
	}
	if allowed {
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

package nfsserver

const (
	// maxTransfer is the largest READ and WRITE (rtmax, wtmax).
	maxTransfer = 1 << 20
	// maxDirReply bounds a READDIR reply, and is the size that clients are
	// asked to prefer: fewer calls for large directories.
	maxDirReply = 256 << 10
	// minDirReply is what is answered at the least, however little a client
	// asks for, if one entry fits.
	minDirReply = 512
)

// Limits of MOUNT (RFC 1813 section 5.1.1).
const (
	maxMountPath = 1024 // MNTPATHLEN
	// maxMounts bounds the mount list. It is informative only; the oldest
	// entry goes first.
	maxMounts = 4096
	// maxExportReply bounds the groups that EXPORT lists, in bytes.
	maxExportReply = 64 << 10
)

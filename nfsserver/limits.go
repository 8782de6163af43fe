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
	// maxMounts bounds the mount list, of which every address may have
	// addressMounts. It is informative only; a client's oldest entry goes first.
	maxMounts, addressMounts = 4096, 16
	// maxListReply bounds what EXPORT and DUMP list, in bytes, but for the last entry.
	maxListReply = 64 << 10
)

package nfsserver

// Program numbers (RFC 1813 sections 3 and 5).
const (
	ProgramNFS   = 100003
	ProgramMount = 100005
)

// Procedure numbers (RFC 1813 section 3.3).
const (
	procNull = iota
	procGetattr
	procSetattr
	procLookup
	procAccess
	procReadlink
	procRead
	procWrite
	procCreate
	procMkdir
	procSymlink
	procMknod
	procRemove
	procRmdir
	procRename
	procLink
	procReaddir
	procReaddirplus
	procFsstat
	procFsinfo
	procPathconf
	procCommit
)

var nfsNames = []string{"NULL", "GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "READ", "WRITE",
	"CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK", "READDIR", "READDIRPLUS",
	"FSSTAT", "FSINFO", "PATHCONF", "COMMIT"}

// Procedures of MOUNT version 3 (RFC 1813 section 5.2).
const (
	mountNull = iota
	mountMnt
	mountDump
	mountUmnt
	mountUmntAll
	mountExport
)

var mountNames = []string{"NULL", "MNT", "DUMP", "UMNT", "UMNTALL", "EXPORT"}

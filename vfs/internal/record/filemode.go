package record

// File types and permission bits, as in Linux st_mode.
const (
	ModeTypeMask  uint32 = 0o170000
	ModeSocket    uint32 = 0o140000
	ModeSymlink   uint32 = 0o120000
	ModeRegular   uint32 = 0o100000
	ModeBlock     uint32 = 0o060000
	ModeDirectory uint32 = 0o040000
	ModeChar      uint32 = 0o020000
	ModeFIFO      uint32 = 0o010000
	ModeSetUID    uint32 = 0o004000
	ModeSetGID    uint32 = 0o002000
	ModeSticky    uint32 = 0o001000
	ModePermMask  uint32 = 0o007777 // all bits that chmod sets
)

// MaxSymlinkBytes bounds a symbolic link's target (PATH_MAX without the NUL).
const MaxSymlinkBytes = 4095

package record

// The FileFlags of package vfs are bits 14 to 17 of the flags of an inode.
const (
	fileFlagsShift = 14
	fileFlagsMask  = 0b1111
	// fileFlagsHeld are those that forbid something.
	fileFlagsHeld = 0b0011
)

// FileFlags returns the FileFlags.
func (n *Inode) FileFlags() uint32 { return uint32(n.Flags>>fileFlagsShift) & fileFlagsMask }

// SetFileFlags replaces the FileFlags.
func (n *Inode) SetFileFlags(f uint32) {
	n.Flags = n.Flags&^(fileFlagsMask<<fileFlagsShift) | inodeFlags(f&fileFlagsMask)<<fileFlagsShift
}

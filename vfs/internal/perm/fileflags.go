package perm

import (
	"fmt"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// FileFlags are the attributes of a file or a directory that chattr(1) sets and
// that are kept. They hold at every door and for everybody, the superuser too.
type FileFlags uint32

const (
	// FlagImmutable: no change of content, attributes or name; of a directory,
	// no entry made or removed.
	FlagImmutable FileFlags = 1 << iota
	// FlagAppend: the content only grows at its end, attributes and name stay; of
	// a directory, entries are made, none is removed.
	FlagAppend
	// FlagNoDump: backup programs leave it out, if they look.
	FlagNoDump
	// FlagNoAtime: reading leaves the access time as it is.
	FlagNoAtime

	AllFlags = FlagImmutable | FlagAppend | FlagNoDump | FlagNoAtime
	// InheritedFlags are those that a directory gives to what is made in it, as
	// those of ext4 do.
	InheritedFlags = FlagNoDump | FlagNoAtime
)

// FlagsOf returns the flags that n has.
func FlagsOf(n *record.Inode) FileFlags { return FileFlags(n.FileFlags()) }

// HeldFlags are those that forbid something.
const HeldFlags = FlagImmutable | FlagAppend

// What follows is the one place that says what the flags forbid, as Linux and
// ext4 do. Each answers nil or ErrPerm and ErrProtected, and is asked in the
// transaction that makes the change.

var (
	ErrHeld = fmt.Errorf("%w: %w", fserr.ErrPerm, fserr.ErrProtected)
	// ErrOverwrite is the answer to a write before the end of an append-only file.
	ErrOverwrite = fmt.Errorf("%w: bytes that it has already", ErrHeld)
)

// CheckWritable is for entries that are made in a directory, and for what a
// right to write allows of a file.
func (f FileFlags) CheckWritable() error {
	if f&FlagImmutable != 0 {
		return ErrHeld
	}
	return nil
}

// CheckFree is for changes of attributes, of the place, and of what is there
// of the content.
func (f FileFlags) CheckFree() error {
	if f&HeldFlags != 0 {
		return ErrHeld
	}
	return nil
}

// CheckTake is for the removal of an entry, f being the directory's flags.
func (f FileFlags) CheckTake(n FileFlags) error { return (f | n).CheckFree() }

// CheckWrite is for bytes at off of a file that is size long.
func (f FileFlags) CheckWrite(off, size int64) error {
	if f&HeldFlags == FlagAppend && off < size {
		return ErrOverwrite
	}
	return f.CheckWritable()
}

// CheckFlush is CheckWrite for bytes that were acknowledged before another process
// set the flags: ErrStale, since they are lost.
func (f FileFlags) CheckFlush(off, size int64) error {
	if f.CheckWrite(off, size) != nil {
		return fmt.Errorf("the file is %w by now: %w", fserr.ErrProtected, fserr.ErrStale)
	}
	return nil
}

package vfs

import (
	"fmt"

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

	allFileFlags = FlagImmutable | FlagAppend | FlagNoDump | FlagNoAtime
	// inheritedFlags are those that a directory gives to what is made in it, as
	// those of ext4 do.
	inheritedFlags = FlagNoDump | FlagNoAtime
)

// fileFlagsOf returns the flags that n has.
func fileFlagsOf(n *record.Inode) FileFlags { return FileFlags(n.FileFlags()) }

// flagsHeld are those that forbid something.
const flagsHeld = FlagImmutable | FlagAppend

// What follows is the one place that says what the flags forbid, as Linux and
// ext4 do. Each answers nil or ErrPerm and ErrProtected, and is asked in the
// transaction that makes the change.

var (
	errHeld = fmt.Errorf("%w: %w", ErrPerm, ErrProtected)
	// errOverwrite is the answer to a write before the end of an append-only file.
	errOverwrite = fmt.Errorf("%w: bytes that it has already", errHeld)
)

// checkWritable is for entries that are made in a directory, and for what a
// right to write allows of a file.
func (f FileFlags) checkWritable() error {
	if f&FlagImmutable != 0 {
		return errHeld
	}
	return nil
}

// checkFree is for changes of attributes, of the place, and of what is there
// of the content.
func (f FileFlags) checkFree() error {
	if f&flagsHeld != 0 {
		return errHeld
	}
	return nil
}

// checkTake is for the removal of an entry, f being the directory's flags.
func (f FileFlags) checkTake(n FileFlags) error { return (f | n).checkFree() }

// checkWrite is for bytes at off of a file that is size long.
func (f FileFlags) checkWrite(off, size int64) error {
	if f&flagsHeld == FlagAppend && off < size {
		return errOverwrite
	}
	return f.checkWritable()
}

// checkFlush is checkWrite for bytes that were acknowledged before another process
// set the flags: ErrStale, since they are lost.
func (f FileFlags) checkFlush(off, size int64) error {
	if f.checkWrite(off, size) != nil {
		return fmt.Errorf("the file is %w by now: %w", ErrProtected, ErrStale)
	}
	return nil
}

package vfs

import (
	"context"
	"time"

	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/listing"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/tokens"
	"ogw/vfs/internal/uploads"
	"ogw/vfs/internal/xattr"
)

// Ino is an inode number. Numbers are never used twice in one store, so an
// inode number alone identifies a file for good.
type Ino = record.Ino

// RootIno is the directory whose entries are the buckets.
const RootIno = record.RootIno

// ContentID names a content: the bytes of a file at one time. IDs share one
// number space with inodes and are never used twice.
type ContentID = record.ContentID

// File types and permission bits, as in Linux st_mode.
const (
	ModeTypeMask  = record.ModeTypeMask
	ModeSocket    = record.ModeSocket
	ModeSymlink   = record.ModeSymlink
	ModeRegular   = record.ModeRegular
	ModeBlock     = record.ModeBlock
	ModeDirectory = record.ModeDirectory
	ModeChar      = record.ModeChar
	ModeFIFO      = record.ModeFIFO
	ModeSetUID    = record.ModeSetUID
	ModeSetGID    = record.ModeSetGID
	ModeSticky    = record.ModeSticky
	ModePermMask  = record.ModePermMask // all bits that chmod sets
)

// Time is a time that somebody may choose: seconds since 1970, before it
// negative, and 0 to 999,999,999 nanoseconds after them.
type Time = record.Time

// TimeNS returns the time of Unix nanoseconds.
func TimeNS(ns int64) Time { return record.TimeNS(ns) }

// TimeOf returns t.
func TimeOf(t time.Time) Time { return record.TimeOf(t) }

// Limits of the namespace.
const (
	// MaxKeyBytes bounds an object key, S3's limit.
	MaxKeyBytes = keypath.MaxKeyBytes
	// MaxNameBytes bounds one stored component: a key may be one component.
	MaxNameBytes = keypath.MaxNameBytes
	// MaxPosixNameBytes is NAME_MAX of the POSIX doors.
	MaxPosixNameBytes = naming.MaxPosixBytes
	// MaxSymlinkBytes bounds a symbolic link's target (PATH_MAX without the NUL).
	MaxSymlinkBytes = record.MaxSymlinkBytes
	// MaxXattrNameBytes and MaxXattrValueBytes are Linux's XATTR_NAME_MAX and
	// XATTR_SIZE_MAX.
	MaxXattrNameBytes  = xattr.MaxNameBytes
	MaxXattrValueBytes = xattr.MaxValueBytes
	// MaxXattrListBytes bounds all names of one inode, Linux's XATTR_LIST_MAX.
	MaxXattrListBytes = xattr.MaxListBytes
	// MaxLinks bounds the hard links of one file.
	MaxLinks = 65000
	// MaxFileBytes bounds a file (8 EiB less one, what an off_t holds).
	MaxFileBytes = record.MaxFileBytes
	// MaxObjectBytes bounds an object (S3: 5 TiB; AWS raised it to 50 TB, which is
	// what we allow).
	MaxObjectBytes = objects.MaxBytes
	// MaxParts bounds the parts of an object, which its inode lists, and MaxPartBytes
	// one of them, whose extents stand in one record.
	MaxParts     = objects.MaxParts
	MaxPartBytes = uploads.MaxPartBytes
	// MaxListKeys bounds a page of a listing.
	MaxListKeys = listing.MaxKeys
	// MaxGroups bounds the groups of a credential (Linux NGROUPS_MAX is
	// 65536; no door sends more than this).
	MaxGroups = 1024
)

// Attr are the attributes of an inode, as stat shows them. Times that nobody
// chooses are Unix nanoseconds.
type Attr struct {
	Ino     Ino
	Gen     uint32 // generation, for file handles
	Mode    uint32 // type and permissions
	Nlink   uint32 // 1 for directories: unknown (docs/semantics.md, Links of directories)
	UID     uint32
	GID     uint32
	Rdev    uint32 // device number, Linux encoding (makedev)
	Size    int64  // bytes; length of the target for a symlink
	Used    int64  // bytes of storage that this inode accounts for
	Atime   Time
	Mtime   Time
	CtimeNS int64
	BtimeNS int64 // birth
	// Version grows with every change of content; with Ino it shows whether
	// cached content is still right.
	Version uint64
	// Others, of a file while other processes change the store, moves with Version when
	// anything but a write through a File of this process, from the first open to the last
	// close, moves that.
	Others uint64
	Parent Ino // directory of the last link made; RootIno for the root
	Flags  FileFlags
}

// IsDir reports whether a describes a directory.
func (a *Attr) IsDir() bool { return a.Mode&ModeTypeMask == ModeDirectory }

// IsRegular reports whether a describes a regular file.
func (a *Attr) IsRegular() bool { return a.Mode&ModeTypeMask == ModeRegular }

// IsSymlink reports whether a describes a symbolic link.
func (a *Attr) IsSymlink() bool { return a.Mode&ModeTypeMask == ModeSymlink }

// SetAttr names attributes to change; nil fields stay as they are.
type SetAttr struct {
	Mode  *uint32 // permission bits only
	UID   *uint32
	GID   *uint32
	Size  *int64
	Atime *Time // ErrInvalid if Nsec is a second or more
	Mtime *Time
	// AtimeNow and MtimeNow take the server's clock; whoever may write the
	// file may do that, while only the owner sets a time of choice.
	AtimeNow bool
	MtimeNow bool
	// GuardCtimeNS makes the change fail with ErrConflict unless ctime is
	// this (NFSv3 SETATTR guard, RFC 1813 section 3.3.2).
	GuardCtimeNS *int64
	// KeepSetID keeps setuid and setgid bits where a change of size or owner
	// would clear them (a caller with CAP_FSETID).
	KeepSetID bool
	// DropSetID takes those of ModeSetUID and ModeSetGID off that it holds, whatever else
	// the mode is by then; who may write the file may do that.
	DropSetID uint32
	// MtimeByWriter lets who may write set the modification time alone to now,
	// as a truncation does; else that is the owner's, as in utimensat(2).
	MtimeByWriter bool
	// SizeByOwner lets the owner set the size whatever the mode: where there is no
	// open file to go by, as in ftruncate(2) of one that was opened when it was made.
	SizeByOwner bool
}

// OpenFlags of Open and Create.
type OpenFlags uint32

const (
	OpenRead   OpenFlags = 1 << iota
	OpenWrite            // without it, writes fail with ErrBadHandle
	OpenTrunc            // cut to length 0 (O_TRUNC)
	OpenAppend           // every write goes to the end (O_APPEND)
	OpenSync             // every change of the bytes is durable when it returns (O_SYNC, O_DSYNC)
	// OpenAnywhere reports whether writes may go anywhere (no O_APPEND), so that an
	// append-only file is not opened for them. Without it, each write that is
	// none at the end is refused.
	OpenAnywhere
	// OpenFlagged opens to write whatever FileFlags and rights there are: those
	// were looked at before, and flags refuse each write. So open a process what one
	// before it had open, and a door whose users share a File.
	OpenFlagged
	// OpenRewrites is for Rewrite: what was acknowledged is stored, whatever
	// flags the file has by now.
	OpenRewrites
	// OpenRefreshes is for who calls Refresh before what has to see the changes of
	// other processes: reads and writes look for them no more than once a second.
	OpenRefreshes
)

// RenameFlags of Rename, as in renameat2(2).
type RenameFlags uint32

const (
	RenameNoReplace RenameFlags = 1 << iota
	RenameExchange
	RenameWhiteout // leave a device 0/0 under the old name
)

// DirEntry is one entry of a directory as the POSIX doors show it.
type DirEntry struct {
	Name string // escaped where POSIX could not express the stored name
	Ino  Ino
	Mode uint32 // type bits only
	// Pos continues a ReadDir after this entry. It is opaque, stable while
	// the entry exists, and meaningful after it was removed.
	Pos string
	// Attr is set if it was asked for, but of an entry that vanished concurrently, and
	// to a caller who may not search the directory: nil then. Lookup tells which.
	Attr *Attr
}

// StatFS is the size of the whole.
type StatFS struct {
	TotalBytes int64
	UsedBytes  int64
	FreeBytes  int64  // for data; what is neither used nor free is kept back
	Files      uint64 // inodes in use, an estimate
	FreeFiles  uint64
	FSID       uint64 // stable, random, made with the store
}

// ErrDone means that a change asked for under a Token was made already, by a
// process that could not tell: nothing was done now.
var ErrDone = tokens.ErrDone

// Token identifies one request of a client that sends it again, unchanged,
// until it is answered. The first change made in a context with a token
// leaves a record of the token in its own transaction. If the process dies
// between that and the answer, the next one finds the record and returns
// ErrDone instead of, for example, ErrExist for the directory that the
// request made itself.
//
// A process recognises the requests that it answered itself by other means:
// its own records say nothing. A Token is for one operation.
type Token = tokens.Token

// WithToken returns a context for one operation that must not happen twice.
func WithToken(ctx context.Context, t *Token) context.Context { return tokens.WithToken(ctx, t) }

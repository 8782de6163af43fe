package vfs

import (
	"context"

	"ogw/cluster"
)

// File is an open file. All Files of one inode in this process share one
// view of its bytes, unflushed writes included. Safe for concurrent use.
type File struct {
	fs    *FS
	of    *openFile
	flags OpenFlags
}

// Open opens a regular file. ErrIsDir, ErrInvalid for other types, ErrAccess,
// ErrStale.
func (fs *FS) Open(ctx context.Context, cred *Cred, ino Ino, flags OpenFlags) (*File, error) {
	return nil, ErrNotSupported
}

// OpenTemp makes a file without a name in dir's bucket (O_TMPFILE); Link
// gives it one.
func (fs *FS) OpenTemp(ctx context.Context, cred *Cred, dir Ino, mode uint32, flags OpenFlags) (Attr, *File, error) {
	return Attr{}, nil, ErrNotSupported
}

// Ino returns the inode number.
func (f *File) Ino() Ino { return f.of.ino }

// Attr returns the attributes, unflushed writes included.
func (f *File) Attr(ctx context.Context) (Attr, error) { return Attr{}, ErrNotSupported }

// ReadAt reads like io.ReaderAt: io.EOF at the end of the file.
func (f *File) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	return 0, ErrNotSupported
}

// WriteAt writes p at off (at the end with OpenAppend). It is visible to
// every door of this process when it returns, and durable after Sync, Close,
// or at once with OpenSync. p may be reused afterwards.
func (f *File) WriteAt(ctx context.Context, p []byte, off int64) (int, error) {
	return 0, ErrNotSupported
}

// Append writes p at the end and returns where that was.
func (f *File) Append(ctx context.Context, p []byte) (off int64, err error) {
	return 0, ErrNotSupported
}

// Sync makes all writes to the file durable and visible to other processes
// (fsync, NFS COMMIT). An error of a write behind is reported once to each
// File that was open then. ErrStale if the content was replaced meanwhile.
func (f *File) Sync(ctx context.Context) error { return ErrNotSupported }

// Close flushes as Sync does and closes the File, also when it fails.
func (f *File) Close(ctx context.Context) error { return ErrNotSupported }

// AllocMode of Allocate.
type AllocMode uint32

const (
	AllocKeepSize  AllocMode = 1 << iota // FALLOC_FL_KEEP_SIZE
	AllocPunchHole                       // FALLOC_FL_PUNCH_HOLE
	AllocZeroRange                       // FALLOC_FL_ZERO_RANGE
)

// Allocate is fallocate(2).
func (f *File) Allocate(ctx context.Context, mode AllocMode, off, length int64) error {
	return ErrNotSupported
}

// SeekData returns the first offset at or behind off that holds data;
// SeekHole the first that lies in a hole, the end of the file being one.
// ErrNoData behind the end.
func (f *File) SeekData(ctx context.Context, off int64) (int64, error) { return 0, ErrNotSupported }

// SeekHole: see SeekData.
func (f *File) SeekHole(ctx context.Context, off int64) (int64, error) { return 0, ErrNotSupported }

// CopyRange copies n bytes from src to f by reference where it can
// (copy_file_range, FICLONERANGE). It returns how many were copied.
func (f *File) CopyRange(ctx context.Context, off int64, src *File, srcOff, n int64) (int64, error) {
	return 0, ErrNotSupported
}

// SyncAll makes everything that was acknowledged durable (syncfs).
func (fs *FS) SyncAll(ctx context.Context) error { return ErrNotSupported }

// SyncInode flushes what this process wrote to ino, if anything (NFS COMMIT
// without an open file).
func (fs *FS) SyncInode(ctx context.Context, ino Ino) error { return ErrNotSupported }

// Collect runs one pass of the collector: what is queued for deletion and
// due goes. It returns how many queue entries it finished.
func (fs *FS) Collect(ctx context.Context) (int, error) { return 0, ErrNotSupported }

// CheckOptions of Check.
type CheckOptions struct {
	Repair bool // mend what is safe to mend
	Data   bool // read and verify all bytes too
}

// CheckReport tells what Check found.
type CheckReport struct {
	Inodes, Directories, Files, Contents, Extents, Blobs int64
	Bytes                                                int64
	Problems                                             []Problem
	Dropped                                              int64 // problems over MaxProblems, counted only
	Repaired                                             int64
}

// Problem is one finding of Check.
type Problem struct {
	Kind     string // stable word: "orphan-blob", "missing-blob", "nlink", …
	Detail   string
	Repaired bool
}

// Check walks everything (ogw check).
func (fs *FS) Check(ctx context.Context, o CheckOptions) (CheckReport, error) {
	return CheckReport{}, ErrNotSupported
}

// ExtentLocation tells where one range of a file is.
type ExtentLocation struct {
	Off, Len int64
	Kind     string             // "inline", "blob", "hole", "unflushed"
	Blob     string             // hexadecimal blob ID
	Nodes    []cluster.Location // empty for inline data: it is in the metadata
}

// Whereis tells who holds the bytes of the object at a stored path
// "bucket/key" (or its POSIX form). ErrNotExist.
func (fs *FS) Whereis(ctx context.Context, path string) (ObjectInfo, []ExtentLocation, error) {
	return ObjectInfo{}, nil, ErrNotSupported
}

// Purge drops path, and with a trailing slash all below it, from every cache
// of this process: block caches, and through the Invalidators those of the
// kernels. It returns the number of inodes touched. The store is unchanged.
func (fs *FS) Purge(ctx context.Context, path string) (int, error) { return 0, ErrNotSupported }

// --- internal -----------------------------------------------------------------

// openFile is the state that all Files of one inode share.
type openFile struct {
	ino   Ino
	users int // guarded by the openShard
}

// dirtyPool bounds the write buffers of all files.
type dirtyPool struct{}

func (p *dirtyPool) init(limit int64) {}

func (fs *FS) startBackground(ctx context.Context) {}
func (fs *FS) flushAll(ctx context.Context) error  { return nil }

// openInode opens a regular file without asking for permission: what Open
// and Create do after they did. The inode must exist.
func (fs *FS) openInode(ctx context.Context, cred *Cred, ino Ino, flags OpenFlags) (*File, error) {
	return nil, ErrNotSupported
}

// overlayAttr adds what this process wrote to the file but did not flush yet.
func (fs *FS) overlayAttr(a *Attr) {}

// settle flushes what this process wrote to ino, if anything, so that a
// transaction that follows sees all that was acknowledged. It comes before
// changes of size and times, and before reading as an object or copying.
// It is as durable as ctx asks. ErrStale is not reported here: the data is
// gone already, and the writers learn of it.
func (fs *FS) settle(ctx context.Context, ino Ino) error { return nil }

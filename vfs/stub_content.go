package vfs

import (
	"context"
	"io"

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

// contentPins counts the readers of each content, which the collector spares.
type contentPins struct{}

func (p *contentPins) init() {}

func (fs *FS) startBackground(ctx context.Context) {}
func (fs *FS) flushAll(ctx context.Context) error  { return nil }

// content is a written content that no inode holds yet.
type content struct {
	id      ContentID // 0: empty
	size    int64
	used    int64
	crc     uint64 // CRC64NVME of the whole
	extents []extent
	// staged tells that the extents are stored already (more than fit one
	// transaction) and stand under a staging record.
	staged bool
}

// contentWriter streams a new content: inline if small, else blobs of up to
// cluster.MaxBlobBytes.
type contentWriter struct{}

// newContentWriter begins a content. id 0 takes a fresh one (an upload
// passes its own, which all its parts share). size is expected, or -1.
func (fs *FS) newContentWriter(ctx context.Context, id ContentID, size int64) (*contentWriter, error) {
	return nil, ErrNotSupported
}

func (w *contentWriter) Write(p []byte) (int, error) { return 0, ErrNotSupported }

// finish commits the blobs, durably, and stages the extents if they are many.
func (w *contentWriter) finish(ctx context.Context) (*content, error) { return nil, ErrNotSupported }

// abort drops what was written.
func (w *contentWriter) abort(ctx context.Context) {}

// discard drops a finished content that will not be published.
func (fs *FS) discard(ctx context.Context, c *content) {}

// setContent makes c the content of n: extents, size, used, crc, version,
// clearing the object part's sums, and dropping the old content. The caller
// stores n.
func (o *op) setContent(t cluster.Txn, n *inode, c *content) error { return ErrNotSupported }

// dropContent removes n's content: at once if it is inline and unshared,
// else through the queue, or only n's hold on it if others refer to it.
func (o *op) dropContent(t cluster.Txn, n *inode) error { return ErrNotSupported }

// cloneContent returns a content that shares n's bytes by reference (inline
// bytes are copied) and makes n's shared. id comes from fs.ids.take.
func (o *op) cloneContent(t cluster.Txn, n *inode, id ContentID) (*content, error) {
	return nil, ErrNotSupported
}

// contentReader reads the bytes that an inode had when it was made, whatever
// happens to the inode meanwhile.
type contentReader struct{}

// openContent begins reading n's content as of r's snapshot.
func (fs *FS) openContent(ctx context.Context, r cluster.Reader, n *inode) (*contentReader, error) {
	return nil, ErrNotSupported
}

func (c *contentReader) ReadAt(p []byte, off int64) (int, error) { return 0, ErrNotSupported }

// Close releases the bytes to the collector.
func (c *contentReader) Close() error { return nil }

var _ io.ReaderAt = (*contentReader)(nil)

package fileio

import (
	"io"
)

// Disk is what the data half needs of the file system. The tests replace it
// to let the power fail.
type Disk interface {
	// Create makes a file for writing pages; os.ErrExist if there is one.
	Create(path string) (File, error)
	// OpenSegment opens a file for durable writes of pages: a write that
	// returned survives a power cut.
	OpenSegment(path string) (File, error)
	// Open opens a file for reading.
	Open(path string) (File, error)
	// OpenDirect opens a file for reading whole pages past the page cache.
	OpenDirect(path string) (File, error)
	Remove(path string) error
	// Rename replaces to, if there is one.
	Rename(from, to string) error
	// Truncate makes a file shorter.
	Truncate(path string, bytes int64) error
	// Punch gives back the space of whole pages of a file, which read as
	// zeros then, where the file system can do that.
	Punch(path string, off, bytes int64) error
	// List returns the names in dir, in no order.
	List(dir string) ([]string, error)
	// Length returns the length of a file in bytes.
	Length(path string) (int64, error)
	// Held returns the bytes of the disk that a file takes: less than its length where it has
	// holes. Where that is not known, it is the length.
	Held(path string) (int64, error)
	// Mkdir makes a folder and what is above it; it may be there.
	Mkdir(dir string) error
	// SyncDir makes the entries of dir durable.
	SyncDir(dir string) error
}

// File is one open file.
type File interface {
	io.ReaderAt
	// WritePages writes whole pages from page-aligned memory, one buffer
	// after the other, at a multiple of PageBytes.
	WritePages(off int64, pages ...[]byte) error
	// Allocate reserves space without writing it.
	Allocate(bytes int64) error
	// Sync makes what was written durable.
	Sync() error
	Close() error
}

package cluster

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

const (
	// MaxBlobBytes bounds one blob. Larger contents are several blobs, which
	// keeps deletion, compaction and transfer to other engines in bounds.
	MaxBlobBytes = 64 << 20
	// BlockBytes is the unit of checksums: what a random read must fetch to
	// be verified. 8 bytes of checksum per block are 0.012 %.
	BlockBytes = 64 << 10
)

// BlobID names a blob: the content that it was written for, and a number
// that a store never gives twice. An ID returns only where a store is brought
// to the state of another one, which deletes a blob and creates it as it is there.
type BlobID struct {
	Content uint64
	Seq     uint64
}

// BlobIDBytes is the length of an encoded BlobID.
const BlobIDBytes = 16

// Append appends the 16 bytes of id, big-endian, content first, to b.
func (id BlobID) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, id.Content)
	return binary.BigEndian.AppendUint64(b, id.Seq)
}

// ParseBlobID decodes what Append wrote.
func ParseBlobID(b []byte) (BlobID, error) {
	if len(b) != BlobIDBytes {
		return BlobID{}, fmt.Errorf("%w: blob ID of %d bytes", ErrInvalid, len(b))
	}
	return BlobID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}

// String returns 32 hexadecimal digits.
func (id BlobID) String() string { return hex.EncodeToString(id.Append(nil)) }

// Less orders as the encoded bytes do.
func (id BlobID) Less(o BlobID) bool {
	return id.Content < o.Content || id.Content == o.Content && id.Seq < o.Seq
}

// BlobReader reads blobs.
type BlobReader interface {
	// ReadAt reads len(p) bytes at off, verified. Like io.ReaderAt it
	// returns io.EOF when the blob ends before p is full. It returns
	// ErrNotFound or ErrCorrupt, and then no bytes.
	ReadAt(ctx context.Context, id BlobID, p []byte, off int64) (int, error)
}

// Blobs stores immutable byte strings. See the package documentation for
// the contract.
type Blobs interface {
	BlobReader
	// Create begins a blob. sizeHint is the expected length in bytes, or -1;
	// it decides placement only. A second blob of the same ID fails with
	// ErrExists, here or at Commit; the ID of one that was deleted is free as
	// soon as Delete returned, once nobody reads it any more.
	Create(ctx context.Context, id BlobID, sizeHint int64) (BlobWriter, error)
	// Delete removes blobs; absent ones are no error.
	Delete(ctx context.Context, ids ...BlobID) error
	// List calls fn for every blob with an ID of at least from, in order of
	// their IDs, until fn returns an error (ErrStop: without one). Blobs
	// that come or go concurrently may be missed or shown.
	List(ctx context.Context, from BlobID, fn func(BlobInfo) error) error
	// Locate reports who holds a blob. It returns ErrNotFound.
	Locate(ctx context.Context, id BlobID) ([]Location, error)
	// Usage reports how full the medium is.
	Usage(ctx context.Context) (Usage, error)
	// Close releases the engine. Later calls return ErrClosed.
	Close() error
}

// BlobWriter streams one blob. It is for one goroutine. Exactly one of
// Commit and Abort must be called; Abort after Commit does nothing.
type BlobWriter interface {
	io.Writer
	// Commit makes the blob exist, durably, and returns its length and the
	// CRC64NVME of all its bytes.
	Commit(ctx context.Context) (size int64, crc uint64, err error)
	// Abort drops what was written.
	Abort()
}

// BlobInfo describes a stored blob.
type BlobInfo struct {
	ID       BlobID
	Size     int64 // bytes of data
	Modified time.Time
}

// Location is one place that holds a copy of a blob.
type Location struct {
	Node    string // host name, OSD, endpoint
	Address string // network address, if any
	Path    string // file, object or device within the node
	Detail  string // what else an operator wants to know: offset, PG, CRUSH location
	Primary bool   // serves reads
}

// Usage of a medium in bytes; zero Total means unknown. What is neither used nor free
// is kept back: by the engine for deletes, by a file system for root, by a quota.
type Usage struct {
	Total int64
	Used  int64
	Free  int64 // for data
}

// Cluster is both halves of one engine.
type Cluster struct {
	KV    KV
	Blobs Blobs
	// Name of the engine, as in the configuration key `engine`.
	Name string
	// Exclusive reports whether no other process can use the same store, so that
	// in-process knowledge (open files, cached state) is complete.
	Exclusive bool
	// Writable reports why the store takes no writes now: ErrReadOnly while its
	// medium takes none, another error once it failed until it is opened again.
	// Nil is an engine that always does.
	Writable func() error
	// Live reports whether what this process remembers of the store may still be
	// answered, and why not. Nil is a store that no other process can change.
	Live func() error
	// Lost is closed when the process has lost the store to another one: all it
	// can do then is to end. Nil where that cannot happen.
	Lost <-chan struct{}
	// Peers is told by KV what it is about to change, where others use the store beside this
	// process; nil without.
	Peers Peers
	// Lease is, where other processes use the store beside this one, what orders
	// them: vfs.Join made it, for vfs.Open.
	Lease any
}

// Close closes the data half, then the metadata half.
func (c *Cluster) Close() error {
	err := c.Blobs.Close()
	if e := c.KV.Close(); err == nil {
		err = e
	}
	return err
}

package cluster

import (
	"errors"
	"fmt"
	"io"
)

// The errors of every engine. They are wrapped with %w and tested with
// errors.Is.
var (
	// ErrConflict: a transaction lost against others MaxTxnAttempts times.
	ErrConflict = errors.New("transaction conflict")
	// ErrTxTooLarge: a transaction is over the engine's limits. Nothing was written.
	ErrTxTooLarge = errors.New("transaction too large")
	// ErrUnavailable: the engine cannot be reached, or the outcome of a
	// commit is unknown. The write may or may not have happened.
	ErrUnavailable = errors.New("storage unavailable")
	// ErrNotFound: no such blob.
	ErrNotFound = errors.New("blob not found")
	// ErrExists: a blob of that ID exists already.
	ErrExists = errors.New("blob exists already")
	// ErrCorrupt: stored bytes do not match their checksum.
	ErrCorrupt = errors.New("stored data is corrupt")
	// ErrNoSpace: the medium is full. Nothing was written.
	ErrNoSpace = errors.New("no space left in the cluster")
	// ErrReadOnly: the medium does not take writes.
	ErrReadOnly = errors.New("cluster is read-only")
	// ErrFailed: after an error of the disk nobody knows what is stored of the last writes.
	ErrFailed = errors.New("takes no writes until it is opened again")
	// ErrClosed: the engine was closed.
	ErrClosed = errors.New("cluster is closed")
	// ErrLocked: another process has the data folder open.
	ErrLocked = errors.New("data folder is in use by another process")
	// ErrInUse: another gateway uses the store.
	ErrInUse = errors.New("the store is in use by another gateway")
	// ErrFormat: the data was written by a newer version, or is not ours.
	ErrFormat = errors.New("unknown storage format")
	// ErrNoStore: there is none, and none was to be made.
	ErrNoStore = errors.New("there is no store")
	// ErrMismatch: the halves of an engine are of two stores.
	ErrMismatch = errors.New("metadata and blobs are of two stores")
	// ErrExposed: others can change the data folder, or what is in it leads
	// out of it.
	ErrExposed = errors.New("data folder is open to other users")
	// ErrInvalid: a key, value, ID or offset breaks the contract.
	ErrInvalid = errors.New("invalid argument to the cluster")
)

// Because returns an error of class, one of those above, with its cause. That the connection
// to a server ended (io.EOF) is no end of a blob or a file, for which callers of callers take
// it: then the cause is told, and no more.
func Because(class, cause error) error {
	if errors.Is(cause, io.EOF) || errors.Is(cause, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %s", class, cause.Error())
	}
	return fmt.Errorf("%w: %w", class, cause)
}

package cluster

import (
	"context"
	"time"
)

const (
	// MaxKeyBytes bounds a key: the longest S3 key (1024 bytes), escaped at
	// worst to twice its length, and the identifiers around it. PostgreSQL's
	// index takes 2,690 bytes.
	MaxKeyBytes = 2500
	// MaxValueBytes bounds a value: an inline content and its envelope.
	MaxValueBytes = 1 << 20
	// HeadBytes is how much of a value Reader.Head returns: what says of what kind
	// it is.
	HeadBytes = 16
	// MaxTxnAttempts bounds the attempts of an Update. Each runs its function once, or a
	// few times where an engine learns from a refusal what to run it on. With jittered
	// pauses between attempts, only a livelock exceeds it.
	MaxTxnAttempts = 64
	// RelaxedBound is how long a relaxed Update may stay volatile.
	RelaxedBound = time.Second
)

// KV is an ordered, durable, transactional key-value store. See the package
// documentation for the contract.
type KV interface {
	// View runs fn on one consistent snapshot.
	View(ctx context.Context, fn func(Reader) error) error
	// Peek is View for a few pairs that were probably read or written a
	// moment ago: an engine that remembers those need not take a snapshot,
	// and runs fn again if what it read does not fit together. What fn did and
	// returned in the earlier run means nothing: it must set its results anew,
	// as in Update.
	Peek(ctx context.Context, fn func(Reader) error) error
	// Update runs fn in a serializable transaction and commits it when fn
	// returns nil; an error of fn rolls back and is returned unchanged. fn
	// may run several times and must not have effects outside the
	// transaction except on variables that it sets anew in every run. The
	// transaction must not be used after fn returned.
	Update(ctx context.Context, fn func(Txn) error) error
	// Sync makes every Update that returned before durable.
	Sync(ctx context.Context) error
	// Erase returns when no file of the engine holds any more what was
	// replaced or removed in the ranges before the call (secrets). What others
	// copied, and what a disk keeps of files that are gone, is beyond it, and
	// so is the log of a server that the engine speaks to. Pairs stay as they
	// are.
	Erase(ctx context.Context, ranges ...KeyRange) error
	// Limits returns what one transaction may hold.
	Limits() Limits
	// Close waits for running transactions, makes all durable and releases
	// the engine. Later calls return ErrClosed.
	Close() error
}

// KeyRange holds the keys from Start to before End.
type KeyRange struct{ Start, End []byte }

// Limits of one transaction; zero means unlimited.
type Limits struct {
	// Ops are reads by key, scans, sets, deletes and expectations together; in
	// a transaction that writes, so is each pair that a scan met.
	Ops   int
	Bytes int // keys and values written, in bytes
	// Distant is set where each read costs a round trip, unless it was made before
	// in the same transaction: what can be read together should be.
	Distant bool
}

// Reader reads one snapshot; in a Txn, together with the transaction's own
// writes. It is for one goroutine.
type Reader interface {
	// Get returns the value of key, or nil when there is none; an empty
	// value is a non-nil empty slice. It stays as it is, and others may hold
	// it: the caller must not change it, nor append to it.
	Get(key []byte) ([]byte, error)
	// Head returns how many bytes the value of key has, and its first HeadBytes, as
	// Get does. It is for values that are large and not needed: an engine that
	// remembers pairs may know as much of one without reading it.
	Head(key []byte) (head []byte, length int, err error)
	// GetMany returns the values of keys in their order, nil for what is
	// absent, as Get does. It costs one round trip; sorted keys are the fastest.
	GetMany(keys [][]byte) ([][]byte, error)
	// Scan calls fn for each pair with start <= key < end in order, until fn
	// returns an error. ErrStop ends the scan without an error. key and
	// value are valid until fn returns. fn must not use the Reader. Only
	// what was visited counts as read when transactions conflict: the range
	// from start to the last key that fn saw if fn or Limit stopped the
	// scan, else the whole range.
	Scan(start, end []byte, o ScanOptions, fn func(key, value []byte) error) error
	// Settle returns nil if all that was read so far held at one moment; else an
	// error, with which the run ends. It costs a round trip where pairs were used
	// that are not compared yet. Who keeps something of what a run read beyond that
	// run asks first, since the run may be thrown away.
	Settle() error
}

// ScanOptions shape a Scan.
type ScanOptions struct {
	Limit    int  // visit at most so many pairs; 0 means no limit
	Reverse  bool // from end to start
	KeysOnly bool // values are nil, which some engines answer faster
	// PairBytes, if not 0, is how many bytes key and value of a pair have at most, as a
	// rule: of small pairs an engine may ask its server for many at once.
	PairBytes int
}

// Txn is a Reader that also writes.
type Txn interface {
	Reader
	// Set stores a pair. The engine copies or keeps the slices: the caller
	// must not change them until the transaction ended.
	Set(key, value []byte) error
	// Delete removes a key; to remove an absent key is no error.
	Delete(key []byte) error
	// Expect lets the transaction commit only while key has value; nil: while
	// there is no such pair. Else it runs again, as after a conflict. It costs no
	// round trip. The store is compared, not what the transaction wrote, and only
	// if it wrote something. The caller must not change the slices until the
	// transaction ended.
	Expect(key, value []byte) error
}

type stopError struct{}

func (stopError) Error() string { return "stop" }

// ErrStop ends a Scan early, without an error.
var ErrStop error = stopError{}

type relaxedKey struct{}

// Relaxed returns a context whose Updates need not be durable, and whose
// Views may see what is not durable yet. The durability that a request needs
// travels with it, as its deadline does.
func Relaxed(ctx context.Context) context.Context {
	return context.WithValue(ctx, relaxedKey{}, true)
}

// Strict returns a context that undoes Relaxed.
func Strict(ctx context.Context) context.Context {
	return context.WithValue(ctx, relaxedKey{}, false)
}

// IsRelaxed reports whether ctx came from Relaxed.
func IsRelaxed(ctx context.Context) bool {
	on, _ := ctx.Value(relaxedKey{}).(bool)
	return on
}

// AsksDurability reports whether ctx came from Relaxed or Strict.
func AsksDurability(ctx context.Context) bool { return ctx.Value(relaxedKey{}) != nil }

type urgentKey struct{}

// Urgent returns a context whose calls do not wait for those that are under way or wait
// in this process: an engine keeps the means for a few of them, however busy it is. It
// is for small transactions on whose time others rely.
func Urgent(ctx context.Context) context.Context {
	return context.WithValue(ctx, urgentKey{}, true)
}

// IsUrgent reports whether ctx came from Urgent.
func IsUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }

// PrefixEnd returns the first key after all keys that begin with prefix, or
// nil when there is none.
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}

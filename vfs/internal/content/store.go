package content

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/feed"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/ids"
	"ogw/vfs/internal/quarantine"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/session"
)

// maxCompactQueue bounds the files that wait for compaction; those that
// find no room come again with their next flush.
const maxCompactQueue = 1024

// compactWait is a file that waits for compaction.
type compactWait struct {
	ino    record.Ino
	passes int // in which it was busy
}

// Store is the contents of a store, for one namespace.
type Store struct {
	Config
	// Pins keep contents that are in use from the collector.
	Pins extents.Pins

	Staged       extents.Set // contents that this process stages
	holds        blobHolds
	collecting   sync.Mutex       // one pass of the collector at a time
	unreadable   atomic.Bool      // a record kept the collector from something
	compactQueue chan compactWait // files that were flushed in small pieces
}

// Config is what a Store stands on.
type Config struct {
	Namespace
	KV      cluster.KV
	Engine  cluster.Blobs     // writes and lists blobs
	Blobs   *quarantine.Blobs // reads and deletes them
	IDs     *ids.Allocator
	Feed    *feed.Feed
	Session *session.Session
	Log     *slog.Logger
	Now     func() time.Time

	InlineBytes int // the largest content kept in the metadata
	ExtentPage  int // extents that a reader loads at a time
}

// Namespace is what contents need of the code that runs their transactions.
type Namespace interface {
	// Update runs fn in a transaction. fn runs again after a conflict.
	Update(ctx context.Context, fn func(t cluster.Txn, ch *Change) error) error
	// Durably returns ctx with the durability that it stands for.
	Durably(ctx context.Context) context.Context
	// SyncRelaxed makes the relaxed commits of this process durable.
	SyncRelaxed(ctx context.Context) error
	// DropSnapshots lets go of contents that open files keep without need, and of those
	// for which too is true, but for what is being read.
	DropSnapshots(too func(record.ContentID) bool)
}

// New returns a Store.
func New(c Config) *Store {
	s := &Store{Config: c, compactQueue: make(chan compactWait, maxCompactQueue)}
	s.Pins.Init()
	c.Session.Pin(&s.Pins)
	c.Session.Number(c.IDs)
	return s
}

// View runs fn on one consistent snapshot. What fn pins stays readable. fn runs
// again if a content that it opens changed since.
func (s *Store) View(ctx context.Context, fn func(r cluster.Reader) error) error {
	return s.look(ctx, s.KV.View, fn)
}

// Peek is View for a few pairs that are read by key. fn may run twice.
func (s *Store) Peek(ctx context.Context, fn func(r cluster.Reader) error) error {
	return s.look(ctx, s.KV.Peek, fn)
}

func (s *Store) look(ctx context.Context, read func(context.Context, func(cluster.Reader) error) error, fn func(r cluster.Reader) error) error {
	ctx = s.Durably(ctx)
	for try := 1; ; try++ {
		epoch := s.Session.Readers.Enter()
		err := read(ctx, fn)
		s.Session.Readers.Leave(epoch)
		if err == nil {
			return nil
		}
		late := overtakenIn(err)
		if late == nil || try == MaxOvertaken {
			return fserr.Map(err)
		}
		if err := s.Pins.Await(ctx, late.content); err != nil {
			return err
		}
	}
}

// overtakenError means that a content was changing in place when it was pinned,
// or had changed since the snapshot: what is not read yet may be newer than it.
type overtakenError struct{ content record.ContentID }

// overtakenIn returns the overtakenError that err is, if it is one.
func overtakenIn(err error) *overtakenError {
	var late *overtakenError
	_ = errors.As(err, &late)
	return late
}

func (e *overtakenError) Error() string {
	return fmt.Sprintf("content %d changes again and again", e.content)
}

// Unwrap: the caller may try again.
func (e *overtakenError) Unwrap() error { return fserr.ErrConflict }

// MaxOvertaken bounds how often a view begins again for that. It waits for the
// change, and then the next one must come within microseconds.
const MaxOvertaken = 100

// Leave has the collector go on after what it cannot remove, such as for a record that cannot be
// read: that stays, and keeps nothing else. A check reports such records.
func (s *Store) Leave(err error) {
	if !s.unreadable.Swap(true) {
		s.Log.Error("something that was deleted cannot be removed, the rest is (ogw check tells of damaged records)", "err", err)
	}
}

func unreadable(err error) bool { return errors.Is(err, fserr.ErrCorrupt) }

package vfs

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/vfs/iam"
	"ogw/vfs/internal/accesstime"
	"ogw/vfs/internal/attrcache"
	"ogw/vfs/internal/backup"
	"ogw/vfs/internal/commits"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/feed"
	"ogw/vfs/internal/fsck"
	"ogw/vfs/internal/ids"
	"ogw/vfs/internal/orphans"
	"ogw/vfs/internal/quarantine"
	"ogw/vfs/internal/receive"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
	"ogw/vfs/internal/secrets"
	"ogw/vfs/internal/session"
	"ogw/vfs/internal/sharedlocks"
	"ogw/vfs/internal/tokens"
	"ogw/vfs/internal/uploads"
	"ogw/vfs/lock"
	"ogw/vfs/seal"
	"ogw/vfs/users"
)

// Config of an FS. The zero value of each field means its default.
type Config struct {
	Logger *slog.Logger     // default: discard
	Now    func() time.Time // default: time.Now
	// FileMode and DirMode are the permissions of what doors without modes
	// make (S3, REST). Default 0644 and 0755.
	FileMode uint32
	DirMode  uint32
	// RootUID and RootGID own the root of a store that Open makes.
	RootUID, RootGID uint32
	// InlineBytes is the largest content kept in the metadata store.
	// Default DefaultInlineBytes.
	InlineBytes int
	// DirtyBytes bounds all write buffers of POSIX writers together.
	// Default DefaultDirtyBytes.
	DirtyBytes int64
	// Keys seal the secrets that the store keeps, and open them; nil leaves
	// them in clear. A store that gets keys is converted by Open.
	Keys *seal.Keyring
	// Async makes Async the durability of all that has none of its own.
	Async bool
	// ScrubBytes is how fast stored blobs are read again to verify them, in
	// bytes per second; 0 for not at all.
	ScrubBytes int64
	// Reserved are names that no directory at the top may get, nor one that
	// ends in a dot and such a name: a door that takes a host name for a
	// bucket must not find its own there. In lower case.
	Reserved []string
	// Restore is called by Open before any background work: a door whose
	// client outlived the last process restores its Holder here. May be nil.
	Restore func(ctx context.Context, fs *FS) error
	// NoBackground leaves collection and compaction to explicit calls of
	// Collect (tests, and the read-only commands of the CLI).
	NoBackground bool
	// MovedTo is the place of another store: this one is opened even if it was moved
	// there (FS.MarkMoved), to end that.
	MovedTo string
	// NoAtime leaves access times as they are when something is read.
	NoAtime bool
}

const (
	// DefaultInlineBytes: up to this, one metadata transaction is cheaper
	// than a blob and a transaction.
	DefaultInlineBytes = 16 << 10
	// DefaultDirtyBytes is enough for a dozen writers with chunks in flight.
	DefaultDirtyBytes = 128 << 20
)

// FS is one namespace over one cluster. It is safe for concurrent use.
type FS struct {
	kv    cluster.KV
	blobs cluster.Blobs
	cfg   Config
	log   *slog.Logger
	super record.Superblock
	tune  tuning

	ids       ids.Allocator
	feed      *feed.Feed
	attrs     attrcache.Cache
	reads     accesstime.Table // access times that are not stored yet
	tokens    *tokens.Book
	session   *session.Session
	contents  *content.Store
	orphans   *orphans.Queue
	leftovers *fsck.Leftovers
	dirty     dirtyPool
	behind    behindQueue // what is closed and not stored
	locks     lock.Locks
	shared    *sharedlocks.Table // locks, where gateways share them, or nil
	// uploads holds a token for each blob of a write buffer in flight.
	uploads chan struct{}
	cut     backup.Gate
	// losses counts how often unflushed writes were dropped.
	losses atomic.Uint64
	// kept counts the writes that Keepers were notified of.
	kept       atomic.Uint64
	commits    commits.Relaxed
	tuned      atomic.Bool // a bucket may have a durability of its own
	scrub      *quarantine.Scrubber
	quarantine *quarantine.Blobs // all reading and deleting of blobs
	users      *users.Registry
	rights     rights.Rules
	sealing    SealState

	bodies    *receive.Receiver // of what is put
	multipart *uploads.Uploads

	background struct {
		stop context.CancelFunc
		wait sync.WaitGroup
	}
}

// tuning holds constants that tests make smaller.
type tuning struct {
	uploadBytes int64
	flushOps    int
}

// FSID is a stable random number that identifies the namespace.
func (fs *FS) FSID() uint64 { return fs.super.FSID }

// Holder keeps inodes for a door whose client names them by number for as
// long as it likes, and says when it forgets them: a kernel with its FUSE
// lookups. An inode of any kind that loses its last link while it is held
// becomes an orphan, as open files do, and goes with the last hold.
type Holder = session.Holder

// Unlinked is what Holder.OnUnlinked is called with.
type Unlinked = session.Unlinked

// HoldMark is a moment before an inode was looked up.
type HoldMark = session.HoldMark

// NewHolder returns a Holder, to be closed.
func (fs *FS) NewHolder() *Holder { return fs.session.Open.NewHolder() }

// Users are those whom the object doors let in.
func (fs *FS) Users() *users.Registry { return fs.users }

// IAM returns the groups and policies of the namespace.
func (fs *FS) IAM() *iam.Directory { return fs.rights.IAM }

// SealState is what Open found about the secrets of the store.
type SealState = secrets.State

// LockedKey is an access key whose secret cannot be opened.
type LockedKey = secrets.LockedKey

// SealState returns what Open found.
func (fs *FS) SealState() SealState { return fs.sealing }

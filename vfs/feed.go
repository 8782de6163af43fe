package vfs

import (
	"context"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/feed"
)

// Invalidator drops what a door cached, such as a kernel's dentries,
// attributes and pages. It is called after a change committed and before it is
// acknowledged, with no lock held.
type Invalidator = feed.Invalidator

// KernelInvalidator is an Invalidator with a kernel behind it, which holds
// locks while the door works for it.
type KernelInvalidator = feed.KernelInvalidator

// MoveStamp is a moment between two renames of directories, and of one file if it is
// of one. The zero value is none.
type MoveStamp = feed.MoveStamp

// WithOrigin marks the operations of ctx as made by inv's door, which knows
// of its own changes and must not be notified of them.
func WithOrigin(ctx context.Context, inv Invalidator) context.Context {
	return feed.WithOrigin(ctx, inv)
}

// WithLateOrigin is WithOrigin for changes that are acknowledged to nobody yet:
// other doors with a kernel are notified in the background.
func WithLateOrigin(ctx context.Context, inv Invalidator) context.Context {
	return feed.WithLateOrigin(ctx, inv)
}

// Watch registers inv until the returned function is called.
func (fs *FS) Watch(inv Invalidator) (cancel func()) { return fs.feed.Watch(inv) }

// ReadMoment is taken before attributes are read that somebody keeps.
type ReadMoment = cluster.Moment

// ReadMoment returns that of now.
func (fs *FS) ReadMoment() ReadMoment { return fs.session.Moment() }

// KeepAttr returns for how long a KernelInvalidator that Watches may show a, which was read after a moment,
// without asking again, if it begins to within cluster.AnswerTime: for ever where all changes are reported to
// it, else until they are not told any more. What another process is about to change meanwhile
// is recalled.
func (fs *FS) KeepAttr(a *Attr, since ReadMoment) time.Duration {
	return fs.session.KeepAttr(a.Ino, a.IsDir(), since)
}

// Forget has whoever keeps attributes by KeepAttr drop them, and what others could have changed asked for
// again.
func (fs *FS) Forget() { fs.session.Forget() }

// Exclusive reports whether no other process can change the store, so that what
// a Watch does not report did not change.
func (fs *FS) Exclusive() bool { return fs.feed.Complete() }

// Changes counts the changes of ino, and of others with which it shares a
// counter: those that transactions of this process announced, and those that
// are over, committed or not. It says nothing of other processes; see
// Exclusive.
func (fs *FS) Changes(ino Ino) (begun, ended uint64) { return fs.feed.Changes(ino) }

// MoveStamp returns the moment. What is read of the places of directories
// afterwards holds as long as Unmoved says so.
func (fs *FS) MoveStamp() MoveStamp { return fs.feed.MoveStamp() }

// MoveStampOf is MoveStamp for the place of ino, which may be a file's: it does not hold
// either when ino got another directory, or lost one of several links.
func (fs *FS) MoveStampOf(ino Ino) MoveStamp { return fs.feed.MoveStampOf(ino) }

// Unmoved reports whether nothing that s is of changed its place since; where other
// processes may change the store, whether none did up to a second ago.
func (fs *FS) Unmoved(s MoveStamp) bool { return fs.feed.Unmoved(s) }

package feed

import (
	"context"

	"ogw/vfs/internal/record"
)

// Invalidator drops what a door cached, such as a kernel's dentries,
// attributes and pages. Calls come after a change committed and before it is
// acknowledged, from the goroutine that made the change, which holds no lock.
type Invalidator interface {
	// InvalidateEntry drops what is known of one name, its absence included.
	// name is in POSIX form.
	InvalidateEntry(dir record.Ino, name string)
	// InvalidateInode drops attributes and, with data, cached bytes.
	InvalidateInode(ino record.Ino, data bool)
}

// KernelInvalidator is an Invalidator with a kernel behind it, which holds
// locks while the door works for it.
type KernelInvalidator interface {
	Invalidator
	// Beside returns the Invalidator that is notified of what origin's door did,
	// which has a kernel as well. Waiting for one kernel's locks while
	// another's are held could deadlock: it waits for those alone of which it
	// knows that they are let go.
	Beside(origin Invalidator) Invalidator
	// Deferred returns an Invalidator whose calls do not wait for the kernel.
	Deferred() Invalidator
	// RecallAttrs drops what the kernel keeps of the attributes of inodes that may be about to
	// change, before they do. It waits for nobody's locks.
	RecallAttrs(inodes []record.Ino)
}

type originKey struct{}

type origin struct {
	inv  Invalidator
	late bool
}

// WithOrigin marks the operations of ctx as made by inv's door, which knows
// of its own changes and must not be notified of them.
func WithOrigin(ctx context.Context, inv Invalidator) context.Context {
	return context.WithValue(ctx, originKey{}, origin{inv: inv})
}

// WithLateOrigin is WithOrigin for changes that are acknowledged to nobody yet:
// other doors with a kernel are notified in the background.
func WithLateOrigin(ctx context.Context, inv Invalidator) context.Context {
	return context.WithValue(ctx, originKey{}, origin{inv: inv, late: true})
}

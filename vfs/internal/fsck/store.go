package fsck

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// Store is what a check needs of the namespace that it checks.
type Store interface {
	// View runs fn on one consistent snapshot.
	View(ctx context.Context, fn func(r cluster.Reader) error) error
	// Update runs a repair in a transaction, like any operation.
	Update(ctx context.Context, fn Repair) error

	// Left returns a number: what has a smaller one, and neither is stored nor pinned,
	// was left by a process that is gone.
	Left(r cluster.Reader) (before uint64, err error)
	// Oldest returns a number: this process will name no blob with a smaller one that is not
	// named yet.
	Oldest() uint64
	// Pinned reports whether somebody may read or write a content.
	Pinned(c record.ContentID) bool

	// ReadFile reads all that is stored of a file, and returns its inode and the
	// CRC64NVME of the bytes. It reads on after damage, for all of that to be noted,
	// and returns it then; ErrStale.
	ReadFile(ctx context.Context, ino record.Ino) (n *record.Inode, crc uint64, err error)
}

// Repair mends one finding.
type Repair func(t cluster.Txn, r Repairer) error

// Repairer makes the changes of a Repair that concern more than one record. The
// transaction is the repair's.
type Repairer interface {
	// RemoveContent removes the extents of a content and has its blobs collected.
	RemoveContent(t cluster.Txn, id record.ContentID) error
	// Hold has user hold source again, which is held from then on even if its record was lost.
	Hold(t cluster.Txn, source, user record.ContentID) error
	// ReleaseRef ends user's hold on source.
	ReleaseRef(t cluster.Txn, source, user record.ContentID) error
	// Share marks the content of n as shared.
	Share(t cluster.Txn, n *record.Inode) error
	// RemoveUnused has an inode without links removed once nobody uses it.
	RemoveUnused(t cluster.Txn, n *record.Inode) error
	// DeleteEntry removes an entry, and nothing of what it leads to.
	DeleteEntry(t cluster.Txn, parent record.Ino, e *record.Dentry) error
	// Adopt gives an inode that no directory holds a name in /lost+found.
	Adopt(t cluster.Txn, ino record.Ino) error
}

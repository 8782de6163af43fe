package admin

import "context"

// Exports keeps the exports. Errors are those of vfs and apierr.
type Exports interface {
	List(ctx context.Context) ([]Export, error)
	Add(ctx context.Context, e AddExport) (Export, error)
	Revoke(ctx context.Context, id string) error
}

// Locks knows the locks of a process. Errors are those of vfs and apierr.
type Locks interface {
	ListLocks(ctx context.Context, f LockFilter) (LockList, error)
	// FreeLocks fails with vfs.ErrNotExist if no such client holds any, and
	// with vfs.ErrBusy if it is connected.
	FreeLocks(ctx context.Context, q FreeLocks) (FreedLocks, error)
}

// Process is what the API needs of the process around it. It is
// nil when a command answers for itself.
type Process interface {
	Gateways() []Gateway
	Mounts() []Mount
	Mount(ctx context.Context, m Mount) error
	// Umount ends a mount, a busy one only if lazy; vfs.ErrNotExist if there
	// is none, vfs.ErrBusy. ends reports whether the process ends with it.
	Umount(ctx context.Context, dir string, lazy bool) (ends bool, err error)
	// Ready reports why requests cannot be served now, or nil.
	Ready(ctx context.Context) error
	// Store reports whether the store takes writes; see Status.
	Store() (state string, why error)
	// Stop begins to shut down and returns at once.
	Stop()
}

package fusemount

import (
	"log/slog"
	"ogw/vfs"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// mountOptions are what go-fuse agrees upon with the kernel.
func mountOptions(opt Options, exclusive bool) *fuse.MountOptions {
	m := &fuse.MountOptions{
		Name:     fsType,
		Options:  []string{"default_permissions"},
		MaxWrite: maxRequestBytes,
		// Read-ahead is set through sysfs after mounting: the kernel takes at
		// most 128 KiB here.
		MaxBackground:        maxBackground,
		EnableLocks:          true,
		EnableAcl:            true,
		EnableSymlinkCaching: true,
		// Pages are dropped by notification, not when a time stamp moved:
		// every own write moves it.
		ExplicitDataCacheControl: exclusive,
		DisableSplice:            true, // replies come from memory
		Debug:                    opt.Debug,
		Logger:                   slog.NewLogLogger(opt.Logger.Handler(), slog.LevelDebug),
		// Not CAP_ASYNC_DIO: the kernel drops the pages under an asynchronous
		// direct write before it is done, and a reader beside it then keeps the
		// old ones.
		ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_DONT_MASK |
			fuse.CAP_HANDLE_KILLPRIV_V2 | fuse.CAP_SETXATTR_EXT | fuse.CAP_READDIRPLUS_AUTO |
			fuse.CAP_DIRECT_IO_ALLOW_MMAP | fuse.CAP_NO_OPENDIR_SUPPORT,
		PanicHandler: func(v any) fuse.Status {
			opt.Logger.Error("panic in a fuse request", "panic", v, "stack", stack())
			return fuse.EIO
		},
	}
	switch {
	case opt.NoHandles:
		m.ExtraCapabilities |= fuse.CAP_NO_EXPORT_SUPPORT
	case opt.Root == vfs.RootIno:
		// A handle says nothing of the way to its file: elsewhere it would
		// lead out of the mount.
		m.ExtraCapabilities |= fuse.CAP_EXPORT_SUPPORT
	}
	if opt.Writeback {
		m.ExtraCapabilities |= fuse.CAP_WRITEBACK_CACHE
	}
	return m
}

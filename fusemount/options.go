package fusemount

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"ogw/fusemount/internal/fuseabi"
	"ogw/vfs"
)

// Defaults and limits of Options.
const (
	// DefaultTimeout is how long the kernel may keep names and attributes.
	// Changes invalidate them, so it bounds only the damage of a lost one.
	DefaultTimeout = time.Minute
	// maxRequestBytes is what one READ or WRITE carries; the kernel's limit.
	maxRequestBytes = fuseabi.MaxRequestBytes
	// readAheadKB is set on the mount's backing device: the kernel's default
	// of 128 KiB would cut sequential reads into small requests.
	readAheadKB = 4096
	// maxBackground bounds the kernel's asynchronous requests (read-ahead,
	// writeback): enough to keep 4 MiB of read-ahead for several readers in
	// flight, few enough to bound their buffers to 64 MiB.
	maxBackground = 64
)

// fsType is the subtype: the mount table shows fuse.ogw.
const fsType = "ogw"

// Options of a mount. The zero value is a private, writable mount of the
// whole namespace.
type Options struct {
	// Root is the directory that the mount shows; 0 means vfs.RootIno.
	Root vfs.Ino
	// FSName is the source that mount(8) and df show. Default "ogw".
	FSName string
	// AllowOther lets users other than the mounting one in.
	AllowOther bool
	// ReadOnly refuses all changes through this mount.
	ReadOnly bool
	// NonEmpty mounts over a directory that has entries.
	NonEmpty bool
	// EntryTimeout and AttrTimeout bound how long the kernel keeps names
	// (absent ones too) and attributes. 0 means the default, negative none. Where other
	// processes may change the store unseen, names are not kept.
	EntryTimeout time.Duration
	AttrTimeout  time.Duration
	// Writeback turns the kernel's writeback cache on: faster small writes,
	// but a size changed through another door is not seen while the kernel
	// remembers the inode. For mounts that nobody else writes under; ErrBeside where
	// other processes may change the store.
	Writeback bool
	// FlushBehind has close(2) not wait for the store: what was written is stored within
	// about a second, as what is not closed. fsync waits as ever.
	FlushBehind bool
	// NoHandles has the kernel offer no file handles (name_to_handle_at). Overlayfs finds the
	// lower file of a copy by one, and then answers ESTALE, since what it found has no name
	// in the kernel's cache by which it could be looked up.
	NoHandles bool
	// MountFlags are further flags: suid, nosuid, dev, nodev, exec, noexec,
	// noatime, nodiratime, nosymfollow, sync. Default nosuid, nodev.
	MountFlags []string
	// Transport is how requests come from the kernel.
	Transport Transport
	// Debug logs every request at debug level.
	Debug bool
	// Observe is called after every request with its operation (a closed
	// set: lookup, getattr, read, ...), what it took and its error, 0 for
	// none. It must be fast and safe for concurrent use. May be nil.
	Observe func(operation string, took time.Duration, errno syscall.Errno)
	// Done is called after requests that were refused and after changes of
	// buckets, ACLs and file flags, with DoneAll after all that Observe is called for. It
	// must be fast and safe for concurrent use. May be nil.
	Done    func(*Record)
	DoneAll bool
	// Logger; default: discard.
	Logger *slog.Logger

	// Holder, if set, makes a mount that survives its server (see
	// Mounts.TakeOver). Requests come through /dev/fuse then.
	Holder Holder
	// Abandon bounds how long such a mount waits for a server that serves it;
	// 0 is for ever.
	Abandon time.Duration

	ringThreads int // 0 means ring.MaxThreads
}

// sync reports whether the kernel is to write everything at once.
func (o *Options) sync() bool { return slices.Contains(o.MountFlags, "sync") }

func (o Options) withDefaults(exclusive bool) Options {
	if o.Root == 0 {
		o.Root = vfs.RootIno
	}
	if o.FSName == "" {
		o.FSName = "ogw"
	}
	for _, t := range []*time.Duration{&o.EntryTimeout, &o.AttrTimeout} {
		switch {
		case *t < 0:
			*t = 0
		case *t == 0:
			*t = DefaultTimeout
		}
	}
	if !exclusive {
		o.EntryTimeout = 0
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// ErrBeside means that an option cannot be had where other processes may change the store.
var ErrBeside = errors.New("not beside other gateways (cluster.gateways)")

// beside returns why o cannot be had where other processes may change the store unseen: the
// kernel would show what it keeps.
func (o *Options) beside() error {
	switch {
	case o.Writeback:
		return fmt.Errorf("%w: writeback: the kernel would go on with its own idea of a file's size, and store over what others wrote", ErrBeside)
	case o.EntryTimeout > 0:
		return fmt.Errorf("%w: entry_timeout: names are looked up each time", ErrBeside)
	}
	return nil
}

// Holder has another process keep what a mount needs to survive its server. A
// superblock has the Holder of its first mount.
type Holder interface {
	// Hold keeps a superblock: its /dev/fuse and the memory that goes with it,
	// which stay the caller's. It is called before the kernel is answered for
	// the first time.
	Hold(name string, device, memory int) error
	// Drop ends that, when the superblock is gone.
	Drop(name string)
}

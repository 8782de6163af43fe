package fusemount

import (
	"errors"

	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/ring"
)

// Transport is how requests come from the kernel.
type Transport int

// Transports.
const (
	// TransportAuto is io_uring where the kernel offers it, else /dev/fuse.
	TransportAuto Transport = iota
	// TransportRing is io_uring. It turns it on for the machine if need be
	// (module parameter enable_uring of fuse).
	TransportRing
	// TransportDevice is /dev/fuse.
	TransportDevice
)

// ErrNoRing says why requests cannot come through io_uring.
var ErrNoRing = ring.ErrUnavailable

// wantsRing reports whether a mount is to try io_uring.
func (o *Options) wantsRing() (bool, error) {
	switch {
	case o.Transport == TransportDevice || o.Holder != nil:
		return false, nil
	case o.Transport == TransportRing:
		return true, ring.Enable()
	}
	return ring.Offered(), nil
}

func (c *connection) newRing() (*ring.Ring, error) {
	return ring.New(ring.Config{Threads: c.raw.opt.ringThreads, Probe: c.probe, Several: c.set.several.Load, Logger: c.raw.opt.Logger})
}

// probe asks for attributes on one CPU. It waits for them on a thread without
// /dev/fuse and the rings (see sizes).
func (c *connection) probe(cpu *unix.CPUSet, begin func()) (err error) {
	onOwnThread(func() {
		err = errors.Join(ownDescriptors(-1), unix.SchedSetaffinity(0, cpu))
		begin()
		if err != nil || c.enter() != nil { // gone
			return
		}
		var st unix.Statx_t
		_ = unix.Statx(unix.AT_FDCWD, ".", unix.AT_STATX_FORCE_SYNC, unix.STATX_SIZE, &st)
		_ = unix.Chdir("/") // cannot fail
	})
	return err
}

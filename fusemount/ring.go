package fusemount

import (
	"errors"

	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/ring"
)

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
	r, err := ring.New(ring.Config{Threads: c.raw.opt.ringThreads, Probe: c.probe, Several: c.tells, InTime: c.raw.answerTime(), Logger: c.raw.opt.Logger})
	if err == nil {
		c.raw.pauses = r.Waits
	}
	return r, err
}

// tells reports whether requests that change something may wait until the kernel knows of
// it: other superblocks', or this one's pages of what is written past them.
func (c *connection) tells() bool {
	return c.prepared.Load() && (c.raw.beside || c.set.several.Load())
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

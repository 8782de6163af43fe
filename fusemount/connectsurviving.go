package fusemount

import (
	"errors"
	"fmt"
	"ogw/fusemount/internal/fuseabi"
	"ogw/fusemount/ledger"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// connectSurviving is connect of a superblock that survives: what the kernel and
// we agree upon is kept before the kernel knows.
func (c *connection) connectSurviving(fd int, api fuse.RawFileSystem, options *fuse.MountOptions) error {
	book, err := ledger.New()
	if err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	if c.loop, err = newLoop(c.raw, fd, api, options); err != nil {
		return errors.Join(err, book.Close(), unix.Close(fd))
	}
	book.SetRoot(uint64(c.raw.opt.Root))
	book.SetPrimary(c.raw.primary.Load())
	c.raw.survive(book)
	b, err := c.loop.requestMemory()
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(b) }() // ours
	in := c.loop.read(b)
	if in == nil {
		return errors.New("the kernel sends no INIT")
	}
	out := b[answerAt:]
	c.loop.resends = offersResend(in)
	n, st := c.loop.proto.HandleRequest([][]byte{in}, [][]byte{out})
	if !st.Ok() || n < fuseabi.OutHeaderSize {
		return fmt.Errorf("INIT: %v", st)
	}
	c.raw.negotiated(out[:n])
	if err := book.SetInit(in, out[:n]); err != nil {
		return err
	}
	if err := c.raw.opt.Holder.Hold(c.raw.surv.name(), fd, book.FD()); err != nil {
		return err
	}
	c.raw.inv.server.Store(notifierBox{&c.loop.apart})
	c.loop.write(out[:n], 0, fuseabi.OpInit)
	c.loop.start()
	return nil
}

// endSurviving cleans up behind the end of the connection.
func (c *connection) endSurviving() {
	c.raw.OnUnmount()
	if s := c.raw.surv; s != nil {
		c.raw.opt.Holder.Drop(s.name())
		s.end()
	}
}

// survives reports whether the superblock survives its server.
func (c *connection) survives() bool { return c.raw.opt.Holder != nil }

// Survives reports whether the mount survives its server.
func (s *Server) Survives() bool { return s.conn.survives() }

// setPrimary makes the connection the primary one.
func (c *connection) setPrimary() {
	c.raw.primary.Store(true)
	c.raw.surv.withBook(func(b *ledger.Ledger) { b.SetPrimary(true) })
}

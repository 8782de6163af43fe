// Package pipe carries pages from the store to sockets, without copies.
package pipe

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// Bytes is what a Pipe holds, in whole pages: the most that the system lets an
	// ordinary user have.
	Bytes = 1 << 20
	// kept is how many pipes of a Pool stay open for the next reply.
	kept = 16
)

// Pipe holds pages on their way. It is for one goroutine at a time.
type Pipe struct {
	r, w   int
	left   int  // bytes in it
	unsure bool // a Fill failed: it may hold more than left says
}

// open returns one of Bytes; nil where the system does not allow that.
func open() *Pipe {
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		return nil
	}
	p := &Pipe{r: fds[0], w: fds[1]}
	if n, err := unix.FcntlInt(uintptr(p.w), unix.F_SETPIPE_SZ, Bytes); err != nil || n < Bytes {
		p.close()
		return nil
	}
	return p
}

func (p *Pipe) close() {
	_ = unix.Close(p.r)
	_ = unix.Close(p.w)
}

// Fill has put put something into the pipe, whose end for writing it is given, and
// returns how many bytes. After an error the pipe holds anything (Pool.Put).
func (p *Pipe) Fill(put func(w int) (int64, error)) (int, error) {
	n, err := put(p.w)
	if err != nil {
		p.unsure = true
		return 0, err
	}
	p.left += int(n)
	return int(n), nil
}

// Len returns how many bytes are in the pipe.
func (p *Pipe) Len() int { return p.left }

// Read implements io.Reader, for what is to be copied after all.
func (p *Pipe) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n, err := unix.Read(p.r, b[:min(len(b), p.left)])
	if err != nil || n == 0 {
		return 0, errors.Join(io.ErrUnexpectedEOF, err)
	}
	p.left -= n
	return n, nil
}

// Send moves what is in the pipe to a socket, and returns how much before an error.
func (p *Pipe) Send(socket syscall.RawConn) (sent int, err error) {
	failed := socket.Write(func(fd uintptr) bool {
		for p.left > 0 {
			n, e := unix.Splice(p.r, nil, int(fd), nil, p.left, unix.SPLICE_F_NONBLOCK)
			if errors.Is(e, unix.EAGAIN) {
				return false
			}
			if e == nil && n == 0 {
				e = io.ErrUnexpectedEOF
			}
			if e != nil && !errors.Is(e, unix.EINTR) {
				err = os.NewSyscallError("splice", e)
				return true
			}
			p.left -= int(max(n, 0))
			sent += int(max(n, 0))
		}
		return true
	})
	if failed != nil {
		err = failed
	}
	return sent, err
}

// empty reports whether nothing is in the pipe, whatever left says.
func (p *Pipe) empty() bool {
	n, err := unix.IoctlGetInt(p.r, unix.TIOCINQ)
	return err == nil && n == 0
}

// Pool are pipes for replies. It is safe for concurrent use. A nil Pool has none.
type Pool struct {
	idle chan *Pipe
	room atomic.Int64
}

// NewPool returns one of so many pipes at the most.
func NewPool(most int) *Pool {
	p := &Pool{idle: make(chan *Pipe, kept)}
	p.room.Store(int64(most))
	return p
}

// Get returns an empty pipe, or nil.
func (s *Pool) Get() *Pipe {
	if s == nil {
		return nil
	}
	if s.room.Add(-1) >= 0 {
		select {
		case p := <-s.idle:
			return p
		default:
			if p := open(); p != nil {
				return p
			}
		}
	}
	s.room.Add(1)
	return nil
}

// Put takes a pipe back, which it closes if something is in it.
func (s *Pool) Put(p *Pipe) {
	if p == nil {
		return
	}
	defer s.room.Add(1)
	if p.left == 0 && (!p.unsure || p.empty()) {
		p.unsure = false
		select {
		case s.idle <- p:
			return
		default:
		}
	}
	p.close()
}

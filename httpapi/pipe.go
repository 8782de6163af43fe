package httpapi

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// pipeBytes is what a pipe holds: as much as pace has written at a time.
	pipeBytes = 1 << 20
	// pipesKept is how many pipes stay open for the next response.
	pipesKept = 16
)

// pipe carries pages from the store to a socket, without copies.
type pipe struct {
	r, w int
	left int // bytes in it
}

// newPipe returns one of pipeBytes; nil where the system does not allow that.
func newPipe() *pipe {
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		return nil
	}
	p := &pipe{r: fds[0], w: fds[1]}
	if n, err := unix.FcntlInt(uintptr(p.w), unix.F_SETPIPE_SZ, pipeBytes); err != nil || n < pipeBytes {
		p.close()
		return nil
	}
	return p
}

func (p *pipe) close() {
	_ = unix.Close(p.r)
	_ = unix.Close(p.w)
}

// pipes are empty ones, for the next response.
type pipes chan *pipe

// get returns one, or nil.
func (s pipes) get() *pipe {
	select {
	case p := <-s:
		return p
	default:
		return newPipe()
	}
}

// put takes back a pipe, which it closes if something is in it.
func (s pipes) put(p *pipe) {
	if p.left == 0 {
		select {
		case s <- p:
			return
		default:
		}
	}
	p.close()
}

// empty reports whether nothing is in the pipe, whatever left says.
func (p *pipe) empty() bool {
	n, err := unix.IoctlGetInt(p.r, unix.TIOCINQ)
	return err == nil && n == 0
}

// Read implements io.Reader, for the few bytes that net/http sends with the head.
func (p *pipe) Read(b []byte) (int, error) {
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

// send moves what is in the pipe to a socket, and returns how much before an error.
func (p *pipe) send(socket syscall.RawConn) (sent int, err error) {
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

package notifier

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxLines bounds the calls that are on their way at a time; more wait. A call
// waits for a request that is being answered at the most.
const maxLines = 64

// ErrGone means that the process is gone, or the Client closed. The call may have
// been made.
var ErrGone = errors.New("the process that notifies the kernel is gone")

// Client is the server's side. It is safe for concurrent use.
type Client struct {
	slots chan struct{} // one for each call
	pid   int

	mu      sync.Mutex
	control int // -1: closed
	idle    []int
}

// Start starts the process for the connection of a /dev/fuse: this program again,
// with Command as its argument.
func Start(device int) (*Client, error) {
	clone, err := cloneDevice(device)
	if err != nil {
		return nil, err
	}
	return start(clone)
}

// start is Start with the /dev/fuse of the process, which it takes over.
func start(clone int) (*Client, error) {
	control, pid, err := launch(clone)
	if err != nil {
		return nil, fmt.Errorf("starting the process that notifies the kernel: %w", err)
	}
	return &Client{slots: make(chan struct{}, maxLines), pid: pid, control: control}, nil
}

// cloneIoctl is FUSE_DEV_IOC_CLONE: _IOR(229, 0, uint32_t).
const cloneIoctl = 2<<30 | 4<<16 | 229<<8

// cloneDevice opens one more /dev/fuse of a connection.
func cloneDevice(device int) (int, error) {
	clone, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	from := uint32(device)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(clone), cloneIoctl, uintptr(unsafe.Pointer(&from))); errno != 0 {
		return -1, errors.Join(fmt.Errorf("one more /dev/fuse: %w", errno), unix.Close(clone))
	}
	return clone, nil
}

// PID is the number of the process.
func (c *Client) PID() int { return c.pid }

// Close ends the process, but for calls that are on their way.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.control < 0 {
		return
	}
	unix.Close(c.control)
	c.control = -1
	for _, line := range c.idle {
		unix.Close(line)
	}
	c.idle = nil
}

// Notify writes a message to the kernel. The error is ErrGone, or the kernel's
// (a syscall.Errno).
func (c *Client) Notify(message []byte) error {
	a, err := c.call(append([]byte{askNotify}, message...))
	if err == nil {
		err = a.err()
	}
	return err
}

// Size makes the kernel ask for the attributes of a file, unless it knows its
// size; known reports that. The error is ErrGone, or the kernel's.
func (c *Client) Size(s *Size) (known bool, err error) {
	message, err := s.message()
	if err != nil {
		return false, err
	}
	a, err := c.call(message)
	if err == nil {
		err = a.err()
	}
	return a[4] != 0, err
}

// call has a thread of the process do something.
func (c *Client) call(message []byte) (a answer, err error) {
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	line, err := c.take()
	if err != nil {
		return a, fmt.Errorf("%w: %w", ErrGone, err)
	}
	n := 0
	for {
		if _, err = unix.SendmsgN(line, message, nil, nil, unix.MSG_NOSIGNAL); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	for err == nil {
		if n, err = unix.Read(line, a[:]); !errors.Is(err, unix.EINTR) {
			break
		}
		err = nil
	}
	if err != nil || n != len(a) {
		unix.Close(line)
		return answer{}, fmt.Errorf("%w: %w", ErrGone, errors.Join(err, fmt.Errorf("it answered %d bytes", n)))
	}
	c.release(line)
	return a, nil
}

// take returns a line that nobody uses.
func (c *Client) take() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.control < 0 {
		return -1, unix.ENOTCONN
	}
	if n := len(c.idle); n > 0 {
		line := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return line, nil
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(pair[1])
	if err := unix.Sendmsg(c.control, []byte{0}, unix.UnixRights(pair[1]), nil, unix.MSG_NOSIGNAL); err != nil {
		return -1, errors.Join(err, unix.Close(pair[0]))
	}
	return pair[0], nil
}

func (c *Client) release(line int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.control < 0 {
		unix.Close(line)
		return
	}
	c.idle = append(c.idle, line)
}

func (a *answer) setErrno(e syscall.Errno) { binary.NativeEndian.PutUint32(a[:], uint32(e)) }

func (a *answer) err() error {
	if e := syscall.Errno(binary.NativeEndian.Uint32(a[:])); e != 0 {
		return e
	}
	return nil
}

// message leaves out mount points for which there is no room.
func (s Size) message() ([]byte, error) {
	for {
		b, err := json.Marshal(s)
		if err != nil || len(b) < maxMessage {
			return append([]byte{askSize}, b...), err
		}
		s.Dirs = s.Dirs[:len(s.Dirs)/2]
	}
}

package holder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Client is a server's connection to its holder. As long as it is open, nobody
// else gets what is held. It is for one goroutine at a time.
type Client struct {
	socket int
	// hung means that an answer did not come in time. It may come still, in
	// place of the next one.
	hung  bool
	fresh bool
}

// Fresh reports whether Start started the holder: it has nothing yet.
func (c *Client) Fresh() bool { return c.fresh }

const (
	// answerWait is how long a holder that lives (stopped by a debugger, frozen) is
	// waited for.
	answerWait = 5 * time.Second
	// listWait is the same for the first answer to List, before which the server before
	// has to be gone: the kernel may still be writing out its memory.
	listWait = 30 * time.Second
)

// bound has calls on one side of a socket (SO_SNDTIMEO, also for connect, SO_RCVTIMEO) wait for
// so long at the most.
func bound(socket, side int, wait time.Duration) error {
	t := unix.NsecToTimeval(wait.Nanoseconds())
	return unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, side, &t)
}

// address names a socket by its folder's descriptor, since its path may be
// longer than a socket's address can be. release comes after its use.
func address(path string) (addr *unix.SockaddrUnix, release func(), err error) {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	name := fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(path))
	return &unix.SockaddrUnix{Name: name}, func() { _ = unix.Close(dir) }, nil
}

func newSocket() (int, error) {
	return unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
}

// Dial connects to the holder whose socket is at path. ErrNone if there is none.
// What the Client does then waits for the server before to be gone.
func Dial(path string) (*Client, error) {
	socket, err := connect(path)
	switch {
	case err == nil:
		return &Client{socket: socket}, nil
	case slices.ContainsFunc([]error{unix.ENOENT, unix.ENOTDIR, unix.ECONNREFUSED}, func(e error) bool { return errors.Is(err, e) }):
		err = fmt.Errorf("%w: %w", ErrNone, err)
	case errors.Is(err, unix.EAGAIN):
		err = ErrHung
	}
	return nil, err
}

// connect returns a socket that is connected to that of a holder.
func connect(path string) (socket int, err error) {
	addr, release, err := address(path)
	if err != nil {
		return -1, err
	}
	defer release()
	if socket, err = newSocket(); err != nil {
		return -1, err
	}
	// It waits where others are in the queue, of which one that does not answer takes none.
	err = bound(socket, unix.SO_SNDTIMEO, answerWait)
	if err == nil {
		err = ignoringEINTR(func() error { return unix.Connect(socket, addr) })
	}
	if err == nil {
		err = samePeer(socket)
	}
	if err != nil {
		_ = unix.Close(socket)
		return -1, err
	}
	return socket, nil
}

// Listen makes the socket of a holder at path, in a folder that nobody else
// may write to, for Serve in another process. What a holder left that is gone is
// replaced: the caller sees to it that no two processes call it at once.
func Listen(path string) (*os.File, error) {
	addr, release, err := address(path)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := unix.Unlink(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	socket, err := newSocket()
	if err != nil {
		return nil, err
	}
	// The mode of the file follows that of the socket: never is it another.
	if err = unix.Fchmod(socket, 0o600); err == nil {
		err = unix.Bind(socket, addr)
	}
	if err == nil {
		err = unix.Listen(socket, 1)
	}
	if err != nil {
		_ = unix.Close(socket)
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return os.NewFile(uintptr(socket), path), nil
}

// samePeer refuses a process of another user than this one's or root.
func samePeer(socket int) error {
	cred, err := unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err == nil && cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		err = fmt.Errorf("%w: it is a process of user %d", ErrRefused, cred.Uid)
	}
	return err
}

// Ended returns what is closed when the holder is gone, or the Client closed.
func (c *Client) Ended() (<-chan struct{}, error) {
	socket, err := unix.FcntlInt(uintptr(c.socket), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer unix.Close(socket)
		list := []unix.PollFd{{Fd: int32(socket)}} // POLLHUP is always reported
		for n, err := 0, error(nil); n == 0 || err != nil; {
			if n, err = unix.Poll(list, -1); err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return ended, nil
}

// Close ends the connection; what is held stays.
func (c *Client) Close() error {
	_ = unix.Shutdown(c.socket, unix.SHUT_RDWR) // who waits for its end has it, too
	return unix.Close(c.socket)
}

// Put has the holder keep an item, in place of one of the same name. ErrRefused, and behind
// ErrHung nothing else: another Client may find a holder that goes on.
func (c *Client) Put(i Item) error { return c.ask(request{opPut, i}, i.Device, i.Memory) }

// Drop has the holder let go of an item, which it need not have.
func (c *Client) Drop(name string) error {
	return c.ask(request{Op: opDrop, Item: Item{Name: name}})
}

// ask sends a request and waits for its answer, which is not an item.
func (c *Client) ask(r request, fds ...int) error {
	err := c.say(r, answerWait, fds...)
	if err == nil {
		_, err = c.answer()
	}
	return err
}

// say sends a request, whose answer is waited for so long.
func (c *Client) say(r request, wait time.Duration, fds ...int) error {
	if c.hung {
		return ErrHung
	}
	if err := errors.Join(bound(c.socket, unix.SO_SNDTIMEO, answerWait), bound(c.socket, unix.SO_RCVTIMEO, wait)); err != nil {
		return err
	}
	return c.inTime(send(c.socket, r, fds...))
}

// inTime is ErrHung, also from then on, in place of the err of a call that waited for too long.
func (c *Client) inTime(err error) error {
	if errors.Is(err, unix.EAGAIN) {
		c.hung = true
		return ErrHung
	}
	return err
}

// List returns all that is held. The descriptors are the caller's. ErrHung if the server before is
// not gone within half a minute, or the holder does not answer.
func (c *Client) List() ([]Item, error) { return c.list(listWait) }

func (c *Client) list(wait time.Duration) (list []Item, err error) {
	if err := c.say(request{Op: opList}, wait); err != nil {
		return nil, err
	}
	for {
		i, err := c.answer()
		if err == nil && list == nil { // it is this client's turn
			err = bound(c.socket, unix.SO_RCVTIMEO, answerWait)
		}
		if err != nil {
			for _, i := range list {
				i.Close()
			}
			return nil, err
		}
		if i == nil {
			return list, nil
		}
		list = append(list, *i)
	}
}

func (c *Client) answer() (*Item, error) {
	var r reply
	fds, err := receive(c.socket, &r)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return nil, c.inTime(err)
	case err != nil:
		return nil, fmt.Errorf("holder: %w", err)
	case r.Err != "":
		closeAll(fds)
		return nil, fmt.Errorf("%w: %s", ErrRefused, r.Err)
	case r.Item == nil:
		closeAll(fds)
		return nil, nil
	case len(fds) != maxFDs:
		closeAll(fds)
		return nil, fmt.Errorf("%w: %s came with %d descriptors", ErrRefused, r.Item.Name, len(fds))
	}
	r.Item.Device, r.Item.Memory = fds[0], fds[1]
	return r.Item, nil
}

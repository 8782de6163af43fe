package fusemount

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/fusemount/notifier"
)

const (
	notifyInvalInode = 2
	notifyInvalEntry = 3
	notifyResend     = 7

	// apartTries bounds how often a call meets a process that just ended.
	apartTries = 3
	// apartPause is the time between a failed start of that process and the next.
	apartPause = time.Second
)

// apart makes the calls that may wait for requests of the mount in another
// process (package notifier), since they outlive this one if it is killed.
type apart struct {
	start func() (*notifier.Client, error)
	send  func(message []byte) fuse.Status // writes to the kernel, where there is no other process
	log   *slog.Logger

	mu     sync.Mutex
	client *notifier.Client // nil: none was started yet, or it is gone
	again  time.Time        // no start before
	closed bool
}

func (a *apart) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.client != nil {
		a.client.Close()
	}
}

// caller returns the process for such calls, and starts it if there is none.
func (a *apart) caller() (*notifier.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return nil, syscall.ENODEV
	case a.client != nil:
		return a.client, nil
	case time.Now().Before(a.again):
		return nil, notifier.ErrGone
	}
	c, err := a.start()
	if err != nil {
		a.again = time.Now().Add(apartPause)
		a.log.Error("this process notifies the kernel itself: if it is killed meanwhile, it may not end before the mount does", "err", err)
		return nil, fmt.Errorf("%w: %w", notifier.ErrGone, err)
	}
	a.client = c
	a.log.Debug("another process notifies the kernel", "pid", c.PID())
	return c, nil
}

// call has fn make a call in the other process. notifier.ErrGone: there is none.
func (a *apart) call(fn func(c *notifier.Client) error) (err error) {
	for range apartTries {
		var c *notifier.Client
		if c, err = a.caller(); err != nil {
			return err
		}
		if err = fn(c); !errors.Is(err, notifier.ErrGone) {
			return err
		}
		a.gone(c)
	}
	return err
}

// gone has the next call start another process than c.
func (a *apart) gone(c *notifier.Client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client == c && !a.closed {
		a.client = nil
		c.Close()
	}
}

// notification is a message to the kernel that is no answer.
func notification(code int32, body []byte) []byte {
	const size = int(unsafe.Sizeof(fuse.OutHeader{}))
	b := make([]byte, size, size+len(body))
	binary.NativeEndian.PutUint32(b, uint32(size+len(body)))
	binary.NativeEndian.PutUint32(b[4:], uint32(code))
	return append(b, body...)
}

// notify sends the kernel a message that may wait for requests.
func (a *apart) notify(code int32, body []byte) fuse.Status {
	message := notification(code, body)
	err := a.call(func(c *notifier.Client) error { return c.Notify(message) })
	var errno syscall.Errno
	switch {
	case err == nil:
		return fuse.OK
	case errors.Is(err, notifier.ErrGone):
		return a.send(message)
	case errors.As(err, &errno):
		return fuse.Status(errno)
	}
	return fuse.EIO
}

// InodeNotify implements kernelNotifier.
func (a *apart) InodeNotify(node uint64, off, length int64) fuse.Status {
	return a.notify(notifyInvalInode, invalInode(node, off, length))
}

// invalInode is the body of FUSE_NOTIFY_INVAL_INODE.
func invalInode(node uint64, off, length int64) []byte {
	b := binary.NativeEndian.AppendUint64(nil, node)
	b = binary.NativeEndian.AppendUint64(b, uint64(off))
	return binary.NativeEndian.AppendUint64(b, uint64(length))
}

// EntryNotify implements kernelNotifier.
func (a *apart) EntryNotify(parent uint64, name string) fuse.Status {
	b := binary.NativeEndian.AppendUint64(nil, parent)
	b = binary.NativeEndian.AppendUint32(b, uint32(len(name)))
	b = binary.NativeEndian.AppendUint32(b, 0)
	return a.notify(notifyInvalEntry, append(append(b, name...), 0))
}

// tellSize makes the kernel ask for a size, as sizes does.
func (a *apart) tellSize(s *notifier.Size) (known bool, err error) {
	err = a.call(func(c *notifier.Client) (err error) {
		known, err = c.Size(s)
		return err
	})
	return known, err
}

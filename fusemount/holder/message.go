package holder

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxMessage bounds a message, which holds the options of one mount.
	maxMessage = 64 << 10
	// maxFDs is how many descriptors go with an item: the connection and the
	// memory.
	maxFDs = 2
	// MaxItems bounds what a holder holds, far above the mounts of a process.
	MaxItems = 256
)

// Errors of a Client.
var (
	// ErrNone: nobody holds anything here.
	ErrNone = errors.New("no mounts are held")
	// ErrRefused: the holder does not do it; the error has the reason.
	ErrRefused = errors.New("holder")
	// ErrHung is the ErrRefused of one that does not answer.
	ErrHung = fmt.Errorf("%w: it does not answer", ErrRefused)
)

// Item is one mount that is held.
type Item struct {
	// Name is unlike that of any other: the mount point.
	Name string `json:"name"`
	// Meta is what the server needs to go on with it.
	Meta json.RawMessage `json:"meta,omitempty"`
	// Abandon is how long it is held without a server; 0 is for ever.
	Abandon time.Duration `json:"abandon,omitempty"`
	// Device is /dev/fuse, Memory a memfd.
	Device, Memory int `json:"-"`
}

// Close closes the item's descriptors.
func (i *Item) Close() { closeAll([]int{i.Device, i.Memory}) }

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // ours, and never written through
	}
}

// Operations of a request.
const (
	opPut  = "put"
	opDrop = "drop"
	opList = "list"
)

type request struct {
	Op   string `json:"op"`
	Item Item   `json:"item,omitzero"`
}

// reply answers a request; a list is one reply for each item, and one without.
type reply struct {
	Err  string `json:"err,omitempty"`
	Item *Item  `json:"item,omitempty"`
}

// send sends one message.
func send(socket int, message any, fds ...int) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("a message of %d bytes is too long", len(b))
	}
	var control []byte
	if len(fds) > 0 {
		control = unix.UnixRights(fds...)
	}
	return ignoringEINTR(func() error { return unix.Sendmsg(socket, b, control, nil, unix.MSG_NOSIGNAL) })
}

// errClosed means that the other side is gone.
var errClosed = errors.New("connection closed")

// receive receives one message and the descriptors with it, which are the
// caller's unless it fails.
func receive(socket int, message any) (fds []int, err error) {
	b, control := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*maxFDs))
	var n, cn, flags int
	err = ignoringEINTR(func() (err error) {
		n, cn, flags, _, err = unix.Recvmsg(socket, b, control, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	switch {
	case errors.Is(err, unix.ECONNRESET), err == nil && n == 0:
		return nil, errClosed
	case err != nil:
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:cn])
	for i := range messages {
		list, e := unix.ParseUnixRights(&messages[i])
		fds, err = append(fds, list...), errors.Join(err, e)
	}
	if err == nil && flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		err = errors.New("the message is too long")
	}
	if err == nil {
		err = json.Unmarshal(b[:n], message)
	}
	if err != nil {
		closeAll(fds)
		return nil, err
	}
	return fds, nil
}

func ignoringEINTR(fn func() error) error {
	for {
		if err := fn(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

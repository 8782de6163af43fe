package holder

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// holder is the state of Serve.
type holder struct {
	listener  int
	startWait time.Duration
	items     []Item
	alone     time.Time // since when no server is connected
}

// Serve holds what servers put, until there is nothing left. It takes over
// listener, which Listen made at path.
func Serve(listener *os.File, path string) error {
	return serve(listener, path, startWait)
}

func serve(listener *os.File, path string, startWait time.Duration) error {
	h := &holder{listener: int(listener.Fd()), startWait: startWait}
	defer func() {
		// In this order: whoever is refused finds no socket, or the next
		// holder's. With an error, it was removed by somebody else.
		_ = unix.Unlink(path)
		_ = listener.Close()
	}()
	for first := true; ; first = false {
		socket, err := h.accept(first)
		if err != nil || socket < 0 {
			return err
		}
		h.serve(socket)
		_ = unix.Close(socket)
		h.alone = time.Now()
	}
}

// startWait is how long a holder waits for the server that started it, which
// connects at once, unless it was killed.
const startWait = 30 * time.Second

// shortagePause is the pause before a call that failed because the machine, or the process, is
// short of memory or descriptors. What is held is lost with the holder: it goes on until there
// are some.
const shortagePause = 100 * time.Millisecond

// outlived reports whether err was such a failure, after the pause.
func outlived(err error) bool {
	if !slices.ContainsFunc([]error{unix.ENFILE, unix.EMFILE, unix.ENOBUFS, unix.ENOMEM}, func(e error) bool { return errors.Is(err, e) }) {
		return false
	}
	time.Sleep(shortagePause)
	return true
}

// accept waits for a server; -1 if nothing is left to hold, which at first it is
// not: the server that started the holder is on its way.
func (h *holder) accept(first bool) (int, error) {
	begun := time.Now()
	for {
		first = first && time.Since(begun) < h.startWait
		h.dropDead()
		if len(h.items) == 0 && !first {
			// A server that connected meanwhile gets its turn.
			if ready, err := h.poll(0); err != nil || !ready {
				return -1, err
			}
		}
		wait := h.untilAbandoned()
		if first {
			wait = h.startWait // it has nothing yet
		}
		ready, err := h.poll(wait)
		if err != nil {
			return -1, err
		}
		if !ready {
			continue
		}
		socket, _, err := unix.Accept4(h.listener, unix.SOCK_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED), outlived(err):
			continue
		case err != nil:
			return -1, err
		}
		if samePeer(socket) == nil {
			return socket, nil
		}
		_ = unix.Close(socket)
	}
}

// poll waits until a server connects (true), or something happens to what is
// held, or the time is over; negative is none.
func (h *holder) poll(wait time.Duration) (ready bool, err error) {
	list := []unix.PollFd{{Fd: int32(h.listener), Events: unix.POLLIN}}
	for _, i := range h.items {
		list = append(list, unix.PollFd{Fd: int32(i.Device)}) // POLLERR is always reported
	}
	ms := -1
	if wait >= 0 {
		ms = int(wait.Milliseconds())
	}
	if _, err = unix.Poll(list, ms); errors.Is(err, unix.EINTR) || outlived(err) {
		err = nil
	}
	return list[0].Revents&unix.POLLIN != 0, err
}

// untilAbandoned is the time until the first item is abandoned; negative is for ever.
func (h *holder) untilAbandoned() time.Duration {
	wait := time.Duration(-1)
	for _, i := range h.items {
		if i.Abandon > 0 {
			left := max(0, i.Abandon-time.Since(h.alone)) + time.Millisecond
			if wait < 0 || left < wait {
				wait = left
			}
		}
	}
	return wait
}

// dropDead lets go of connections that the kernel ended, and of those whose
// time without a server is over.
func (h *holder) dropDead() {
	h.items = slices.DeleteFunc(h.items, func(i Item) bool {
		p := []unix.PollFd{{Fd: int32(i.Device)}}
		n, err := unix.Poll(p, 0)
		dead := err == nil && n > 0 && p[0].Revents&(unix.POLLERR|unix.POLLNVAL) != 0
		dead = dead || i.Abandon > 0 && !h.alone.IsZero() && time.Since(h.alone) >= i.Abandon
		if dead {
			i.Close()
		}
		return dead
	})
}

// serve answers one server until it closes its connection.
func (h *holder) serve(socket int) {
	for {
		var r request
		fds, err := receive(socket, &r)
		if err != nil {
			return
		}
		if err := h.answer(socket, &r, fds); err != nil {
			return
		}
	}
}

func (h *holder) answer(socket int, r *request, fds []int) error {
	if r.Op == opPut {
		if len(fds) != maxFDs {
			closeAll(fds)
			return send(socket, reply{Err: fmt.Sprintf("%d descriptors in place of %d", len(fds), maxFDs)})
		}
		h.drop(r.Item.Name)
		if len(h.items) >= MaxItems {
			closeAll(fds)
			return send(socket, reply{Err: fmt.Sprintf("it holds %d mounts already", MaxItems)})
		}
		r.Item.Device, r.Item.Memory = fds[0], fds[1]
		h.items = append(h.items, r.Item)
		return send(socket, reply{})
	}
	closeAll(fds)
	switch r.Op {
	case opDrop:
		h.drop(r.Item.Name)
		return send(socket, reply{})
	case opList:
		for i := range h.items {
			if err := send(socket, reply{Item: &h.items[i]}, h.items[i].Device, h.items[i].Memory); err != nil {
				return err
			}
		}
		return send(socket, reply{})
	}
	return send(socket, reply{Err: fmt.Sprintf("unknown operation %q", r.Op)})
}

func (h *holder) drop(name string) {
	h.items = slices.DeleteFunc(h.items, func(i Item) bool {
		if i.Name == name {
			i.Close()
		}
		return i.Name == name
	})
}

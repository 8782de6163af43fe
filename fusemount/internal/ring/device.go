package ring

import (
	"errors"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/fuseabi"
)

const (
	// deviceReadBytes is what a read of /dev/fuse must have room for.
	deviceReadBytes = fuseabi.MaxRequestBytes + 4096
	// interruptTries bounds how long an interrupt waits for its request: the
	// pause between them doubles from interruptPause, to a second in all.
	interruptTries = 11
	interruptPause = time.Millisecond
	// endPause is the pause before requests that do not end are interrupted again.
	endPause = 10 * time.Millisecond
)

// Serve answers what does not come through the ring: the kernel sends FORGET and
// INTERRUPT through /dev/fuse. It returns when the connection is gone and all
// requests are answered.
func (r *Ring) Serve() {
	defer unix.Close(r.fd)
	buf := make([]byte, deviceReadBytes)
	for {
		n, err := unix.Read(r.fd, buf)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil || n < fuseabi.InHeaderSize {
			if !errors.Is(err, unix.ENODEV) && !isGone(err) {
				r.Logger.Error("reading /dev/fuse", "bytes", n, "err", err)
			}
			break
		}
		switch h := (*fuse.InHeader)(unsafe.Pointer(&buf[0])); h.Opcode {
		case fuseabi.OpForget, fuseabi.OpBatchForget:
			r.proto.HandleRequest([][]byte{buf[:n]}, nil)
		case fuseabi.OpInterrupt:
			unique := (*fuse.InterruptIn)(unsafe.Pointer(&buf[0])).Unique
			go r.interrupt(unique)
		default: // from before the ring
			in := slices.Clone(buf[:n])
			r.threads.Go(func() { r.answer(in) })
		}
	}
	r.end()
}

// interrupt cancels a request; it may be on its way still.
func (r *Ring) interrupt(unique uint64) {
	pause := interruptPause
	for range interruptTries - 1 {
		if fuseabi.Interrupt(r.proto, unique) {
			return
		}
		time.Sleep(pause)
		pause *= 2
	}
	fuseabi.Interrupt(r.proto, unique)
}

// answer answers a request that came through /dev/fuse.
func (r *Ring) answer(in []byte) {
	out := make([]byte, fuseabi.OutHeaderSize+fuseabi.MaxRequestBytes)
	n, _ := r.proto.HandleRequest([][]byte{in}, [][]byte{out})
	if _, err := unix.Write(r.fd, out[:n]); n > 0 && err != nil && !errors.Is(err, syscall.ENOENT) {
		r.Logger.Error("answering through /dev/fuse", "err", err)
	}
}

// end interrupts what is waited for, until all threads ended.
func (r *Ring) end() {
	ended := make(chan struct{})
	go func() {
		r.threads.Wait()
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return
		case <-time.After(endPause):
		}
		r.mu.Lock()
		for e := range r.entries {
			if unique := e.unique.Load(); unique != 0 {
				fuseabi.Interrupt(r.proto, unique)
			}
		}
		r.mu.Unlock()
	}
}

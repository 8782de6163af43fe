package fusemount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	// maxRingThreads bounds the threads of a mount, and with them the requests
	// that are answered at a time and their memory, of 1 MiB each. A lock that is
	// waited for holds its thread as long as that takes.
	maxRingThreads = 1024
	// ringSpare threads of a queue at least wait for requests, if there may be so
	// many: a thread is started when fewer do.
	ringSpare = 2
	// ringRetry is the pause before a thread is tried again that could not be
	// started, or an interrupt whose request is not known yet.
	ringRetry = 10 * time.Millisecond
	// interruptTries bounds how long an interrupt waits for its request.
	interruptTries = 100
	// deviceReadBytes is what a read of /dev/fuse must have room for.
	deviceReadBytes = maxRequestBytes + 4096
)

// Transport is how requests come from the kernel.
type Transport int

// Transports.
const (
	// TransportAuto is io_uring where the kernel offers it, else /dev/fuse.
	TransportAuto Transport = iota
	// TransportRing is io_uring. It turns it on for the machine if need be
	// (module parameter enable_uring of fuse).
	TransportRing
	// TransportDevice is /dev/fuse.
	TransportDevice
)

// ErrNoRing says why requests cannot come through io_uring.
var ErrNoRing = errors.New("no FUSE over io_uring")

// ringSwitch is the kernel's parameter.
const ringSwitch = "/sys/module/fuse/parameters/enable_uring"

// ringOffered tells whether the kernel offers new mounts io_uring. With turnOn it
// makes it do so, or returns ErrNoRing with the reason.
func ringOffered(turnOn bool) (bool, error) {
	b, err := os.ReadFile(ringSwitch)
	on := err == nil && strings.HasPrefix(string(b), "Y")
	if on || !turnOn {
		return on, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("%w: the kernel has none; Linux 6.14 has, with CONFIG_FUSE_IO_URING", ErrNoRing)
	}
	if err := os.WriteFile(ringSwitch, []byte("Y"), 0); err != nil {
		return false, fmt.Errorf("%w: it is off, and only root turns it on (echo Y > %s): %w", ErrNoRing, ringSwitch, err)
	}
	return true, nil
}

// ring serves a connection whose requests come through io_uring (see doc.go).
type ring struct {
	f       *rawFS
	fd      int // of /dev/fuse
	proto   *fuse.ProtocolServer
	queues  []*ringQueue // by CPU
	first   []*ringThread
	allowed *unix.CPUSet // where the process may run

	limit   int32 // of threads
	count   atomic.Int32
	threads sync.WaitGroup
	gone    chan struct{}

	mu      sync.Mutex
	entries map[*ringEntry]struct{}
}

// ringQueue takes the requests of the programs that run on one CPU.
//
// The kernel queues a request that finds no entry, and takes it off the queue
// only when another request is answered, not when an entry is added. If all that
// are being answered wait for locks, somebody must kick (see ring.kick).
type ringQueue struct {
	id    int
	home  *unix.CPUSet // where its threads run; nil: anywhere
	idle  atomic.Int32 // entries that hold no request
	begin atomic.Int32 // threads that begin
	waits atomic.Int32 // requests that may wait for locks
	kicks atomic.Bool  // a kick is about to come
	// full counts the moments since which requests may be queued; at the one that
	// clear has, it is known that none are.
	full, clear atomic.Uint64
}

// newRing prepares a ring: what the kernel may refuse, it refuses before it is
// promised one, since from then on it sends requests nowhere else.
func newRing(f *rawFS) (r *ring, err error) {
	cpus, err := possibleCPUs()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRing, err)
	}
	if cpus*ringSpare > maxRingThreads/2 {
		return nil, fmt.Errorf("%w: not made for %d CPUs", ErrNoRing, cpus)
	}
	r = &ring{f: f, limit: f.opt.ringThreads, gone: make(chan struct{}), entries: make(map[*ringEntry]struct{}), allowed: new(unix.CPUSet)}
	if err := unix.SchedGetaffinity(0, r.allowed); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRing, err)
	}
	for id := range cpus {
		q := &ringQueue{id: id}
		if r.allowed.IsSet(id) {
			q.home = new(unix.CPUSet)
			q.home.Set(id)
		}
		r.queues = append(r.queues, q)
		for range ringSpare {
			t, err := r.newThread(q)
			if err != nil {
				r.drop()
				return nil, fmt.Errorf("%w: %w", ErrNoRing, err)
			}
			r.first = append(r.first, t)
		}
	}
	return r, nil
}

// drop releases a ring that never ran.
func (r *ring) drop() {
	for _, t := range r.first {
		t.close()
	}
}

// possibleCPUs is how many queues the kernel has: one for each CPU that the
// machine may ever have.
func possibleCPUs() (int, error) {
	const file = "/sys/devices/system/cpu/possible" // such as 0-3
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	list := strings.TrimSpace(string(b))
	last, err := strconv.Atoi(list[strings.LastIndexAny(list, "-,")+1:])
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return last + 1, nil
}

// start has the kernel send the requests of fd's connection through the ring, to
// api. init is how it began the connection. Behind an error too, serve must run
// until the connection is gone.
func (r *ring) start(fd int, init fuse.InitIn, api fuse.RawFileSystem, opt *fuse.MountOptions) error {
	r.fd, r.proto = fd, fuse.NewProtocolServer(api, opt)
	// go-fuse has answered it; what handles the requests must know it too.
	init.InHeader = fuse.InHeader{Length: uint32(unsafe.Sizeof(init)), Opcode: opInit, Unique: init.Unique}
	in := unsafe.Slice((*byte)(unsafe.Pointer(&init)), unsafe.Sizeof(init))
	if n, st := r.proto.HandleRequest([][]byte{in}, [][]byte{make([]byte, unsafe.Sizeof(fuse.InitOut{})+uintptr(outHeaderSize))}); n < outHeaderSize {
		return fmt.Errorf("%w: INIT: %v", ErrNoRing, st)
	}
	results := make(chan error, len(r.first))
	for _, t := range r.first {
		r.count.Add(1)
		r.threads.Go(func() { t.run(func(err error) { results <- err }) })
	}
	var err error
	for range r.first {
		err = errors.Join(err, <-results)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoRing, err)
	}
	return nil
}

// grow gives the queue another thread. It returns false if there are too many.
func (r *ring) grow(q *ringQueue) bool {
	if r.count.Add(1) > r.limit {
		r.count.Add(-1)
		return false
	}
	q.begin.Add(1)
	r.threads.Go(func() {
		t, err := r.newThread(q)
		for err != nil {
			r.f.opt.Logger.Warn("no thread for more requests at a time; trying again", "err", err)
			select {
			case <-time.After(ringRetry):
			case <-r.gone:
				return
			}
			t, err = r.newThread(q)
		}
		t.run(func(err error) {
			q.begin.Add(-1)
			q.full.Add(1)
			if err == nil && q.waits.Load() > 0 {
				r.kick(q)
			}
		})
	})
	return true
}

// kick makes the kernel look at a queue: it asks for attributes on that CPU, and
// behind the answer the kernel takes what is queued. It is called when a request
// begins to wait for a lock while others may be queued, and when a thread was
// added while some wait.
//
// The attributes are waited for on a thread without /dev/fuse and the rings (see
// sizes).
func (r *ring) kick(q *ringQueue) {
	if q.kicks.Swap(true) {
		return // that one will do
	}
	go onOwnThread(func() {
		err := ownDescriptors()
		setAffinity(q.home)
		q.kicks.Store(false)
		if err != nil {
			r.f.opt.Logger.Warn("a request may wait for the next one", "err", err)
			return
		}
		if err := unix.Chdir(r.f.sizes.dir); err != nil {
			return // gone
		}
		var st unix.Statx_t
		_ = unix.Statx(unix.AT_FDCWD, ".", unix.AT_STATX_FORCE_SYNC, unix.STATX_SIZE, &st)
		_ = unix.Chdir("/") // cannot fail
	})
}

// serve answers what does not come through the ring: the kernel sends FORGET and
// INTERRUPT through /dev/fuse. It returns when the connection is gone and all
// requests are answered.
func (r *ring) serve() {
	buf := make([]byte, deviceReadBytes)
	for {
		n, err := unix.Read(r.fd, buf)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil || n < inHeaderSize {
			if !errors.Is(err, unix.ENODEV) {
				r.f.opt.Logger.Error("reading /dev/fuse", "bytes", n, "err", err)
			}
			break
		}
		switch h := (*fuse.InHeader)(unsafe.Pointer(&buf[0])); h.Opcode {
		case opForget, opBatchForget:
			r.proto.HandleRequest([][]byte{buf[:n]}, nil)
		case opInterrupt:
			go r.interrupt((*fuse.InterruptIn)(unsafe.Pointer(&buf[0])).Unique, interruptTries)
		default: // from before the ring
			go r.answer(append([]byte(nil), buf[:n]...))
		}
	}
	close(r.gone)
	r.end()
}

// interrupt cancels a request; it may be on its way still.
func (r *ring) interrupt(unique uint64, tries int) {
	in := fuse.InterruptIn{InHeader: fuse.InHeader{Length: uint32(unsafe.Sizeof(fuse.InterruptIn{})), Opcode: opInterrupt}, Unique: unique}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&in)), unsafe.Sizeof(in))
	for i := range tries {
		if i > 0 {
			time.Sleep(ringRetry)
		}
		if n, _ := r.proto.HandleRequest([][]byte{bytes}, [][]byte{make([]byte, outHeaderSize)}); n == 0 {
			return // found
		}
	}
}

// answer answers a request that came through /dev/fuse.
func (r *ring) answer(in []byte) {
	out := make([]byte, outHeaderSize+maxRequestBytes)
	n, _ := r.proto.HandleRequest([][]byte{in}, [][]byte{out})
	if _, err := unix.Write(r.fd, out[:n]); n > 0 && err != nil && !errors.Is(err, syscall.ENOENT) {
		r.f.opt.Logger.Error("answering through /dev/fuse", "err", err)
	}
}

// end interrupts what is waited for, until all threads ended.
func (r *ring) end() {
	ended := make(chan struct{})
	go func() {
		r.threads.Wait()
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return
		case <-time.After(ringRetry):
		}
		r.mu.Lock()
		for e := range r.entries {
			if unique := e.unique.Load(); unique != 0 {
				r.interrupt(unique, 1)
			}
		}
		r.mu.Unlock()
	}
}

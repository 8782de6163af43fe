package fusemount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
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
	// waited for holds its thread as long as that takes. Each has a descriptor;
	// all together have a share of what the process may open.
	maxRingThreads   = 512
	ringShareOfFiles = 8
	// maxAllRingThreads bounds those of all mounts: Go ends a process of 10,000.
	maxAllRingThreads = 4096
	// ringSpare threads of a queue at least wait for requests, if there may be so
	// many: a thread is started when fewer do.
	ringSpare = 2
	// ringPause is the pause before the kernel is asked again for what it had no
	// memory for, and before those are interrupted again who do not end.
	ringPause = 10 * time.Millisecond
	// ringPatience bounds how long a lock waits for the thread that it must leave
	// behind; then it is refused.
	ringPatience = time.Second
	// interruptTries bounds how long an interrupt waits for its request: the
	// pause between them doubles from interruptPause, to a second in all.
	interruptTries = 11
	interruptPause = time.Millisecond
	// ringLogPause is the time between two messages that say the same.
	ringLogPause = time.Second
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
	first   []*ringThread
	allowed *unix.CPUSet // where the process may run

	limit   int32 // of threads
	count   atomic.Int32
	threads sync.WaitGroup
	logged  atomic.Int64 // when threads could not be started, in nanoseconds

	mu      sync.Mutex
	entries map[*ringEntry]struct{}
}

// ringQueue takes the requests of the programs that run on one CPU.
//
// The kernel queues a request that finds no entry, and takes it off the queue
// only when another request is answered, not when an entry is added. If all that
// are being answered wait for locks, somebody must kick (see ring.kick).
type ringQueue struct {
	id      int
	home    *unix.CPUSet // where its threads run
	threads atomic.Int32
	idle    atomic.Int32 // entries that hold no request
	begin   atomic.Int32 // threads that begin
	waits   atomic.Int32 // requests that may wait for locks
	kicks   atomic.Bool  // a kick is about to come
	// full counts the moments since which requests may be queued; at the one that
	// clear has, it is known that none are.
	full, clear atomic.Uint64
}

// mayHold tells whether the kernel may have queued requests.
func (q *ringQueue) mayHold() bool { return q.full.Load() != q.clear.Load() }

// allRingThreads counts those of all mounts.
var allRingThreads atomic.Int32

// newRing prepares a ring: what the kernel may refuse, it refuses before it is
// promised one, since from then on it sends requests nowhere else.
func newRing(f *rawFS) (r *ring, err error) {
	possible, err := cpuList("possible")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRing, err)
	}
	online, err := cpuList("online")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRing, err)
	}
	cpus := len(possible)
	if possible[cpus-1] != cpus-1 || cpus*ringSpare > maxRingThreads/2 {
		return nil, fmt.Errorf("%w: not made for %d CPUs with numbers up to %d", ErrNoRing, cpus, possible[cpus-1])
	}
	r = &ring{f: f, limit: f.opt.ringThreads, entries: make(map[*ringEntry]struct{}), allowed: new(unix.CPUSet)}
	if err := unix.SchedGetaffinity(0, r.allowed); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRing, err)
	}
	for _, cpu := range online {
		if !r.allowed.IsSet(cpu) {
			// Programs may run there, and nobody could kick its queue.
			return nil, fmt.Errorf("%w: this process may not run on CPU %d", ErrNoRing, cpu)
		}
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil {
		r.limit = int32(min(uint64(r.limit), max(files.Cur/ringShareOfFiles, uint64(ringSpare*cpus))))
	}
	for id := range cpus {
		q := &ringQueue{id: id, home: new(unix.CPUSet)}
		q.home.Set(id)
		threads := 1 // of a CPU that may come
		if slices.Contains(online, id) {
			threads = ringSpare
		}
		for range threads {
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

// cpuList returns the numbers of the CPUs that are online, or possible, in order.
// The kernel has a queue for each that is possible.
func cpuList(which string) (list []int, err error) {
	file := "/sys/devices/system/cpu/" + which // such as 0-3,8
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(strings.TrimSpace(string(b)), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for cpu := first; cpu <= last; cpu++ {
			list = append(list, cpu)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s names no CPU", file)
	}
	return list, nil
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
		allRingThreads.Add(1)
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

// grow starts another thread for the queue. It returns false if there are too many.
func (r *ring) grow(q *ringQueue) bool {
	if r.count.Add(1) > r.limit {
		r.count.Add(-1)
		return false
	}
	if allRingThreads.Add(1) > maxAllRingThreads {
		r.ended()
		return false
	}
	q.begin.Add(1)
	r.threads.Go(func() {
		t, err := r.newThread(q)
		if err != nil { // the next request tries again
			q.begin.Add(-1)
			r.ended()
			r.complain("no thread for more requests at a time", err)
			return
		}
		t.run(func(err error) {
			q.begin.Add(-1)
			queued := q.mayHold()
			q.full.Add(1)
			if err == nil && (queued || q.waits.Load() > 0) {
				r.kick(q)
			}
		})
	})
	return true
}

// ended counts down a thread.
func (r *ring) ended() {
	r.count.Add(-1)
	allRingThreads.Add(-1)
}

// complain logs what may be so for every request, now and then.
func (r *ring) complain(what string, err error) {
	now, last := time.Now().UnixNano(), r.logged.Load()
	if now-last > int64(ringLogPause) && r.logged.CompareAndSwap(last, now) {
		r.f.opt.Logger.Warn(what, "err", err)
	}
}

// kick makes the kernel look at a queue: it asks for attributes on that CPU, and
// behind the answer the kernel takes what is queued. It is called when a request
// begins to wait for a lock while others may be queued, and when a thread was
// added while some wait or are queued.
//
// The attributes are waited for on a thread without /dev/fuse and the rings (see
// sizes).
func (r *ring) kick(q *ringQueue) {
	if q.kicks.Swap(true) {
		return // that one will do
	}
	go onOwnThread(func() {
		err := errors.Join(ownDescriptors(-1), unix.SchedSetaffinity(0, q.home))
		q.kicks.Store(false)
		if err != nil {
			r.complain("a request may wait for the next one", err)
			return
		}
		if err := r.f.conn.enter(); err != nil {
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
			if !errors.Is(err, unix.ENODEV) && !ringGone(err) {
				r.f.opt.Logger.Error("reading /dev/fuse", "bytes", n, "err", err)
			}
			break
		}
		switch h := (*fuse.InHeader)(unsafe.Pointer(&buf[0])); h.Opcode {
		case opForget, opBatchForget:
			r.proto.HandleRequest([][]byte{buf[:n]}, nil)
		case opInterrupt:
			unique := (*fuse.InterruptIn)(unsafe.Pointer(&buf[0])).Unique
			go r.interrupt(unique, interruptTries)
		default: // from before the ring
			in := slices.Clone(buf[:n])
			r.threads.Go(func() { r.answer(in) })
		}
	}
	r.end()
}

// interrupt cancels a request; it may be on its way still.
func (r *ring) interrupt(unique uint64, tries int) {
	in := fuse.InterruptIn{InHeader: fuse.InHeader{Length: uint32(unsafe.Sizeof(fuse.InterruptIn{})), Opcode: opInterrupt}, Unique: unique}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&in)), unsafe.Sizeof(in))
	for i := range tries {
		if i > 0 {
			time.Sleep(interruptPause << (i - 1))
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
		case <-time.After(ringPause):
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

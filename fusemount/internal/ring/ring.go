package ring

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/fuseabi"
)

const (
	// MaxThreads bounds the threads of a mount, and with them the requests that
	// are answered at a time and their memory, of 1 MiB each. A lock that is
	// waited for holds its thread as long as that takes. Each has a descriptor;
	// all together have a share of what the process may open.
	MaxThreads   = 512
	shareOfFiles = 8
	// maxAllThreads bounds those of all mounts: Go ends a process of 10,000.
	maxAllThreads = 4096
	// logPause is the time between two messages that say the same.
	logPause = time.Second
)

// Config of a Ring.
type Config struct {
	// Threads bounds the threads; 0 is MaxThreads.
	Threads int
	// Probe makes the kernel send a request, which is answered at once, to the
	// queue of a CPU. It calls begin right before, or when it cannot: from then on
	// one more call may be needed. It is called on a goroutine of its own.
	Probe func(cpu *unix.CPUSet, begin func()) error
	// Several reports whether requests that change something may wait until
	// other superblocks know of it.
	Several func() bool
	// InTime is how long an answer may take by which the kernel keeps something; 0: any time.
	InTime time.Duration
	Logger *slog.Logger
}

// Ring serves a connection.
type Ring struct {
	Config
	cpus  *cpus
	first []*thread

	fd    int // of /dev/fuse; from Start on, as proto
	proto *fuseabi.Server

	count   atomic.Int32 // of threads
	threads sync.WaitGroup
	logged  atomic.Int64 // when threads could not be started, in nanoseconds

	mu      sync.Mutex
	entries map[*entry]*queue
}

// allThreads counts those of all mounts.
var allThreads atomic.Int32

// New prepares a ring: what the kernel may refuse, it refuses before it is
// promised one, since from then on it sends requests nowhere else. It returns
// ErrUnavailable.
func New(c Config) (r *Ring, err error) {
	r = &Ring{Config: c, entries: make(map[*entry]*queue)}
	if r.Threads == 0 {
		r.Threads = MaxThreads
	}
	if r.cpus, err = machineCPUs(); err != nil {
		return nil, err
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil {
		r.Threads = int(min(uint64(r.Threads), max(files.Cur/shareOfFiles, uint64(spareThreads*r.cpus.possible))))
	}
	for id := range r.cpus.possible {
		q := newQueue(id)
		threads := 1 // of a CPU that may come
		if slices.Contains(r.cpus.online, id) {
			threads = spareThreads
		}
		for range threads {
			t, err := r.newThread(q)
			if err != nil {
				r.Discard()
				return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
			r.first = append(r.first, t)
		}
	}
	return r, nil
}

// Discard releases a ring that was never started.
func (r *Ring) Discard() {
	for _, t := range r.first {
		t.close()
	}
}

// ThreadCount returns how many threads there are.
func (r *Ring) ThreadCount() int { return int(r.count.Load()) }

// Start has the kernel send the requests of a connection through the ring, to api.
// fd is its /dev/fuse, which the ring takes over; init is how the kernel began the
// connection. After an error too, Serve must run.
func (r *Ring) Start(fd int, init fuse.InitIn, api fuse.RawFileSystem, opt *fuse.MountOptions) error {
	r.fd, r.proto = fd, fuseabi.NewServer(api, opt, r.InTime)
	if err := fuseabi.Agree(r.proto, &init); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	results := make(chan error, len(r.first))
	for _, t := range r.first {
		r.count.Add(1)
		allThreads.Add(1)
		r.threads.Go(func() { t.run(func(err error) { results <- err }) })
	}
	var err error
	for range r.first {
		err = errors.Join(err, <-results)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// ended counts down a thread.
func (r *Ring) ended() {
	r.count.Add(-1)
	allThreads.Add(-1)
}

// complain logs what may be so for every request, now and then.
func (r *Ring) complain(what string, err error) {
	now, last := time.Now().UnixNano(), r.logged.Load()
	if now-last > int64(logPause) && r.logged.CompareAndSwap(last, now) {
		r.Logger.Warn(what, "err", err)
	}
}

// isGone reports whether an error only means that the connection ended.
func isGone(err error) bool {
	return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.ECANCELED)
}

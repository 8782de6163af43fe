package nlm

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ogw/nfsserver/nsm"
	"ogw/nfsserver/portmap"
	"ogw/nfsserver/rpc"
	"ogw/vfs/clients/share"
	"ogw/vfs/clients/subscriber"
	"ogw/vfs/lock"
)

// Access is what a call does with a file.
type Access uint8

const (
	Name   Access = iota // names it: to test a lock, or to tell how it is open
	Read                 // locks it shared
	Write                // locks it exclusively
	GiveUp               // gives up what the client itself holds or waits for, and learns nothing
)

// Files is what the NFS server knows of file handles: which inode, and
// whether the caller may lock it. Who gives up needs no right: a lock must not
// stay because the client lost its rights meanwhile. Errors are those of vfs.
type Files interface {
	Resolve(ctx context.Context, c *rpc.Call, fh []byte, want Access) (ino uint64, err error)
}

// Config of a Server.
type Config struct {
	Locks  lock.Locks
	Files  Files
	Store  nsm.Store
	Logger *slog.Logger
	// Instance names this server among those over the same store, see nsm.
	Instance string
	// Grace is how long clients may reclaim after a restart.
	Grace time.Duration
	// PortmapPort is where clients' portmappers listen; 0 means 111.
	PortmapPort uint16
}

// notifyDelay is between the start and the notification of clients: they come back
// at once, and by then the server listens and is registered.
const notifyDelay = time.Second

// Server answers NLM calls.
type Server struct {
	cfg     Config
	log     *slog.Logger
	locks   lock.Locks
	remotes lock.Remotes // of locks; nil: they are of this process, and end with it
	files   Files
	monitor *nsm.Monitor
	ctx     context.Context
	stop    context.CancelFunc
	wait    sync.WaitGroup
	slots   *share.Pool // one per call to a client

	mu       sync.Mutex
	hosts    map[string]*host             // by lock.Owner.Client
	known    *share.Tally[subscriber.Key] // of hosts
	waits    *share.Tally[subscriber.Key] // of blocked requests
	answers  *share.Tally[subscriber.Key] // of _RES calls under way
	grace    bool                         // ours is on
	graceEnd *time.Timer
	closed   bool
	cookie   uint64 // of the last GRANTED call

	refused atomic.Uint64 // locks, for which there was no room or no way
}

// New returns a Server. If the process before left clients, its grace period
// begins, and they are notified.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.PortmapPort == 0 {
		cfg.PortmapPort = portmap.Port
	}
	s := &Server{cfg: cfg, log: cfg.Logger, locks: cfg.Locks, files: cfg.Files,
		hosts: make(map[string]*host), known: share.NewTally[subscriber.Key](maxHosts, addressHosts),
		waits: share.NewTally[subscriber.Key](maxBlocked, addressBlocked), answers: share.NewTally[subscriber.Key](maxAnswers, addressAnswers),
		slots: share.NewPool(maxCallbacks, addressCallbacks)}
	s.remotes, _ = cfg.Locks.(lock.Remotes)
	var err error
	s.monitor, err = nsm.Open(ctx, nsm.Config{Store: cfg.Store, Instance: cfg.Instance, Logger: cfg.Logger,
		Rebooted: s.rebooted, PortmapPort: cfg.PortmapPort})
	if err != nil {
		return nil, err
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	left := s.monitor.Left()
	for _, p := range left {
		h := newHost(caller{p.Addr, p.Local, "tcp"}, p.Name) // beside others, of when there were none
		h.watched, h.last = true, time.Now()
		s.known.Add(h.key, 1)
		s.addLocked(h)
	}
	if len(left) > 0 && cfg.Grace > 0 && s.remotes == nil {
		s.log.Info("nlm: grace period: clients take back their locks", "clients", len(left), "duration", cfg.Grace)
		s.grace = true
		s.locks.BeginGrace()
		s.graceEnd = time.AfterFunc(cfg.Grace, s.endGrace)
	}
	s.wait.Go(func() { s.run(len(left) > 0) })
	return s, nil
}

func (s *Server) run(notify bool) {
	if notify {
		s.wait.Go(func() {
			select {
			case <-time.After(notifyDelay):
				s.monitor.Notify(s.ctx)
			case <-s.ctx.Done():
			}
		})
	}
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sweep(s.ctx, idleForget)
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Server) endGrace() {
	s.mu.Lock()
	was := s.grace
	s.grace = false
	s.mu.Unlock()
	if was {
		s.locks.EndGrace()
		s.log.Info("nlm: grace period is over", "locks", s.locks.Count())
	}
}

func (s *Server) inOwnGrace() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grace
}

// Close ends callbacks, gives up all that NFS clients hold, unless it is theirs, and forgets
// the clients that hold nothing, so that those who do are notified after a restart.
// The calls must have ended before.
func (s *Server) Close(ctx context.Context) {
	s.sweep(ctx, 0)
	s.mu.Lock()
	s.closed = true
	if s.graceEnd != nil {
		s.graceEnd.Stop()
	}
	hosts := make([]*host, 0, len(s.hosts))
	for _, h := range s.hosts {
		hosts = append(hosts, h)
	}
	s.mu.Unlock()
	s.stop()
	s.endGrace()
	for _, h := range hosts {
		if s.remotes == nil {
			_ = s.release(context.Background(), h, 0) // nothing can fail
		}
	}
	s.wait.Wait()
}

// Programs returns what the gateway serves beside NFS.
func (s *Server) Programs() []rpc.Program {
	procs := make([]rpc.Proc, len(procNames))
	set := func(n int, handle func(context.Context, *rpc.Call, *rpc.Reply) error) {
		// A repeated UNLOCK that comes late must not undo a newer LOCK.
		procs[n] = rpc.Proc{Name: "NLM_" + procNames[n], Handle: handle, Cached: n != procTest}
	}
	procs[procNull] = rpc.Proc{Name: "NLM_NULL", Inline: true,
		Handle: func(context.Context, *rpc.Call, *rpc.Reply) error { return nil }}
	for _, n := range []int{procTest, procLock, procCancel, procUnlock, procGranted, procNMLock} {
		set(n, s.answered(n))
	}
	for _, n := range []int{procTest, procLock, procCancel, procUnlock, procGranted} {
		set(n+procTestMsg-procTest, s.messaged(n))
	}
	// Only GRANTED_RES can be an answer to something, and calls are not
	// made in that form; the others are taken note of by replying.
	for n := procTestMsg + msgToRes; n <= procGrantedRes; n++ {
		set(n, s.result)
	}
	set(procShare, s.share)
	set(procUnshare, s.unshare)
	set(procFreeAll, s.freeAll)
	nlm := rpc.Program{Number: ProgramNumber, Low: Version, High: Version, Procs: procs, Datagrams: true}
	return []rpc.Program{nlm, s.monitor.Program()}
}

// Stats are figures of the moment.
type Stats struct {
	Clients int // that are known
	Durable int // that will be notified of a restart
	Blocked int // requests that wait
	Grace   bool
}

// Stats returns the figures.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Clients: len(s.hosts), Durable: s.monitor.Len(), Blocked: int(s.waits.Held()), Grace: s.grace}
}

package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"ogw/vfs/clients/pipe"
	"ogw/vfs/clients/share"
	"ogw/vfs/clients/unsent"
)

// Defaults of Config.
const (
	// DefaultMaxRecord holds a 1 MiB transfer and its header.
	DefaultMaxRecord = 1<<20 + 8<<10
	// DefaultMaxConns bounds connections; each costs about 28 KiB when idle.
	DefaultMaxConns = 2048
	// DefaultConnCalls is what a Linux client keeps in flight on one
	// connection when the server is slow (its slot table grows on demand).
	DefaultConnCalls = 128
	// DefaultCalls bounds the workers of all connections together; one client
	// alone gets half, the calls of eight full connections.
	DefaultCalls = 2048
	// DefaultConnBytes lets one connection keep 24 transfers of 1 MiB in
	// flight, each way.
	DefaultConnBytes = 25 << 20
	// DefaultBytes bounds all requests, and again all replies, in memory. One
	// client alone gets half, what two full connections hold.
	DefaultBytes = 100 << 20
	// DefaultIdleTimeout is longer than the 5 minutes after which clients
	// drop idle connections themselves.
	DefaultIdleTimeout = 6 * time.Minute
	// DefaultStallTimeout is how long a record that has begun, and replies
	// that a client does not take, may move less than minRate.
	DefaultStallTimeout = 30 * time.Second

	// readBufferBytes holds as many small calls as a client has in flight on a
	// connection (DefaultConnCalls); larger ones bypass it.
	readBufferBytes = 16 << 10
	// maxIdleWorkers keep their grown stacks, some 32 KiB, for the next call:
	// more than a connection has in flight, so that a full one starts none.
	maxIdleWorkers = 2 * DefaultConnCalls
	// freeBytes: smaller records are bounded by their number alone.
	freeBytes = 8 << 10
	// floorCalls are every client's, however busy others are: what the tasks
	// of one program keep in flight.
	floorCalls = 16
	// maxPipes carry replies that are pages: what the socket of each connection with large
	// replies takes at a time, and as much behind it. The others are copied.
	maxPipes = 64
	// duplicateWait is how long a duplicate waits for the original's end.
	duplicateWait = 30 * time.Second
)

// Config of a Server. Zero values mean the defaults.
type Config struct {
	Programs []Program
	Logger   *slog.Logger // default: discard
	// Allow reports whether a client may connect at all; default: every one.
	Allow func(netip.Addr) bool
	// Refused is called for connections that were turned away, and why. May be nil.
	Refused func(client netip.AddrPort, why string)
	// Observe is called for calls after they ran.
	Observe func(Event)
	// Closed is called when a connection ended, by its Call.Conn identity.
	Closed func(conn any)

	MaxRecord    int // longest record, in bytes
	MaxConns     int
	ConnCalls    int // calls in flight on one connection
	Calls        int // calls in flight on all
	ConnBytes    int // bytes of large requests, and of large replies, on one connection
	Bytes        int // the same on all
	IdleTimeout  time.Duration
	StallTimeout time.Duration
}

// Event describes a call that ran, or several that were answered together.
type Event struct {
	Prog, Proc uint32
	Calls      int
	Accept     uint32        // accept_stat
	Status     uint32        // Reply.Status
	Duration   time.Duration // of each
	In, Out    int           // bytes of records and replies, together
	Replayed   bool
}

// Server serves programs on any number of listeners.
type Server struct {
	cfg      Config
	log      *slog.Logger
	programs map[uint32]*Program
	dups     *dupCache
	requests *share.Pool  // bytes
	replies  *share.Pool  // bytes
	calls    *share.Pool  // in flight
	unsent   *unsent.Pool // kernel memory of replies
	pipes    *pipe.Pool   // of replies that are pages
	work     chan *Call
	idle     atomic.Int64
	ctx      context.Context
	cancel   context.CancelFunc
	refused  atomic.Uint64
	evicted  atomic.Uint64

	mu        sync.Mutex
	closing   bool
	listeners map[net.Listener]struct{}
	conns     connTable
	packets   map[*packets]struct{}
	wait      sync.WaitGroup // connections and datagram sockets
}

// NewServer returns a Server that serves nothing yet.
func NewServer(cfg Config) *Server {
	cfg = cfg.withDefaults()
	s := &Server{
		cfg: cfg, log: cfg.Logger,
		programs:  make(map[uint32]*Program),
		dups:      newDupCache(),
		requests:  share.NewPool(cfg.Bytes, memoryOf(cfg.MaxRecord)), // a record of everyone's, or its reader waited forever
		replies:   share.NewPool(cfg.Bytes, memoryOf(cfg.MaxRecord)),
		calls:     share.NewPool(cfg.Calls, floorCalls),
		unsent:    unsent.NewPool(min(unsent.Conns, unsent.Conns*cfg.Bytes/DefaultBytes)),
		pipes:     pipe.NewPool(maxPipes),
		work:      make(chan *Call),
		listeners: make(map[net.Listener]struct{}),
		conns:     newConnTable(cfg.MaxConns),
		packets:   make(map[*packets]struct{}),
	}
	for i := range cfg.Programs {
		s.programs[cfg.Programs[i].Number] = &cfg.Programs[i]
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&c.MaxRecord, DefaultMaxRecord)
	def(&c.MaxConns, DefaultMaxConns)
	def(&c.ConnCalls, DefaultConnCalls)
	def(&c.Calls, DefaultCalls)
	def(&c.ConnBytes, DefaultConnBytes)
	def(&c.Bytes, DefaultBytes)
	// One record must fit every budget, else its reader would wait forever.
	c.ConnBytes = max(c.ConnBytes, memoryOf(c.MaxRecord))
	c.Bytes = max(c.Bytes, memoryOf(c.MaxRecord))
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = DefaultIdleTimeout
	}
	if c.StallTimeout <= 0 {
		c.StallTimeout = DefaultStallTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// acceptPause is waited after a failed Accept (out of descriptors).
const acceptPause = 50 * time.Millisecond

// Serve accepts connections from l until Shutdown, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		l.Close()
		return nil
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer l.Close()
	for {
		nc, err := l.Accept()
		if err == nil {
			s.accept(nc)
			continue
		}
		if s.ctx.Err() != nil || s.isClosing() {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("rpc: accept: %w", err)
		}
		s.log.Warn("rpc: accept failed", "err", err)
		time.Sleep(acceptPause)
	}
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

func (s *Server) accept(nc net.Conn) {
	c := newConn(s, nc)
	if s.cfg.Allow != nil && !s.cfg.Allow(c.remote.Addr()) {
		s.refuse(nc, "client is in no export's network")
		return
	}
	s.mu.Lock()
	var yields *conn
	ok := !s.closing
	if ok {
		yields, ok = s.conns.add(c)
	}
	if !ok {
		s.mu.Unlock()
		s.refuse(nc, "too many connections")
		return
	}
	s.wait.Add(1)
	s.mu.Unlock()
	if yields != nil {
		s.evict(yields)
	}
	go func() {
		defer s.wait.Done()
		c.serve()
		s.mu.Lock()
		s.conns.remove(c)
		s.mu.Unlock()
		if s.cfg.Closed != nil {
			s.cfg.Closed(c)
		}
	}()
}

// evict ends a connection to make room for another client's. NFS clients
// connect again when they have something to ask.
func (s *Server) evict(c *conn) {
	if n := s.evicted.Add(1); n&(n-1) == 0 {
		s.log.Warn("rpc: too many connections: one of the client that has the most was closed", "client", c.remote, "closed", n)
	}
	c.cancel()
	c.nc.Close()
}

func (s *Server) refuse(nc net.Conn, why string) {
	// Logged at powers of two, so that a flood does not fill the disk.
	if n := s.refused.Add(1); n&(n-1) == 0 {
		s.log.Warn("rpc: connection refused", "client", nc.RemoteAddr(), "reason", why, "refused", n)
	}
	if s.cfg.Refused != nil {
		s.cfg.Refused(addrPort(nc.RemoteAddr()), why)
	}
	nc.Close()
}

// Shutdown stops accepting, lets the calls that arrived finish and their
// replies leave, and closes. When ctx ends first, the rest is cut off.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns.all {
		c.stopReading()
	}
	for p := range s.packets {
		p.stopReading()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.wait.Wait(); close(done) }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
		s.cancel()
		s.mu.Lock()
		for c := range s.conns.all {
			c.nc.Close()
		}
		for p := range s.packets {
			_ = p.pc.Close()
		}
		s.mu.Unlock()
		<-done
	}
	s.cancel()
	return err
}

// ClientInfo describes a connection.
type ClientInfo struct {
	Remote   netip.AddrPort
	Machine  string // as the client calls itself; empty before the first AUTH_SYS call
	Since    time.Time
	Calls    uint64
	InFlight int
	In, Out  uint64 // bytes
}

// Clients lists the connections.
func (s *Server) Clients() []ClientInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]ClientInfo, 0, len(s.conns.all))
	for c := range s.conns.all {
		list = append(list, c.info())
	}
	return list
}

// Refused counts the connections that were not accepted, or closed for others.
func (s *Server) Refused() uint64 { return s.refused.Load() + s.evicted.Load() }

// start runs a call on an idle worker, or on a new one.
func (s *Server) start(c *Call) {
	select {
	case s.work <- c:
	default:
		go s.worker(c)
	}
}

func (s *Server) worker(c *Call) {
	for {
		s.run(c)
		if s.idle.Add(1) > maxIdleWorkers {
			s.idle.Add(-1)
			return
		}
		select {
		case c = <-s.work:
			s.idle.Add(-1)
		case <-s.ctx.Done():
			s.idle.Add(-1)
			return
		}
	}
}

// run executes a call, or answers it from the duplicate cache, and queues
// the reply.
func (s *Server) run(c *Call) {
	c.reply.reset()
	if !c.proc.Cached {
		s.answer(c, s.handle(c), false)
		return
	}
	e, isNew := s.dups.begin(c)
	if isNew {
		err := s.handle(c)
		s.dups.finish(c, e, c.reply.Results(), err == nil && c.reply.trailing() == 0)
		s.answer(c, err, false)
		return
	}
	wait := time.NewTimer(duplicateWait)
	defer wait.Stop()
	select {
	case <-e.done:
	case <-wait.C:
	case <-s.ctx.Done():
	}
	select {
	case <-e.done:
		if e.reply != nil {
			c.reply.B = append(c.reply.B, e.reply...)
			s.answer(c, nil, true)
			return
		}
	default:
	}
	s.answer(c, ErrDrop, true) // the client asks once more
}

// handle calls the procedure and survives its panic.
func (s *Server) handle(c *Call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("rpc: panic in a call", "proc", c.proc.Name, "client", c.Remote, "panic", p, "stack", string(debug.Stack()))
			c.reply.Reset()
			err = fmt.Errorf("rpc: panic: %v", p)
		}
	}()
	return c.proc.Handle(s.ctx, c, &c.reply)
}

func (s *Server) answer(c *Call, err error, replayed bool) {
	accept, level := uint32(Success), slog.LevelWarn
	switch {
	case err == nil:
	case errors.Is(err, ErrDrop):
		c.conn.finish(c, nil)
		return
	case errors.Is(err, ErrGarbageArgs):
		accept, level = GarbageArgs, slog.LevelDebug // the client's fault
	default:
		accept = SystemErr
	}
	if accept != Success {
		c.reply.Reset()
		s.log.Log(s.ctx, level, "rpc: call failed", "proc", c.proc.Name, "client", c.Remote, "err", err)
	}
	c.reply.finish(c.XID, accept)
	if s.cfg.Observe != nil {
		s.cfg.Observe(Event{Prog: c.Prog, Proc: c.Proc, Calls: 1, Accept: accept, Status: c.reply.Status,
			Duration: time.Since(c.start), In: len(c.rec.B), Out: c.reply.size(), Replayed: replayed})
	}
	c.conn.finish(c, &c.reply)
}

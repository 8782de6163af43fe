package rpc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ogw/vfs/clients/pipe"
	"ogw/vfs/clients/share"
	"ogw/vfs/clients/subscriber"
	"ogw/vfs/clients/unsent"
)

// conn is one client connection.
type conn struct {
	srv    *Server
	nc     net.Conn
	remote netip.AddrPort
	local  netip.AddrPort
	client subscriber.Key
	since  time.Time
	ctx    context.Context // ends when the connection does
	cancel context.CancelFunc

	slots    chan struct{} // one per call in flight
	requests *budget
	replies  *budget
	share    clientShare
	inFlight sync.WaitGroup
	still    atomic.Int64 // Unix ns since when the reader waits for a record

	stopping atomic.Bool
	calls    atomic.Uint64
	in, out  atomic.Uint64
	machine  atomic.Pointer[string]

	// Of the reading goroutine.
	charged     int       // request bytes reserved for the record being read
	length      int       // its length so far
	begun       time.Time // of that record's first wait, without our own
	idleSince   time.Time
	idleIsArmed bool
	lane        lane // calls that the reader answers itself

	mu      sync.Mutex
	queue   []*Call // replies to write
	spare   []*Call // the queue's other backing array
	writing bool
	dead    bool
	gather  gatherer // of the goroutine that set writing
	unsent  unsent.Conn
}

var callPool = sync.Pool{New: func() any { return new(Call) }}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{srv: s, nc: nc, since: time.Now(),
		slots:    make(chan struct{}, s.cfg.ConnCalls),
		requests: newBudget(s.cfg.ConnBytes), replies: newBudget(s.cfg.ConnBytes)}
	c.remote, c.local = addrPort(nc.RemoteAddr()), addrPort(nc.LocalAddr())
	c.client = subscriber.Of(c.remote.Addr())
	c.unsent.Bound(nc, s.unsent)
	c.still.Store(c.since.UnixNano())
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	return c
}

// clientShare is the client's part of what all share.
type clientShare struct{ requests, replies, calls *share.Holder }

func (s *Server) join(k subscriber.Key) clientShare {
	return clientShare{s.requests.Join(k), s.replies.Join(k), s.calls.Join(k)}
}

func (s *clientShare) leave() {
	s.requests.Leave()
	s.replies.Leave()
	s.calls.Leave()
}

// serve reads calls until the connection or the server ends, then waits for
// what is in flight.
func (c *conn) serve() {
	c.share = c.srv.join(c.client)
	defer c.unsent.Closes()
	rr := recordReader{br: bufio.NewReaderSize(c.nc, readBufferBytes), max: c.srv.cfg.MaxRecord,
		reserve: c.reserve, wait: c.arm}
	for {
		err := c.next(&rr)
		if err != nil {
			c.logEnd(err)
			break
		}
	}
	c.flush()
	if !c.stopping.Load() {
		c.cancel() // nobody waits for budgets on behalf of a dead connection
	}
	c.inFlight.Wait()
	c.share.leave()
	c.cancel()
	c.nc.Close()
}

// next takes the next record and answers it, or starts its call.
func (c *conn) next(rr *recordReader) error {
	c.begun = time.Time{}
	if small, err := rr.peek(); err != nil {
		return err
	} else if small != nil && c.quick(small) {
		return rr.skip(small)
	}
	c.charged, c.length = 0, 0
	rec, err := rr.next()
	if err != nil {
		c.unreserve(c.charged)
		return err
	}
	return c.accept(rec)
}

func (c *conn) logEnd(err error) {
	switch {
	case errors.Is(err, io.EOF), c.stopping.Load(), errors.Is(err, net.ErrClosed), errors.Is(err, context.Canceled):
	case errors.Is(err, os.ErrDeadlineExceeded) && c.idleIsArmed:
		c.srv.log.Debug("rpc: idle connection closed", "client", c.remote)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrUnexpectedEOF):
		// Clients end so as they like: libnfs resets, a dying one leaves half a record.
		c.srv.log.Debug("rpc: connection ended by the client", "client", c.remote, "err", err)
	default:
		c.srv.log.Warn("rpc: connection closed", "client", c.remote, "err", err)
	}
}

var errStopping = errors.New("rpc: server is shutting down")

// arm sets the read deadline for the next read, with got bytes of a record
// here already.
func (c *conn) arm(started bool, got int) error {
	c.flush() // what comes next may take its time
	now := time.Now()
	if c.begun.IsZero() {
		c.still.Store(now.UnixNano())
	}
	switch {
	case started:
		if c.begun.IsZero() {
			c.begun = now
		}
		c.idleIsArmed = false
		c.nc.SetReadDeadline(recordDeadline(c.begun, c.srv.cfg.StallTimeout, got))
	case !c.idleIsArmed || now.Sub(c.idleSince) > c.srv.cfg.IdleTimeout/8:
		c.idleIsArmed, c.idleSince = true, now
		c.nc.SetReadDeadline(now.Add(c.srv.cfg.IdleTimeout))
	}
	if c.stopping.Load() {
		return errStopping
	}
	return nil
}

// stopReading makes the reader end at the next record boundary.
func (c *conn) stopReading() {
	c.stopping.Store(true)
	c.nc.SetReadDeadline(time.Unix(1, 0))
}

// reserve waits until n more bytes of the current record, with their buffer, fit the budgets.
func (c *conn) reserve(n int) error {
	c.length += n
	if n = memoryOf(c.length) - c.charged; c.length <= freeBytes || n <= 0 {
		return nil
	}
	c.flush()
	since := time.Now()
	if err := c.acquireRequest(n); err != nil {
		return err
	}
	c.charged += n
	if !c.begun.IsZero() {
		c.begun = c.begun.Add(time.Since(since)) // who waited was not the client
	}
	return nil
}

// acquireRequest waits for n bytes of the budgets, and not for ever with a
// part of the record in hand: many such parts could wait for each other.
func (c *conn) acquireRequest(n int) error {
	ctx := c.ctx
	if c.charged > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.srv.cfg.StallTimeout)
		defer cancel()
	}
	if err := c.requests.acquire(ctx, n); err != nil {
		return err
	}
	err := c.share.requests.Acquire(ctx, n)
	if err != nil {
		c.requests.release(n)
	}
	return err
}

func (c *conn) unreserve(n int) {
	if n > 0 {
		c.requests.release(n)
		c.share.requests.Release(n)
	}
}

// accept takes slots for a record and starts its call. It owns rec.
func (c *conn) accept(rec *Buffer) error {
	if err := c.takeSlots(); err != nil {
		c.unreserve(c.charged)
		rec.Free()
		return err
	}
	call := callPool.Get().(*Call)
	*call = Call{conn: c, rec: rec, cost: c.charged, Remote: c.remote, Local: c.local, start: time.Now()}
	c.inFlight.Add(1)
	c.calls.Add(1)
	c.in.Add(uint64(len(rec.B)))

	denied, err := call.parse(rec.B)
	if err != nil {
		c.release(call)
		return err
	}
	if denied != nil {
		call.reply.B = denied
		c.finish(call, &call.reply)
		return nil
	}
	c.note(&call.Cred)
	if !c.srv.resolve(call) {
		return nil
	}
	if f := call.proc.ReplyBytes; f != nil {
		if err := c.reserveReply(call, f(call.Args)); err != nil {
			c.release(call)
			return err
		}
	}
	if call.proc.Inline {
		c.srv.run(call)
	} else {
		c.srv.start(call)
	}
	return nil
}

// takeSlots waits for a slot of the connection, and for one of the client's;
// before it blocks, the slots that the reader itself holds are set on their
// way to be free.
func (c *conn) takeSlots() error {
	select {
	case c.slots <- struct{}{}:
	default:
		c.flush()
		select {
		case c.slots <- struct{}{}:
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
	if c.share.calls.TryAcquire(1) {
		return nil
	}
	c.flush()
	err := c.share.calls.Acquire(c.ctx, 1)
	if err != nil {
		<-c.slots
	}
	return err
}

// resolve finds the procedure, or answers why there is none.
func (s *Server) resolve(call *Call) bool {
	p := s.programs[call.Prog]
	r := &call.reply
	switch {
	case p == nil, !p.Datagrams && call.Datagram():
		r.reset()
		r.finish(call.XID, ProgUnavail)
	case call.Vers < p.Low || call.Vers > p.High:
		r.reset()
		r.Uint32(p.Low)
		r.Uint32(p.High)
		r.finish(call.XID, ProgMismatch)
	case call.Proc >= uint32(len(p.Procs)) || p.Procs[call.Proc].Handle == nil:
		r.reset()
		r.finish(call.XID, ProcUnavail)
	case p.Trusts != nil && call.Proc != 0 && !p.Trusts(call.Remote):
		r.B = deniedReply(call.XID, rejectAuthError, authTooWeak)
	default:
		call.proc = &p.Procs[call.Proc]
		return true
	}
	call.conn.finish(call, r)
	return false
}

func (c *conn) reserveReply(call *Call, n int) error {
	if n <= freeBytes {
		return nil
	}
	n = memoryOf(min(n, c.srv.cfg.MaxRecord)) // no handler sends more
	c.flush()
	if err := c.replies.acquire(c.ctx, n); err != nil {
		return err
	}
	if err := c.share.replies.Acquire(c.ctx, n); err != nil {
		c.replies.release(n)
		return err
	}
	call.extra = n
	return nil
}

// note remembers the client's name for itself.
func (c *conn) note(cred *Cred) {
	if cred.Flavor != AuthUnix {
		return
	}
	if m := c.machine.Load(); m == nil || *m != string(cred.Machine) {
		name := string(cred.Machine)
		c.machine.Store(&name)
	}
}

// pipes implements transport.
func (c *conn) pipes() *pipe.Pool {
	if c.unsent.Socket() == nil {
		return nil
	}
	return c.srv.pipes
}

// finish has a reply sent (none if r is nil).
func (c *conn) finish(call *Call, r *Reply) {
	if r == nil {
		c.release(call)
		return
	}
	c.send(call)
}

// send queues a reply and writes the queue unless another goroutine does.
func (c *conn) send(call *Call) {
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		c.release(call)
		return
	}
	c.queue = append(c.queue, call)
	if c.writing {
		c.mu.Unlock()
		return
	}
	c.writing = true
	if len(c.slots) > len(c.queue) {
		// Calls that are about to end shall share the system call.
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	for len(c.queue) > 0 {
		batch := c.queue
		c.queue = c.spare[:0]
		dead := c.dead
		c.mu.Unlock()
		if !dead {
			dead = !c.write(batch)
		}
		for i, done := range batch {
			batch[i] = nil
			c.release(done)
		}
		c.mu.Lock()
		c.spare = batch[:0]
		c.dead = dead
	}
	c.writing = false
	c.mu.Unlock()
}

// write sends a batch of replies and reports whether the connection lives.
func (c *conn) write(batch []*Call) bool {
	size := 0
	for _, call := range batch {
		size += call.reply.size()
	}
	c.unsent.Reads() // each batch counts for itself
	c.unsent.Writes(size)
	c.gather.begin(outlet{c.nc, c.unsent.Socket(), c.srv.cfg.StallTimeout}, len(batch))
	for _, call := range batch {
		c.gather.reply(&call.reply)
	}
	n, err := c.gather.end()
	c.out.Add(uint64(n))
	if err != nil {
		c.srv.log.Debug("rpc: reply not sent", "client", c.remote, "err", err)
		c.cancel()
		c.nc.Close() // ends the reader too
		return false
	}
	return true
}

// release gives back all that a call held.
func (c *conn) release(call *Call) {
	call.reply.free()
	call.rec.Free()
	c.unreserve(call.cost)
	if call.extra > 0 {
		c.replies.release(call.extra)
		c.share.replies.Release(call.extra)
	}
	callPool.Put(call)
	c.share.calls.Release(1)
	<-c.slots
	c.inFlight.Done()
}

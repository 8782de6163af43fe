package coherence

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/cluster/bootclock"
)

const (
	// leaseTime is how long a client is waited for that does not take note of changes. By
	// its own clock it answers from memory leaseMargin less, which is for clocks of which one
	// is faster, and renews every renewEvery.
	leaseTime   = time.Second
	leaseMargin = leaseTime / 5
	renewEvery  = leaseTime / 4
	// noteTime is how long a client may take to take note. Who takes longer maxTardy times in a row
	// is not told for slowTime, twice as long each time, maxStrikes times.
	noteTime   = leaseTime / 4
	maxTardy   = 8
	slowTime   = 5 * time.Second
	maxStrikes = 5
	// knownTime is how long a look at who the clients are counts: a beat, and what that and
	// the look may take.
	knownTime = cluster.PeerWait - leaseTime
	// redialPause is between two tries to reach another client.
	redialPause = 500 * time.Millisecond
	// handshakeTimeout bounds the begin of a connection.
	handshakeTimeout = 2 * time.Second
	// awayTime is how long another client cannot be reached before that is logged: whoever
	// ended is put out by then.
	awayTime = 15 * time.Second
	// maxHandshakes is how many connections are in their beginning. More wait.
	maxHandshakes = 64
	// maxPeers is how many clients tell each other. Where there are more, none does.
	maxPeers = 64
)

// Options of a Client.
type Options struct {
	// Listen is where others connect, HOST:PORT. Address is what they use for it; if empty, what
	// Listen became, with Host if that names no host.
	Listen, Address, Host string
	Log                   *slog.Logger
}

// Client is one client of a store, which tells the others what it is about to change. A nil
// Client tells nobody, and is told nothing. It is safe for concurrent use.
type Client struct {
	clock   func() time.Duration
	log     *slog.Logger
	id      *identity
	address string
	listen  net.Listener
	trust   *Trust
	tells   *publisher
	loans   *loans
	ctx     context.Context
	stop    context.CancelFunc
	parts   sync.WaitGroup
	closed  atomic.Bool
	looks   chan struct{} // holds one while somebody looks
	glances chan struct{} // and one while that is for somebody who is not known
	begins  chan struct{} // holds one for each connection in its beginning

	look  func(context.Context) error
	doubt func(settled func())

	mu      sync.Mutex
	me      uint64
	peers   []cluster.Peer // that others can reach
	sources map[uint64]*source
	known   time.Duration // clock before the look that showed them
	every   bool          // all clients tell this one, or are to
	crowded bool          // there are more than maxPeers, so that this one does not meet all
	news    chan struct{} // closed when a source was met, or peers changed
}

// New returns a client that is alone until it joins the others.
func New(o Options) (*Client, error) {
	c := &Client{clock: bootclock.Now, log: o.Log, address: o.Address, looks: make(chan struct{}, 1), glances: make(chan struct{}, 1), begins: make(chan struct{}, maxHandshakes),
		sources: map[uint64]*source{}, news: make(chan struct{})}
	var err error
	if c.id, err = newIdentity(); err != nil {
		return nil, err
	}
	if c.listen, err = net.Listen("tcp", o.Listen); err != nil {
		return nil, err
	}
	if c.address == "" {
		c.address = addressOf(c.listen.Addr(), o.Host)
	}
	c.trust, c.tells = newTrust(c.clock), newPublisher(c.clock, o.Log)
	c.loans = newLoans(c.trust)
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.parts.Go(c.accept)
	return c, nil
}

// addressOf returns where others reach a listener.
func addressOf(at net.Addr, host string) string {
	if t, ok := at.(*net.TCPAddr); ok && t.IP.IsUnspecified() && host != "" {
		return net.JoinHostPort(host, strconv.Itoa(t.Port))
	}
	return at.String()
}

// Trust returns what this client is told.
func (c *Client) Trust() *Trust {
	if c == nil {
		return nil
	}
	return c.trust
}

// Me implements cluster.Peers.
func (c *Client) Me() (address string, key []byte) { return c.address, c.id.key }

// Told implements cluster.Peers.
func (c *Client) Told() bool { return c.trust.Told() }

// Forget implements cluster.Peers.
func (c *Client) Forget() {
	c.trust.forget()
	c.loans.recallAll()
}

// Moment implements cluster.Peers.
func (c *Client) Moment() cluster.Moment { return cluster.Moment(c.trust.Now()) }

// Keep implements cluster.Peers.
func (c *Client) Keep(since cluster.Moment, number uint64, keys ...[]byte) time.Duration {
	return c.loans.lend(Stamp(since), number, linesOf(keys))
}

// OnRecall implements cluster.Peers.
func (c *Client) OnRecall(recall func(numbers []uint64)) { c.loans.call.Store(&recall) }

// Stats are counts since the client was made, and how it stands.
type Stats struct {
	Told      bool          // by all others
	Tells     int           // clients
	Announced uint64        // changes
	Waited    time.Duration // for others to take note
	Late      uint64        // how often one did not in time
	Spared    uint64        // round trips to the store that were not made
}

// Stats returns them.
func (c *Client) Stats() Stats {
	p := c.tells
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{c.Told(), len(p.subs), p.ticket, p.waited, p.late, c.trust.spared.Load()}
}

// Join implements cluster.Peers.
func (c *Client) Join(id uint64, look func(context.Context) error, doubt func(settled func())) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.me, c.look, c.doubt = id, look, doubt
}

// Look implements cluster.Peers. Were two at a time, the one that ends last might be the one
// that saw less.
func (c *Client) Look(ctx context.Context, look func(context.Context) ([]cluster.Peer, bool, error)) error {
	select {
	case c.looks <- struct{}{}:
		defer func() { <-c.looks }()
	case <-ctx.Done():
		return ctx.Err()
	}
	before := c.clock()
	list, all, err := look(ctx)
	if err == nil {
		c.saw(before, list, all)
	}
	return err
}

func (c *Client) saw(before time.Duration, list []cluster.Peer, all bool) {
	c.loans.lapse()
	c.know(before, list, all)
	c.loans.lapse() // one that is new tells nothing yet, and may change something once it is served
}

func (c *Client) know(before time.Duration, list []cluster.Peer, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return
	}
	c.known, c.peers, c.crowded = before, nil, false
	there, named := map[uint64]bool{}, map[uint64]bool{}
	for _, p := range list {
		named[p.ID] = true
		switch {
		case p.ID == c.me:
		case p.Address == "":
			all = false // it answers nothing from memory
		case len(c.peers) == maxPeers:
			all, c.crowded = false, true
		default:
			there[p.ID] = true
			c.peers = append(c.peers, p)
			if c.sources[p.ID] == nil {
				c.follow(p)
			}
		}
	}
	for id, s := range c.sources {
		if !there[id] {
			s.stop()
			delete(c.sources, id)
		}
	}
	c.tells.keep(named) // one that is too many here may not know yet, and trusts
	c.every = all
	c.judge()
	c.changed()
}

// follow subscribes to p. Under mu.
func (c *Client) follow(p cluster.Peer) {
	ctx, stop := context.WithCancel(c.ctx)
	s := &source{c: c, peer: p, stop: stop, open: map[uint64]marked{}}
	c.sources[p.ID] = s
	c.parts.Go(func() { s.run(ctx) })
}

// judge says until when all others tell this client. Under mu.
func (c *Client) judge() {
	until := c.known + knownTime
	if !c.every {
		until = 0
	}
	for _, s := range c.sources {
		until = min(until, s.until)
	}
	c.trust.extend(until)
}

// changed wakes who waits for news. Under mu.
func (c *Client) changed() {
	close(c.news)
	c.news = make(chan struct{})
}

// Introduce implements cluster.Peers: all others know of a client that they tell, since
// they look who it is.
func (c *Client) Introduce(ctx context.Context, ended []uint64) error {
	bounded, cancel := context.WithTimeout(ctx, cluster.PeerWait)
	defer cancel()
	since := c.clock()
	for bounded.Err() == nil && !c.closed.Load() {
		c.mu.Lock()
		known, look, news := c.known >= since, c.look, c.news
		met := known && !c.crowded
		for id, s := range c.sources {
			met = met && (s.met || slices.Contains(ended, id))
		}
		c.mu.Unlock()
		if met {
			return nil
		}
		if !known && look(bounded) == nil {
			continue
		}
		select {
		case <-news:
		case <-time.After(redialPause):
		case <-bounded.Done(): // no look of others from before counts any more
		}
	}
	return ctx.Err()
}

// accept serves those who connect.
func (c *Client) accept() {
	for {
		conn, err := c.listen.Accept()
		if err != nil {
			if c.ctx.Err() != nil {
				return
			}
			c.log.Warn("gateways cannot connect, it is tried again", "err", err)
			select {
			case <-time.After(redialPause):
			case <-c.ctx.Done():
			}
			continue
		}
		select {
		case c.begins <- struct{}{}:
			c.parts.Go(func() { c.serve(conn) })
		case <-c.ctx.Done():
			conn.Close()
		}
	}
}

func (c *Client) serve(raw net.Conn) {
	defer raw.Close()
	id, conn, err := c.shake(raw)
	<-c.begins
	if err == nil {
		// Another look may have shown who it is, and still recalls for it (saw).
		c.loans.lapse()
		c.tells.serve(id, conn)
	}
}

// shake returns who connects.
func (c *Client) shake(raw net.Conn) (id uint64, conn *tls.Conn, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, handshakeTimeout)
	defer cancel()
	conn = tls.Server(raw, c.id.config(func(key []byte) (err error) {
		id, err = c.whose(ctx, key)
		return err
	}))
	return id, conn, conn.HandshakeContext(ctx)
}

// whose returns the ID of the client with a key. One that is not known may have come since
// the last look.
func (c *Client) whose(ctx context.Context, key []byte) (uint64, error) {
	since := c.clock()
	if id, _ := c.find(key); id != 0 {
		return id, nil
	}
	select { // those who wait here go by what the first one of them sees
	case c.glances <- struct{}{}:
		defer func() { <-c.glances }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	id, known := c.find(key)
	if id == 0 && known < since {
		c.mu.Lock()
		look := c.look
		c.mu.Unlock()
		if look == nil {
			return 0, errStranger
		}
		if err := look(ctx); err != nil {
			return 0, err
		}
		id, _ = c.find(key)
	}
	if id == 0 {
		return 0, errStranger
	}
	return id, nil
}

// find returns the ID of the client with a key, 0 for none, by a look that began at known.
func (c *Client) find(key []byte) (id uint64, known time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.peers {
		if bytes.Equal(c.peers[i].Key, key) {
			return c.peers[i].ID, c.known
		}
	}
	return 0, c.known
}

// Close implements cluster.Peers.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.stop()
	err := c.listen.Close()
	c.tells.close()
	c.parts.Wait()
	return err
}

package fair

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
)

// The heads of requests cost memory before anybody is known, and much more than
// their bytes: net/http keeps a map entry for each line of two bytes.
const (
	// HeadBytes is the memory for heads, those that are not complete and those
	// of requests that run, of one listener.
	HeadBytes = 32 << 20
	// headFactor is what a byte of an incomplete head may cost: 28 to 40 were
	// measured for lines such as "a:", less for longer ones.
	headFactor = 40
	// carriedBytes is what net/http may have read of a head together with the
	// request before it: its buffer, and with TLS carriedTLS, a record.
	carriedBytes, carriedTLS = 4 << 10, 16 << 10
	// tlsHandshake is the first byte of a TLS connection (RFC 8446, section 5.1).
	tlsHandshake = 22
	// fieldBytes is what a field of a complete head costs beside its text.
	fieldBytes = 160
	// streamBytes is what a running HTTP/2 request costs: goroutine, buffer and
	// state. One of HTTP/1 has those of its connection.
	streamBytes = 16 << 10
)

// headCount charges the incomplete head of a connection to its client. What a
// connection sends counts from its beginning, or the end of a request, until
// Heads has the request, which then counts until the connection is idle. Without
// a share for a head the connection ends.
type headCount struct {
	mu     sync.Mutex // see the package's lock order
	pool   *Pool
	key    Key    // whose connection it is
	remote string // and its address, as requests have it
	by     Key    // whose part share is
	share  Holder

	off      bool // a request runs, or frames count
	ended    bool // the connection was closed
	frames   framing
	tls      bool
	clear    bool // what came of the head is not encrypted
	deadline bool // net/http has set that of its wait for the next request
	// waiting is whether it waits for that, and nothing came since the last. It is
	// written with mu held.
	waiting atomic.Bool
}

// framing counts the requests of a connection instead, with HTTP/2.
type framing interface {
	// runs is notified that a request runs and what it costs, and reports whether
	// the client has a share for it.
	runs(cost int64) bool
	// end is notified that the connection was closed.
	end()
}

// came charges bytes, if they are of a head, and reports whether they may stay.
func (h *headCount) came(p []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting.Store(false)
	if h.off {
		return true
	}
	if h.share.held == 0 {
		h.clear = !h.tls && p[0] != tlsHandshake
	}
	if h.clear {
		p = p[:headLength(p)]
	}
	return h.charge(len(p))
}

// headLength returns how many of these bytes can be of heads: all but those of the
// body that follows the first one, which cost what they are long. Many clients that
// put at once would otherwise have no shares.
func headLength(p []byte) int {
	head, rest, ok := bytes.Cut(p, headEnd)
	if !ok || len(rest) == 0 {
		return len(p)
	}
	return len(p) - min(len(rest), bodyLength(head))
}

// bodyLength is the length of the body that a head announces, 0 if that is no number.
func bodyLength(head []byte) int {
	for line := range bytes.Lines(head) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, lengthField) {
			n, _ := strconv.Atoi(string(bytes.TrimSpace(value))) // of what is no number net/http says so
			return max(n, 0)
		}
	}
	return 0
}

var (
	headEnd     = []byte("\r\n\r\n")
	lengthField = []byte("Content-Length")
)

// is records whose connection it is, and from which address.
func (h *headCount) is(k Key, remote string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.key, h.remote = k, remote
}

// charge is for the holder of mu.
func (h *headCount) charge(n int) bool {
	if h.ended {
		return true // nobody would give it back
	}
	h.lend(h.key)
	return h.share.Set(h.share.held + int64(n)*headFactor)
}

// lend makes share that of k. mu is held.
func (h *headCount) lend(k Key) {
	if h.share.part == nil || h.by != k {
		h.share.End()
		h.by = k
		h.share, _ = h.pool.Hold(k, 0)
	}
}

// waits is notified that net/http sets a deadline for reading, and reports whether the
// connection may stay. It sets one when the connection becomes idle, and the next
// when there are bytes of another request. If none came in between, it had read
// them with the request before.
func (h *headCount) waits() bool {
	if !h.waiting.Load() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.deadline {
		h.deadline = true
		return true
	}
	h.waiting.Store(false)
	carried := carriedBytes
	if h.tls {
		carried += carriedTLS
	}
	return h.charge(carried)
}

// greeted is notified that what came was for TLS.
func (h *headCount) greeted() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tls = true
	h.share.Set(0)
}

// complete is notified that a head has all come. Nothing more counts until the
// connection is idle.
func (h *headCount) complete() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.off = true
	h.waiting.Store(false)
}

// framed leaves the counting to f.
func (h *headCount) framed(f framing) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.off, h.frames = true, f
	h.waiting.Store(false)
	h.share.Set(0)
}

// framing returns who counts instead. h may be nil.
func (h *headCount) framing() framing {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.frames
}

// forget gives back what a closed connection held.
func (h *headCount) forget() {
	h.mu.Lock()
	h.ended = true
	h.share.End()
	f := h.frames
	h.mu.Unlock()
	if f != nil {
		f.end()
	}
}

// runs is notified of a request that runs until the connection is idle, of which
// client, and what it costs from here on. It reports whether the client has a
// share for it.
func (h *headCount) runs(remote string, cost int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return true // nobody is answered
	}
	k := h.key
	if remote != h.remote {
		k = Address(remote) // which a proxy reported
	}
	h.lend(k)
	return h.share.Set(cost)
}

// refuses is notified that the request has no share, and its head goes: net/http may wait for
// its body before the connection ends.
func (h *headCount) refuses() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.share.Set(0)
}

// idles is notified that what comes from here on is a head.
func (h *headCount) idles() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.frames == nil {
		h.share.Set(0)
		h.off, h.deadline = false, false
		h.waiting.Store(true)
	}
}

// errHeadShare is the cause where a client has no share left.
var errHeadShare = errors.New("the client's share of memory for request heads is taken")

// Heads charges the head of each request to its client, from pool, until its
// answer was sent. Without a share it is not served: HTTP/1 gets 503, and a stream
// of HTTP/2 is reset, since a client that takes no answer would hold all the same.
func Heads(next http.Handler, pool *Pool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cost := headCost(r)
		h, _ := r.Context().Value(headKey{}).(*headCount)
		if f := h.framing(); f != nil {
			if !f.runs(cost) {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
			return
		}
		if h == nil { // of no Listener
			h = &headCount{pool: pool, key: Address(r.RemoteAddr), remote: r.RemoteAddr}
			defer h.forget()
		}
		if !h.runs(r.RemoteAddr, cost) {
			h.refuses()
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			http.Error(w, errHeadShare.Error(), http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// headKey is for the headCount of the connection in the context of its requests.
type headKey struct{}

func headCost(r *http.Request) int64 {
	cost := len(r.RequestURI)
	for name, values := range r.Header {
		for _, v := range values {
			cost += fieldBytes + len(name) + len(v)
		}
	}
	if r.ProtoMajor >= 2 {
		cost += streamBytes
	}
	return int64(cost)
}

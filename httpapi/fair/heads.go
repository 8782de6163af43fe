package fair

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"sync"
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
// net/http has a complete head; the request that runs then counts until the
// connection is idle. Without a share for a head the connection ends.
type headCount struct {
	pool   *Pool
	client func() Key

	mu       sync.Mutex // see the package's lock order
	off      bool       // a request runs, or frames count
	frames   framing    // with HTTP/2
	tls      bool
	clear    bool // what came of the head is not encrypted
	idle     bool // net/http waits for the next request
	unread   bool // and nothing came since the last
	deadline bool // and it has set the deadline of that wait
	by       Key
	held     int64
}

// framing counts the requests of a connection instead, with HTTP/2.
type framing interface {
	// runs is told that a request runs and what it costs, and reports whether
	// the client has a share for it.
	runs(cost int64) bool
	// end is told that the connection was closed.
	end()
}

// came charges bytes, if they are of a head, and reports whether they may stay.
func (h *headCount) came(p []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unread = false
	if h.off {
		return true
	}
	if h.held == 0 {
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

// bodyLength is what a head says of its body, 0 if that is not told by a number.
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

// charge is for the holder of mu.
func (h *headCount) charge(n int) bool {
	if h.held == 0 {
		h.by = h.client()
	}
	cost := int64(n) * headFactor
	if !h.pool.Take(h.by, cost) {
		return false
	}
	h.held += cost
	return true
}

// waits is told that net/http sets a deadline for reading, and reports whether the
// connection may stay. It sets one when the connection becomes idle, and the next
// when there are bytes of another request. If none came in between, it had read
// them with the request before.
func (h *headCount) waits() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.idle || !h.unread {
		return true
	}
	if !h.deadline {
		h.deadline = true
		return true
	}
	h.idle = false
	carried := carriedBytes
	if h.tls {
		carried += carriedTLS
	}
	return h.charge(carried)
}

// greeted is told that what came was for TLS.
func (h *headCount) greeted() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tls = true
	h.give()
}

// complete is told that a head has all come. Nothing counts until the connection
// is idle.
func (h *headCount) complete() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.off, h.idle = true, false
	h.give()
}

// give is for the holder of mu.
func (h *headCount) give() {
	if h.held > 0 {
		h.pool.Give(h.by, h.held)
		h.held = 0
	}
}

// framed leaves the counting to f.
func (h *headCount) framed(f framing) {
	h.complete()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frames = f
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
	h.complete()
	if f := h.framing(); f != nil {
		f.end()
	}
}

// runs is told what the request costs that runs, until the connection is idle.
func (h *headCount) runs(k Key, cost int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.by, h.held = k, cost
}

// idles is told that what comes from here on is a head.
func (h *headCount) idles() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.frames == nil {
		h.give()
		h.off, h.idle, h.unread, h.deadline = false, true, true, false
	}
}

// errHeadShare is the cause where a client has no share left.
var errHeadShare = errors.New("the client's share of memory for request heads is taken")

// Heads charges the head of each request to its client, from pool, until its
// answer was sent. Without a share it is not served: HTTP/1 gets 503, and a stream
// of HTTP/2 is reset, since a client that takes no answer would hold all the same.
func Heads(next http.Handler, pool *Pool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k, cost := Address(r.RemoteAddr), headCost(r)
		h, _ := r.Context().Value(headKey{}).(*headCount)
		if f := h.framing(); f != nil {
			if !f.runs(cost) {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
			return
		}
		if !pool.Take(k, cost) {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			http.Error(w, errHeadShare.Error(), http.StatusServiceUnavailable)
			return
		}
		if h != nil {
			h.runs(k, cost)
		} else {
			defer pool.Give(k, cost)
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

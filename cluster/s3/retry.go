package s3

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"syscall"
	"time"
)

const (
	// maxTries is how often a request is tried, beside what the endpoint refuses for a while.
	maxTries = 4
	// firstPause is waited before the second try, twice as long before each later one, up to
	// maxPause: of an endpoint that has too much to do, every writer asks that often.
	firstPause = 100 * time.Millisecond
	maxPause   = 4 * time.Second
	// requestTimeout bounds a request of at most a part, its tries included.
	requestTimeout = time.Minute
	// patience is for how long a write that an endpoint refuses for a while is tried: a
	// client of ours, whose own limit is a minute as a rule, is to get an answer.
	patience = requestTimeout / 2
)

// bound is the time that one request may take.
func bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestTimeout)
}

// tries is how writes are tried.
type tries struct {
	// patient has them wait for an endpoint that refuses them. Open is not: who calls it
	// decides whether to wait.
	patient bool
}

// retry runs a write until it ends with what another try would not change.
func (t tries) retry(ctx context.Context, write func(ctx context.Context) error) error {
	ctx, cancel := bound(ctx)
	defer cancel()
	begin, pause := time.Now(), firstPause
	for try := 1; ; {
		err := write(ctx)
		if err == nil || !temporary(err) {
			return err
		}
		if t.patient && busy(err) {
			if time.Since(begin)+pause > patience {
				return err
			}
		} else if try++; try > maxTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause/2 + rand.N(pause/2)):
			pause = min(2*pause, maxPause)
		}
	}
}

// busy reports whether the endpoint did not begin with a request, since it has too much to
// do, or is being started.
func busy(err error) bool {
	r, refused := response(err)
	if !refused {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	switch r.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return r.Code == codeSlowDown || r.Code == codeBusy || r.Code == codeForeign
}

// temporary reports whether a write may do better the next time.
func temporary(err error) bool {
	r, refused := response(err)
	if !refused {
		return true // no answer, or not a whole one
	}
	switch r.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	switch r.Code { // also behind a status of success: an upload may fail while it is completed
	case codeConflict, codeSlowDown, codeBusy, codeForeign, "RequestTimeout", "InternalError":
		return true
	}
	return false
}

var errDetached = errors.New("the request is over")

// body is what one try of a request sends. A transport may read from it after
// the request returned, for example when an error was answered before all was
// sent. So each try has its own, and none is seekable, which makes the client
// itself try once: a reader that two tries share gives each some bytes, in a
// signed request.
type body struct {
	mu   sync.Mutex // held while data is copied
	data []byte
	over bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return 0, errDetached
	}
	if len(b.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	return n, nil
}

// detach gives the bytes back to who owns them.
func (b *body) detach() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data, b.over = nil, true
}

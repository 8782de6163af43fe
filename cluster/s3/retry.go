package s3

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

const (
	// maxTries is how often a request is tried.
	maxTries = 4
	// firstPause is waited before the second try, twice as long before each later one.
	firstPause = 100 * time.Millisecond
	// requestTimeout bounds a request of at most a part, its tries included.
	requestTimeout = time.Minute
)

// bound is the time that one request may take.
func bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestTimeout)
}

// retry runs a write until it ends with what another try would not change.
func retry(ctx context.Context, write func(ctx context.Context) error) error {
	ctx, cancel := bound(ctx)
	defer cancel()
	pause := firstPause
	for try := 1; ; try++ {
		err := write(ctx)
		if err == nil || try == maxTries || !temporary(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause/2 + rand.N(pause/2)):
			pause *= 2
		}
	}
}

// temporary reports whether a write may do better the next time.
func temporary(err error) bool {
	var r minio.ErrorResponse
	if !errors.As(err, &r) {
		return true // no answer, or not a whole one
	}
	switch r.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return r.Code == codeConflict || r.Code == "RequestTimeout" || r.Code == "SlowDown"
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

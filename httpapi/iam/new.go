package iam

import (
	"log/slog"
	"net/http"
	"time"

	"ogw/httpapi"
	"ogw/httpapi/fair"
	"ogw/httpapi/iam/oidc"
	"ogw/httpapi/sigv4"
	"ogw/vfs"
)

// New returns a Server over fs.
func New(fs *vfs.FS, c Config) *Server {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Server{fs: fs, cfg: c, verify: map[string]*sigv4.Verifier{}, operations: operations, issuers: oidc.New(c.Now),
		bodies: fair.NewPool(maxBodies), strangers: fair.NewPool(maxStrangers), unproven: fair.NewPool(maxBodies), strangerTime: strangerTime}
	for service := range namespaces {
		// Both services are global: clients sign for whatever region they have.
		s.verify[service] = sigv4.New(sigv4.Config{Service: service, V2: sigv4.V2None, Now: c.Now})
	}
	s.handler = httpapi.Frame(http.HandlerFunc(s.serve), httpapi.FrameConfig{
		Door: "iam", Logger: c.Logger, Done: c.Done, Sends: c.Sends,
		Panic: func(w http.ResponseWriter, r *http.Request) {
			writeError(w, r, serviceOf(r), errInternal)
		},
	})
	return s
}

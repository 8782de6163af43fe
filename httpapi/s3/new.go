package s3

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"ogw/httpapi"
	"ogw/httpapi/fair"
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
	if c.MaxRequests <= 0 {
		c.MaxRequests = defaultMaxRequests
	}
	if c.MaxObjectBytes <= 0 || c.MaxObjectBytes > maxPutBytes {
		c.MaxObjectBytes = maxPutBytes
	}
	domains := make([]string, len(c.Domains))
	for i, d := range c.Domains {
		domains[i] = strings.ToLower(strings.Trim(d, "."))
	}
	c.Domains = domains
	s := &Server{
		fs: namespaceOf(fs), cfg: c,
		verify: sigv4.New(sigv4.Config{Region: c.Region, V2: c.V2, Now: c.Now}),
		slots:  fair.NewPool(int64(c.MaxRequests)), forms: fair.NewPool(maxForms), documents: fair.NewPool(maxDocumentBytes),
	}
	s.router = newRouter()
	s.share = (*request).shareWithOrigin
	s.handler = httpapi.Frame(http.HandlerFunc(s.serve), httpapi.FrameConfig{
		Door: "s3", Logger: c.Logger, Done: c.Done, Sends: c.Sends,
		Panic: func(w http.ResponseWriter, r *http.Request) {
			writeError(w, r, "", "", newError(codeInternal))
		},
	})
	return s
}

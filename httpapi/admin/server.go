package admin

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"ogw/httpapi"
	"ogw/vfs"
)

// Config of a Server.
type Config struct {
	FS      *vfs.FS
	Process Process
	Logger  *slog.Logger // of requests; never nil
	Version string
	Dir     string // data folder, absolute
	Engine  string
	PID     int
	Started time.Time
	// Domains are the service domains of the S3 gateways: a path may be
	// given as HOST/KEY too.
	Domains []string
	// Exports keeps what NFS clients may mount; may be nil.
	Exports Exports
	// Locks knows the locks of the process; nil: there is none.
	Locks Locks
	// Metrics serves /metrics; nil: 404.
	Metrics http.Handler
	// Done is called after each request, for metrics. May be nil.
	Done func(*httpapi.Record)
}

// Server is the API. It is an http.Handler without access control: that is
// the listener's (the mode of the socket, or WithToken).
type Server struct {
	Config
	fs      namespace
	router  http.Handler
	handler http.Handler
	backups heldBackups
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

const (
	// operator is the caller: one that may use the socket, or holds the token.
	operator = "operator"
	// authenticate is the operation of who may not ask anything.
	authenticate = "Authenticate"
	// profiling is the operation of all profiles.
	profiling = "Profile"
	// readBackup is the operation of reading what a backup holds.
	readBackup = "ReadBackup"
)

// heldBackups are those that this server began. Their leases end them.
type heldBackups struct {
	mu   sync.Mutex
	list map[string]*vfs.Backup
}

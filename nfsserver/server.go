package nfsserver

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"ogw/nfsserver/backend"
	"ogw/nfsserver/nlm"
	"ogw/nfsserver/rpc"
	"ogw/vfs"
	"ogw/vfs/clients/guess"
)

// Config of a Server.
type Config struct {
	FS      *vfs.FS
	Exports []Export
	Logger  *slog.Logger // default: discard
	// Done is called for calls that were refused and for changes of buckets, with
	// DoneAll for all calls but those that are answered from memory. It must be
	// fast and safe for concurrent use. May be nil.
	Done    func(*Record)
	DoneAll bool
	// Guesses slows down wrong secrets of exports; nil does not.
	Guesses *guess.Guard
	// RPC holds the limits; its programs and hooks are the Server's to set.
	RPC rpc.Config
	// Instance names this server among those over the same store, the same
	// after a restart: its clients with locks are remembered by it.
	Instance string
	// Grace is how long clients may take back their locks after a restart;
	// 0 means DefaultGrace.
	Grace time.Duration
	// ClientPortmapPort is where clients' portmappers listen; 0 means 111.
	ClientPortmapPort uint16
}

// Server serves NFS version 3, MOUNT version 3, NLM version 4 and NSM.
type Server struct {
	fs      namespace
	log     *slog.Logger
	done    func(*Record)
	doneAll bool
	rpc     *rpc.Server
	sealer  *sealer
	border  *border
	exports atomic.Pointer[exportTable]
	files   *openFiles
	cookies *cookieCache
	mounts  *mountTable
	library *backend.Pool
	stats   stats
	locks   *nlm.Server
	guesses *guess.Guard
	// verifier is the write verifier (RFC 1813 section 3.3.7): random at the
	// start, another one whenever unstable data may have been lost.
	verifier atomic.Uint64

	stop     context.CancelFunc
	wait     sync.WaitGroup
	unwatch  func()
	shutdown sync.Once
}

// writeVerifier is another one after each loss: of those that the VFS counts before anybody can
// find nothing left to make durable, and of what was tried in vain.
func (s *Server) writeVerifier() uint64 { return s.verifier.Load() + s.fs.Losses() }

// Serve accepts connections from l until Shutdown, and then returns nil.
func (s *Server) Serve(l net.Listener) error { return s.rpc.Serve(l) }

// Shutdown lets the calls in flight finish, then flushes and closes every
// file. If ctx ends first, connections are cut; files are flushed still.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.rpc.Shutdown(ctx)
	s.shutdown.Do(func() {
		s.locks.Close(ctx)
		s.stop()
		s.wait.Wait()
		s.unwatch()
		s.files.sweep(true)
		s.library.Close()
	})
	return err
}

// SetExports replaces the exports, at once for everyone: handles of exports
// that are gone become stale.
func (s *Server) SetExports(list []Export) error {
	t, err := newExportTable(list)
	if err != nil {
		return err
	}
	s.exports.Store(t)
	return nil
}

// Allows reports whether a client may use any export.
func (s *Server) Allows(a netip.Addr) bool { return s.exports.Load().allows(a) }

// Exports returns the exports.
func (s *Server) Exports() []Export {
	var list []Export
	for _, x := range s.exports.Load().list {
		list = append(list, x.Export)
	}
	return list
}

// Client describes a connected client.
type Client struct {
	rpc.ClientInfo
	Mounts []string // paths that its address has mounted
}

// Clients lists the connections.
func (s *Server) Clients() []Client {
	var list []Client
	for _, i := range s.rpc.Clients() {
		list = append(list, Client{i, s.mounts.paths(i.Remote.Addr())})
	}
	return list
}

// OpenFiles returns how many files are held open between calls.
func (s *Server) OpenFiles() int { return s.files.len() }

// RefusedConns counts connections turned away.
func (s *Server) RefusedConns() uint64 { return s.rpc.Refused() }

// Stats returns the figures of every procedure that was called.
func (s *Server) Stats() []ProcStats { return s.stats.snapshot() }

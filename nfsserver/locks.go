package nfsserver

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"ogw/nfsserver/nlm"
	"ogw/nfsserver/nsm"
	"ogw/nfsserver/portmap"
	"ogw/nfsserver/rpc"
	"ogw/vfs"
)

// DefaultGrace is how long clients may take back their locks after a restart.
const DefaultGrace = 45 * time.Second

// lockStartTimeout bounds reading who held locks when a server starts.
const lockStartTimeout = 30 * time.Second

// newLocks makes the lock manager's protocol side.
func (s *Server) newLocks(cfg Config) (*nlm.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockStartTimeout)
	defer cancel()
	if cfg.Instance == "" {
		cfg.Instance = "nfs"
	}
	if cfg.Grace == 0 {
		cfg.Grace = DefaultGrace
	}
	return nlm.New(ctx, nlm.Config{Locks: s.fs.Locks(), Files: lockFiles{s}, Store: cfg.FS, Logger: s.log,
		Instance: cfg.Instance, Grace: cfg.Grace, PortmapPort: cfg.ClientPortmapPort})
}

// Locks returns the figures of the lock manager's clients.
func (s *Server) Locks() nlm.Stats { return s.locks.Stats() }

// ServePacket answers what may come in datagrams, NLM and NSM, until
// Shutdown, and then returns nil.
func (s *Server) ServePacket(pc *net.UDPConn) error { return s.rpc.ServePacket(pc) }

// Services lists what a portmapper must know: what is served on a TCP
// address, and on the same port over UDP if udp.
func Services(addr netip.AddrPort, udp bool) []portmap.Service {
	list := []portmap.Service{
		{Prog: ProgramNFS, Vers: 3, Network: "tcp", Addr: addr},
		{Prog: ProgramMount, Vers: 3, Network: "tcp", Addr: addr},
		{Prog: nlm.ProgramNumber, Vers: nlm.Version, Network: "tcp", Addr: addr},
		{Prog: nsm.ProgramNumber, Vers: nsm.Version, Network: "tcp", Addr: addr},
	}
	if udp {
		list = append(list,
			portmap.Service{Prog: nlm.ProgramNumber, Vers: nlm.Version, Network: "udp", Addr: addr},
			portmap.Service{Prog: nsm.ProgramNumber, Vers: nsm.Version, Network: "udp", Addr: addr})
	}
	return list
}

// lockFiles implements nlm.Files.
type lockFiles struct{ s *Server }

// Resolve checks the export's rules as every call does, and reports refusals.
// The caller must be allowed to read, or to write for an exclusive lock, or own
// the file: the client checked when the program opened it. Who gives up may do that
// with any handle that the server made.
func (f lockFiles) Resolve(ctx context.Context, c *rpc.Call, fh []byte, want nlm.Access) (uint64, error) {
	q := &request{s: f.s, call: c}
	ino, err := f.resolve(ctx, q, fh, want)
	if err != nil && f.s.done != nil {
		q.tell(lockOperation(c.Proc), err)
	}
	return ino, err
}

func (f lockFiles) resolve(ctx context.Context, q *request, fh []byte, want nlm.Access) (uint64, error) {
	if want == nlm.GiveUp {
		return f.named(q.call, fh)
	}
	ino, err := q.open(ctx, fh, want == nlm.Write)
	if err != nil || want == nlm.Name {
		return uint64(ino), vfsError(err)
	}
	a, err := q.stat(ctx, ino)
	if err != nil {
		return 0, vfsError(err)
	}
	if !a.IsRegular() {
		return 0, vfs.ErrInvalid
	}
	mask := vfs.AccessRead
	if want == nlm.Write {
		mask = vfs.AccessWrite
	}
	if !q.cred.Is(a.UID) {
		err = f.s.fs.Access(ctx, &q.cred, ino, mask)
	}
	return uint64(ino), err
}

// named returns the inode of a handle that this server made, whatever became
// of its export. The caller must be the client's kernel still, or its users
// could give up each other's locks.
func (f lockFiles) named(c *rpc.Call, fh []byte) (uint64, error) {
	h, err := f.s.sealer.parse(fh)
	if err != nil {
		return 0, vfsError(err)
	}
	x := f.s.exports.Load().byID[h.export]
	if c.Remote.Port() >= reservedPorts && (x == nil || !x.Insecure) {
		return 0, vfs.ErrAccess
	}
	return uint64(h.ino), nil
}

// vfsError puts the sentinel of vfs in the place of a status of NFS.
func vfsError(err error) error {
	var s Status
	if !errors.As(err, &s) {
		return err
	}
	switch s {
	case ErrStale, ErrBadHandle:
		return vfs.ErrStale
	case ErrROFS:
		return vfs.ErrReadOnly
	case ErrAcces:
		return vfs.ErrAccess
	}
	return err
}

// LockHolders returns the NFS clients of an address or a host name that hold
// locks or wait for them, through whichever gateway.
func (s *Server) LockHolders(ctx context.Context, client string) ([]nlm.Holder, error) {
	return s.locks.Holders(ctx, client)
}

// FreeLocks gives up all that they hold and wait for, and returns what that
// was.
func (s *Server) FreeLocks(ctx context.Context, client string) ([]nlm.Holder, error) {
	return s.locks.Free(ctx, client)
}

package portmap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
)

const (
	// callTimeout bounds one conversation with the rpcbind of this machine,
	// and with a server that claims a program.
	callTimeout = 3 * time.Second
	// refreshInterval is how soon an rpcbind that was restarted, or started
	// later than this process, knows the services.
	refreshInterval = 30 * time.Second
)

// SocketPaths are where rpcbind listens for programs of its own machine.
func SocketPaths() []string { return []string{"/run/rpcbind.sock", "/var/run/rpcbind.sock"} }

var (
	// ErrNoPortmapper: no rpcbind runs on this machine.
	ErrNoPortmapper = errors.New("portmap: no rpcbind runs on this machine")
	// ErrTaken: another server of the program is registered, and answers.
	ErrTaken = errors.New("portmap: another server is registered")
)

// Registrar keeps services registered with the rpcbind of this machine.
type Registrar struct {
	sockets  []string
	services []Service
	log      *slog.Logger
	complete atomic.Bool // the last attempt registered everything

	mu   sync.Mutex
	mine map[Service]bool
	last string // what was logged last, to say things once
}

// NewRegistrar returns a Registrar of services that talks to the first of
// sockets that exists.
func NewRegistrar(sockets []string, services []Service, log *slog.Logger) *Registrar {
	return &Registrar{sockets: sockets, services: expandAll(services), log: log, mine: make(map[Service]bool)}
}

// Register registers every service once. It returns ErrNoPortmapper, and
// ErrTaken for each service that belongs to somebody else.
func (r *Registrar) Register(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.registerAll(ctx)
	r.complete.Store(err == nil)
	return err
}

// Registered reports whether clients find every service, as far as is known.
func (r *Registrar) Registered() bool { return r.complete.Load() }

func (r *Registrar) registerAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout*time.Duration(1+len(r.services)))
	defer cancel()
	nc, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	var errs []error
	for _, s := range r.services {
		if err := r.register(ctx, nc, s); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Run registers the services, again whenever rpcbind forgot them, until ctx
// ends, and then takes them back. Failures are logged when they change.
func (r *Registrar) Run(ctx context.Context) {
	tick := time.NewTicker(refreshInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		r.report(r.Register(ctx))
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	r.Unregister()
}

func (r *Registrar) report(err error) {
	text := "registered"
	if err != nil {
		text = err.Error()
	}
	if text == r.last {
		return
	}
	r.last = text
	switch {
	case err == nil:
		r.log.Info("portmap: services are registered with rpcbind")
	case errors.Is(err, ErrNoPortmapper):
		r.log.Info("portmap: no rpcbind runs here, so clients need port options, and have no locks")
	default:
		r.log.Warn("portmap: not everything could be registered", "err", err)
	}
}

// Unregister takes back what was registered.
func (r *Registrar) Unregister() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complete.Store(false)
	if len(r.mine) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	nc, err := r.dial(ctx)
	if err != nil {
		return // no rpcbind, no registrations
	}
	defer nc.Close()
	for s := range r.mine {
		if _, err := r.call(ctx, nc, procUnset, encodeRPCB(s, "", "")); err != nil {
			r.log.Warn("portmap: a service stays registered", "program", s.Prog, "err", err)
		}
	}
	clear(r.mine)
}

func (r *Registrar) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	for _, path := range r.sockets {
		if nc, err := d.DialContext(ctx, "unix", path); err == nil {
			return nc, nil
		}
	}
	return nil, ErrNoPortmapper
}

func (r *Registrar) call(ctx context.Context, nc net.Conn, proc uint32, args *xdr.Writer) (xdr.Reader, error) {
	b, err := rpc.Invoke(ctx, nc, rpc.Procedure{Prog: ProgramNumber, Vers: version4, Proc: proc}, args.B)
	return xdr.NewReader(b), err
}

// register makes s known unless somebody who answers stands there.
func (r *Registrar) register(ctx context.Context, nc net.Conn, s Service) error {
	other, err := r.registered(ctx, nc, s)
	if err != nil {
		return err
	}
	if other == s.Addr {
		r.mine[s] = true
		return nil
	}
	if other.IsValid() {
		if alive(ctx, s, other) {
			return fmt.Errorf("%w for program %d version %d: %s %s", ErrTaken, s.Prog, s.Vers, s.Network, other)
		}
		if _, err := r.call(ctx, nc, procUnset, encodeRPCB(s, "", "")); err != nil {
			return err
		}
	}
	res, err := r.call(ctx, nc, procSet, encodeRPCB(s, FormatAddr(s.Addr), ""))
	if err != nil {
		return err
	}
	if !res.Bool() || res.Err() != nil {
		return fmt.Errorf("portmap: rpcbind refuses program %d version %d on %s", s.Prog, s.Vers, s.Network)
	}
	r.mine[s] = true
	return nil
}

// registered returns what is registered for the program, version and
// transport of s; the zero value if nothing is. It looks into the whole list:
// GETADDR would answer with other versions.
func (r *Registrar) registered(ctx context.Context, nc net.Conn, s Service) (netip.AddrPort, error) {
	list, err := r.call(ctx, nc, procDump, &xdr.Writer{})
	if err != nil {
		return netip.AddrPort{}, err
	}
	id := netID(s.Network, s.Addr.Addr())
	for list.Bool() {
		prog, vers := list.Uint32(), list.Uint32()
		netid, addr := list.String(maxString), list.String(maxString)
		list.String(maxString)
		if list.Err() == nil && prog == s.Prog && vers == s.Vers && netid == id {
			a, err := ParseAddr(addr)
			return a, err
		}
	}
	return netip.AddrPort{}, list.Err()
}

// alive reports whether a server of s's program answers at a.
func alive(ctx context.Context, s Service, a netip.AddrPort) bool {
	if a.Addr().IsUnspecified() {
		local := netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if a.Addr().Is6() {
			local = netip.IPv6Loopback()
		}
		a = netip.AddrPortFrom(local, a.Port())
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	nc, err := rpc.Dial(ctx, s.Network, netip.Addr{}, a)
	if err != nil {
		return false
	}
	defer nc.Close()
	_, err = rpc.Invoke(ctx, nc, rpc.Procedure{Prog: s.Prog, Vers: s.Vers, Proc: procNull}, nil)
	return err == nil || errors.Is(err, rpc.ErrRefused)
}

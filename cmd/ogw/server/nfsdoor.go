package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"

	"ogw/cmd/ogw/config"
	"ogw/httpapi/admin"
	"ogw/nfsserver"
	"ogw/nfsserver/portmap"
	"ogw/nfsserver/rpc"
)

// nfsParts is all that an NFS gateway listens with: TCP, UDP on the same port
// for locks, and what makes both known to clients.
type nfsParts struct {
	server *nfsserver.Server
	tcp    net.Listener
	udp    *net.UDPConn // nil: the port was taken
	mapper *mapper      // nil unless this process is the portmapper

	registrar *portmap.Registrar // nil: nothing is registered
	ctx       context.Context    // of the registrar
	stop      context.CancelFunc
	wait      sync.WaitGroup
}

func nfsDoor(ctx context.Context, g config.Gateway, l net.Listener, server *nfsserver.Server, log *slog.Logger) (*door, error) {
	n := &nfsParts{server: server, tcp: l}
	n.ctx, n.stop = context.WithCancel(context.Background())
	addr := l.Addr().(*net.TCPAddr).AddrPort()
	var err error
	if n.udp, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr)); err != nil {
		log.Warn("no NLM over UDP: clients that lock over UDP, and notices of clients' reboots, are not heard",
			"gateway", g.Name, "error", err)
	}
	d := &door{
		gateway: admin.Gateway{Name: g.Name, Protocol: g.Protocol, Listen: l.Addr().String()},
		serve:   n.serve, shutdown: n.shutdown,
		clients: func() []admin.NFSClient { return nfsClients(server) },
		mapped:  n.mapped, nfs: server,
	}
	services := nfsserver.Services(addr, n.udp != nil)
	switch mode := g.Portmap; {
	case mode == "serve":
		n.mapper, err = newMapper(addr.Addr(), services, server.Allows, log)
	case mode == "on", mode == "auto" && !config.Loopback(g.Listen):
		n.registrar = portmap.NewRegistrar(portmap.SocketPaths(), services, log.With("gateway", g.Name))
		// Here already, so that what serve prints fits; with "auto" the
		// registrar logs why it failed when it tries again.
		if e := n.registrar.Register(ctx); mode == "on" {
			err = e
		}
	}
	if err != nil {
		err = fmt.Errorf("gateway %s: portmap = %q: %w", g.Name, g.Portmap, err)
	}
	return d, err
}

// mapped reports whether a portmapper knows all services.
func (n *nfsParts) mapped() bool {
	return n.mapper != nil || n.registrar != nil && n.registrar.Registered()
}

func (n *nfsParts) serve() error {
	if n.registrar != nil {
		n.wait.Go(func() { n.registrar.Run(n.ctx) })
	}
	serves := []func() error{func() error { return n.server.Serve(n.tcp) }}
	if n.udp != nil {
		serves = append(serves, func() error { return n.server.ServePacket(n.udp) })
	}
	if n.mapper != nil {
		serves = append(serves, n.mapper.serve...)
	}
	done := make(chan error, len(serves))
	for _, f := range serves {
		go func() { done <- f() }()
	}
	var err error
	for range serves {
		err = errors.Join(err, <-done)
	}
	return err
}

func (n *nfsParts) shutdown(ctx context.Context) error {
	n.stop()
	n.wait.Wait() // registrations are taken back while others could not yet take over
	if n.registrar != nil {
		n.registrar.Unregister() // also when it never ran
	}
	var err error
	if n.mapper != nil {
		err = n.mapper.server.Shutdown(ctx)
		n.mapper.close()
	}
	err = errors.Join(err, n.server.Shutdown(ctx))
	_ = n.tcp.Close() // also when they were never served
	if n.udp != nil {
		_ = n.udp.Close()
	}
	return err
}

// mapper is this process in the place of rpcbind.
type mapper struct {
	server *rpc.Server
	serve  []func() error
	close  func()
}

func newMapper(host netip.Addr, services []portmap.Service, allow func(netip.Addr) bool, log *slog.Logger) (*mapper, error) {
	addr := netip.AddrPortFrom(host, portmap.Port)
	l, err := net.Listen("tcp", addr.String())
	if err != nil {
		return nil, err
	}
	pc, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := rpc.NewServer(rpc.Config{Programs: []rpc.Program{portmap.Program(services)}, Logger: log, Allow: allow})
	return &mapper{server: s,
		serve: []func() error{func() error { return s.Serve(l) }, func() error { return s.ServePacket(pc) }},
		close: func() { _, _ = l.Close(), pc.Close() }}, nil
}

// nfsInstance names a gateway among those over the same store. Over the
// embedded engine no other process is there, and a container may get another
// host name with each start.
func nfsInstance(cfg *config.Config, g config.Gateway) string {
	host, err := os.Hostname()
	if cfg.Cluster.Engine == "embedded" || err != nil {
		return g.Name
	}
	return host + ":" + strconv.Quote(g.Name)
}

func nfsClients(server *nfsserver.Server) []admin.NFSClient {
	out := []admin.NFSClient{}
	for _, c := range server.Clients() {
		out = append(out, admin.NFSClient{
			Address: c.Remote.String(), Machine: c.Machine, Since: c.Since.UTC(), Mounts: append([]string{}, c.Mounts...),
			Calls: c.Calls, InFlight: c.InFlight, BytesIn: c.In, BytesOut: c.Out,
		})
	}
	return out
}

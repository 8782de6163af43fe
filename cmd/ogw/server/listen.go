package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"ogw/cmd/ogw/config"
	"ogw/httpapi"
	"ogw/httpapi/admin"
	"ogw/httpapi/fair"
	"ogw/httpapi/peer"
)

// portTries is how many ports after the default are tried without a
// configuration: the machine of somebody who tries things out.
const portTries = 20

// forceWait is how long shutting down waits for handlers whose connections were
// cut.
const forceWait = 5 * time.Second

// listen opens a gateway's listener, at the next free port if it moves.
func listen(g config.Gateway, log *slog.Logger) (net.Listener, error) {
	if path, ok := config.SocketPath(g.Listen); ok {
		return listenSocket(g, path)
	}
	l, err := listenTCP(g, g.Listen)
	if err == nil {
		return l, nil
	}
	host, port, splitErr := net.SplitHostPort(g.Listen)
	n, atoiErr := strconv.Atoi(port)
	busy := errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES)
	if g.Moves && busy && splitErr == nil && atoiErr == nil {
		for i := 1; i <= portTries; i++ {
			l, e := listenTCP(g, net.JoinHostPort(host, strconv.Itoa(n+i)))
			if e == nil {
				log.Warn("the usual port cannot be used, taking the next free one",
					"gateway", g.Name, "port", n, "instead", n+i, "reason", err)
				return l, nil
			}
		}
	}
	err = fmt.Errorf("gateway %s: %w", g.Name, err)
	switch {
	case errors.Is(err, syscall.EACCES):
		err = fmt.Errorf("%w (ports below 1024 need root or CAP_NET_BIND_SERVICE)", err)
	case errors.Is(err, syscall.EADDRINUSE):
		err = fmt.Errorf("%w: another process listens there; choose another address with %s", err, addressOption(g))
	}
	return nil, err
}

// addressOption names what sets the address of a gateway.
func addressOption(g config.Gateway) string {
	switch {
	case g.Protocol != "":
		return "--" + g.Protocol
	case g.Name == metricsName:
		return "--metrics, or -o metrics=ADDRESS"
	}
	return "admin.listen"
}

// httpDoor serves h on l.
func (s *gateways) httpDoor(g config.Gateway, l net.Listener, h http.Handler) (*door, error) {
	proxies, heads := networks(g.TrustedProxies), fair.NewPool(cmp.Or(s.engine.budgets.heads, fair.HeadBytes))
	h = fair.Heads(h, heads)
	if !g.ProxyProtocol {
		h = fair.Forwarded(h, proxies)
	}
	flights := &inFlight{next: h}
	server := httpapi.NewServer(flights, s.opt.Log)
	d := &door{gateway: admin.Gateway{Name: g.Name, Protocol: g.Protocol, Listen: listenText(l.Addr())}}
	limited := fair.Listen(httpapi.LazyDeadlines(l, s.sends), fair.Limits{Connections: s.connections, Proxies: proxies, ProxyProtocol: g.ProxyProtocol, Heads: heads})
	bound := server.ConnState
	server.ConnState = func(c net.Conn, s http.ConnState) {
		bound(c, s)
		fair.State(c, s)
	}
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return fair.ConnContext(httpapi.ConnContext(peer.ConnContext(ctx, c), c), c)
	}
	d.serve = func() error { return served(server.Serve(limited)) }
	if g.TLSCert != "" {
		cert, err := newCertificate(g.TLSCert, g.TLSKey, s.opt.Log)
		if err != nil {
			return nil, fmt.Errorf("gateway %s: %w", g.Name, err)
		}
		server.TLSConfig = &tls.Config{GetCertificate: cert.get, GetConfigForClient: fair.Greeted, MinVersion: tls.VersionTLS12}
		if err := fair.HTTP2(server, heads, httpapi.HeaderTimeout); err != nil {
			return nil, fmt.Errorf("gateway %s: %w", g.Name, err)
		}
		d.gateway.TLS = true
		d.serve = func() error { return served(server.ServeTLS(limited, "", "")) }
	}
	d.shutdown = func(ctx context.Context) error {
		err := server.Shutdown(ctx)
		if err != nil {
			_ = server.Close() // cuts what is left
		}
		_ = limited.Close() // also when it was never served
		if !flights.wait(forceWait) {
			err = errors.Join(err, fmt.Errorf("gateway %s: requests still run", g.Name))
		}
		return err
	}
	return d, nil
}

// networks parses what the configuration found right.
func networks(list []string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		if p, err := config.ParseNetwork(s); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// served drops the error that stands for an orderly end.
func served(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// inFlight knows when no handler runs any more: http.Server forgets those
// whose connections it cut, and they must not outlive the namespace.
type inFlight struct {
	next http.Handler

	mu      sync.Mutex // guards the rest; a leaf
	running int
	none    chan struct{} // made by wait, after which none begins; closed when none runs
}

// ServeHTTP implements http.Handler.
func (f *inFlight) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.begin() {
		panic(http.ErrAbortHandler) // its head came as the server closed
	}
	defer f.end()
	f.next.ServeHTTP(w, r)
}

func (f *inFlight) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.none != nil {
		return false
	}
	f.running++
	return true
}

func (f *inFlight) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
	if f.none != nil && f.running == 0 {
		close(f.none)
	}
}

// wait returns whether all handlers ended in time. No other one begins.
func (f *inFlight) wait(limit time.Duration) bool {
	f.mu.Lock()
	if f.none == nil {
		f.none = make(chan struct{})
		if f.running == 0 {
			close(f.none)
		}
	}
	f.mu.Unlock()
	select {
	case <-f.none:
		return true
	case <-time.After(limit):
		return false
	}
}

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"ogw/cmd/ogw/config"
	"ogw/httpapi/peer"
)

// listenTCP is net.Listen. Where the kernel is asked who connects, Multipath
// TCP is off: it makes sockets of its own for a connection.
func listenTCP(g config.Gateway, address string) (net.Listener, error) {
	var c net.ListenConfig
	if g.Open() {
		c.SetMultipathTCP(false)
	}
	return c.Listen(context.Background(), "tcp", address)
}

// listenSocket opens the listener of a gateway at a Unix socket.
func listenSocket(g config.Gateway, path string) (net.Listener, error) {
	gid, err := g.SocketGID()
	if err == nil {
		err = peer.CheckSocket(path)
	}
	var l net.Listener
	if err == nil {
		l, err = peer.ListenUnix(path, peer.SocketOptions{Mode: g.SocketMode.FileMode(), GID: gid})
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: another process listens there", err)
	}
	if err != nil {
		return nil, fmt.Errorf("gateway %s: %w", g.Name, err)
	}
	return peer.Identify(l), nil
}

// identified returns the listener of an open gateway, whose connections know
// who made them.
func identified(g config.Gateway, l net.Listener, log *slog.Logger) net.Listener {
	if _, ok := config.SocketPath(g.Listen); ok || !g.Open() {
		return l
	}
	if err := peer.Probe(); err != nil {
		log.Warn("the kernel does not tell who connects: requests get 401; configure tokens or users, or listen = \"unix:PATH\"",
			"gateway", g.Name, "err", err)
	}
	return peer.Identify(l)
}

// listenText is a listener's address as the configuration has it.
func listenText(a net.Addr) string {
	if u, ok := a.(*net.UnixAddr); ok {
		return "unix:" + u.Name
	}
	return a.String()
}

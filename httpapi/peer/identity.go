package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// Identity is who holds the other end of a connection.
type Identity struct {
	UID    uint32
	GID    uint32
	Groups []uint32 // supplementary
	PID    int      // of who connected to a Unix socket; else 0
	// Socket distinguishes a Unix socket from TCP: no browser comes through one.
	Socket bool
}

// Name is the identity in logs.
func (i *Identity) Name() string { return "uid:" + strconv.FormatUint(uint64(i.UID), 10) }

// ErrUnknown: the kernel does not report who the caller is.
var ErrUnknown = errors.New("the kernel does not tell whose connection this is")

// address is the remote address of an identified connection. It carries the
// answer through the wrappers that listeners put around connections.
type address struct {
	net.Addr
	who Identity
	err error
}

// String implements net.Addr. A Unix socket's client has no address; its
// process stands for it.
func (a *address) String() string {
	switch {
	case !a.who.Socket:
		return a.Addr.String()
	case a.err != nil:
		return "unix:"
	}
	return Process(a.who.UID, a.who.PID).String()
}

// User is the user for limits by client, "" if it is unknown.
func (a *address) User() string {
	if a.err != nil {
		return ""
	}
	return a.who.Name()
}

// process is a process of this machine, as text: unix:uid=1000,pid=4711.
type process string

// Process is how a process of this machine stands for an address.
func Process(uid uint32, pid int) net.Addr {
	return process(fmt.Sprintf("unix:uid=%d,pid=%d", uid, pid))
}

// Network implements net.Addr.
func (process) Network() string { return "unix" }

// String implements net.Addr.
func (p process) String() string { return string(p) }

type contextKey struct{}

// ConnContext is for http.Server: it keeps the identity for Of.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if a, ok := c.RemoteAddr().(*address); ok {
		return context.WithValue(ctx, contextKey{}, a)
	}
	return ctx
}

// Of returns who sent a request; ErrUnknown.
func Of(ctx context.Context) (*Identity, error) {
	a, ok := ctx.Value(contextKey{}).(*address)
	if !ok {
		return nil, ErrUnknown
	}
	if a.err != nil {
		return nil, a.err
	}
	return &a.who, nil
}

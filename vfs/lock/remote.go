package lock

import (
	"context"
	"strings"
)

// RemotePrefix begins the names of clients that are other machines, to which a gateway lends
// its locks over the network; then come the machine's name, a space, and what distinguishes
// its clients. Where several gateways share locks, those of such a client are its own: they
// outlive the gateway that granted them, and the client may ask any other.
const RemotePrefix = "nfs "

// Remote reports whether the owner is of a client that is another machine.
func (o *Owner) Remote() bool { return strings.HasPrefix(o.Client, RemotePrefix) }

// MachineOf returns what the names of all clients of a remote client's machine begin with.
func MachineOf(client string) string {
	machine, _, _ := strings.Cut(strings.TrimPrefix(client, RemotePrefix), " ")
	return RemotePrefix + machine + " "
}

// RemoteClient is a client that is another machine, and what it has.
type RemoteClient struct {
	Client string // as in Owner
	Locks  int    // held, and waiting requests
}

// Remotes is implemented by Locks that several gateways grant.
type Remotes interface {
	// RemoteClients returns those that have something, through whichever gateway, and whose
	// names begin with a prefix.
	RemoteClients(ctx context.Context, prefix string) ([]RemoteClient, error)
	// Withdraw ends what waits, in whichever gateway, exactly as l of a remote client does,
	// with ErrInterrupted, and reports whether anything did.
	Withdraw(ctx context.Context, ino uint64, s Space, l Lock) (found bool, err error)
	// Holds reports whether a remote client holds all of l now, at least as its type.
	Holds(ctx context.Context, ino uint64, s Space, l Lock) (held bool, err error)
}

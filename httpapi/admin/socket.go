package admin

import (
	"fmt"
	"net"

	"ogw/httpapi/peer"
)

// SocketName is the socket's name in the data folder.
const SocketName = "admin.sock"

// ListenSocket listens at a Unix socket that only its owner can use. What
// stood there is replaced: the caller holds the lock of the folder, so it
// is a leftover. The address of a connection shows who made it.
func ListenSocket(path string) (net.Listener, error) {
	l, err := peer.ListenUnix(path, peer.SocketOptions{Mode: 0o600, GID: -1})
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	return peer.Identify(l), nil
}

// LocalPeer is how a process of this machine stands in logs.
func LocalPeer(uid uint32, pid int) net.Addr { return peer.Process(uid, pid) }

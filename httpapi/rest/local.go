package rest

import (
	"context"
	"fmt"

	"ogw/httpapi/apierr"
	"ogw/httpapi/peer"
	"ogw/vfs"
)

// identifyLocal is for an open door: the kernel reports whose program asks, and
// it may do what modes and ACLs let that user do. Root and the user who runs
// the server may do everything, as through any other door of theirs.
func (a *authenticator) identifyLocal(ctx context.Context) (identity, error) {
	who, err := peer.Of(ctx)
	if err != nil {
		return identity{}, fmt.Errorf("%w: %w", apierr.ErrUnauthorized, err)
	}
	name := who.Name()
	if who.UID == 0 || int(who.UID) == a.self {
		return identity{name: name, user: name, subject: a.owner}, nil
	}
	return identity{name: name, user: name, subject: vfs.Subject{UID: who.UID, GID: who.GID, Groups: who.Groups, Local: true}}, nil
}

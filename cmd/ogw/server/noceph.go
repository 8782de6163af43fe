//go:build !ceph

package server

import (
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/cmd/ogw/config"
)

// openPool refuses: librados is a library in C, and this program is built without.
func openPool(_ context.Context, _ *config.Cluster, where config.Objects) (cluster.Blobs, error) {
	return nil, fmt.Errorf("%w: this ogw cannot use pool %s, it was built without Ceph: build it with librados-dev installed, by `make build-ceph`", cluster.ErrInvalid, where.Pool)
}

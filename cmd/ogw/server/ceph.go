//go:build ceph

package server

import (
	"context"

	"ogw/cluster"
	"ogw/cluster/rados"
	"ogw/cluster/rados/librados"
	"ogw/cmd/ogw/config"
)

// openPool opens blobs in a pool of a Ceph cluster.
func openPool(ctx context.Context, c *config.Cluster, where config.Objects) (cluster.Blobs, error) {
	pool, err := librados.Open(ctx, librados.Options{Conf: c.ObjectsConf, User: where.User, Keyring: c.ObjectsKeyring, Pool: where.Pool, Namespace: c.Store})
	if err != nil {
		return nil, err
	}
	b, err := rados.Open(ctx, pool)
	if err != nil {
		return nil, err
	}
	return b, nil
}

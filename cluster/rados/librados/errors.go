//go:build ceph

package librados

import (
	"errors"
	"fmt"
	"syscall"

	"ogw/cluster"

	"github.com/ceph/go-ceph/rados"
)

// ErrUnfit: the pool cannot hold a store.
var ErrUnfit = errors.New("the Ceph pool lacks what a store needs")

// codeOf returns the errno of an answer, positive.
func codeOf(err error) syscall.Errno {
	var op rados.OperationError
	if errors.As(err, &op) && op.OpError != nil {
		err = op.OpError
	}
	var c interface{ ErrorCode() int }
	if errors.As(err, &c) {
		return syscall.Errno(-c.ErrorCode())
	}
	return 0
}

// mapError returns an error of package cluster for what became of a request for an object.
func (p *Pool) mapError(name string, err error) error {
	switch code := codeOf(err); {
	case err == nil:
		return nil
	case errors.Is(err, errLeft):
		return err
	case code == syscall.ENOENT && p.gone():
		return fmt.Errorf("%w: pool %s is gone", cluster.ErrUnavailable, p.options.Pool)
	case code == syscall.ENOENT:
		return fmt.Errorf("%w: %s", cluster.ErrNotFound, name)
	case code == syscall.EEXIST:
		return fmt.Errorf("%w: %s", cluster.ErrExists, name)
	case code == syscall.ENOSPC, code == syscall.EDQUOT:
		return fmt.Errorf("%w: pool %s: %w", cluster.ErrNoSpace, p.options.Pool, err)
	case code == syscall.ETIMEDOUT:
		return fmt.Errorf("%w: no answer about object %s of pool %s for %v", cluster.ErrUnavailable, name, p.options.Pool, p.options.Timeout)
	case code == syscall.EPERM, code == syscall.EACCES:
		return fmt.Errorf("%w: client.%s may not use pool %s as a store: %w", cluster.ErrUnavailable, p.options.User, p.options.Pool, err)
	case code == syscall.EOPNOTSUPP:
		return fmt.Errorf("%w: pool %s takes no omap: it is not replicated", ErrUnfit, p.options.Pool)
	}
	return fmt.Errorf("%w: object %s of pool %s: %w", cluster.ErrUnavailable, name, p.options.Pool, err)
}

// gone reports whether the pool was deleted, by the map that the client has. Who was
// answered that an object of it does not exist has a map that says so.
func (p *Pool) gone() bool {
	_, err := p.conn.GetPoolByID(p.id)
	return err != nil
}

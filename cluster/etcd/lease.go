package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const (
	// leaseSeconds is how long the slots of a dead process stay. A client
	// that cannot reach etcd for so long gets slots of a new lease.
	leaseSeconds = 60
	// closeTimeout bounds the requests of a client that ends.
	closeTimeout = 2 * time.Second
)

// lease is what the slots of a client hang on. It is kept alive until it is
// closed.
type lease struct {
	client  *clientv3.Client
	session *concurrency.Session
}

func newLease(ctx context.Context, client *clientv3.Client) (*lease, error) {
	var id clientv3.LeaseID
	// One that was granted without an answer ends by its time.
	err := persist(ctx, func(ctx context.Context) error {
		grant, err := client.Grant(ctx, leaseSeconds)
		if err == nil {
			id = grant.ID
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithLease(id))
	if err != nil {
		return nil, mapError(err)
	}
	return &lease{client, session}, nil
}

func (l *lease) id() clientv3.LeaseID { return l.session.Lease() }

// ended reports whether the lease is known to be over.
func (l *lease) ended() bool {
	select {
	case <-l.session.Done():
		return true
	default:
		return false
	}
}

// over notes that the lease has ended, before the client finds that by itself: it asks each
// third of leaseSeconds, and waits for all of it where nobody answers.
func (l *lease) over() { l.session.Orphan() }

// close gives the lease back. It ends by itself if nobody answers.
func (l *lease) close() {
	l.session.Orphan()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, _ = l.client.Revoke(ctx, l.id()) // else it ends by its time
}

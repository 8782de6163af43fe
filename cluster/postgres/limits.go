package postgres

import (
	"context"
	"time"

	"ogw/cluster"
)

const (
	// MaxOps of a transaction: what is sent and compared in one call.
	MaxOps = 1000
	// maxBytes of a transaction, which the server holds in memory.
	maxBytes = 16 << 20
	// commitTimeout bounds the wait for the answer of a commit, its locks and
	// a slow disk included, but for urgent ones.
	commitTimeout = 10 * time.Second
	// requestTimeout bounds one query.
	requestTimeout = 10 * time.Second
	// urgentTimeout bounds the wait for the answer of an urgent commit, of each try to
	// fence one, and of the first try of an urgent read: beats, of which the next try,
	// by another connection, has to come in time. It leaves room for pingTimeout.
	urgentTimeout = 2 * time.Second
	// silentTimeout bounds the first try of what a transaction reads first, which may be asked
	// again by another connection: far above what it takes, and below requestTimeout by
	// more than that one takes.
	silentTimeout = 3 * time.Second
)

// bounded is ctx for one request, which may take d, or less if it is urgent.
func bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if cluster.IsUrgent(ctx) {
		d = min(d, urgentTimeout)
	}
	return context.WithTimeout(ctx, d)
}

package etcd

import (
	"context"
	"errors"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/occ"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// requestTimeout bounds one request with all its tries, an election within them.
	requestTimeout = 10 * time.Second
	// tryTimeout bounds the first try where the next one does no harm: it goes to another
	// member. The client itself gives a member that stands still up only after keepAlive.
	tryTimeout = time.Second
	// resendTime is how long a request is sent again that members refuse, or whose
	// connection ended.
	resendTime = 3 * time.Second
)

// refusals are errors that a member gives before a request has any effect.
var refusals = []error{
	rpctypes.ErrTooManyOps, rpctypes.ErrRequestTooLarge, rpctypes.ErrDuplicateKey, rpctypes.ErrEmptyKey,
	rpctypes.ErrPermissionDenied, rpctypes.ErrUserEmpty, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthFailed,
	clientv3.ErrNoAvailableEndpoints,
}

// isRefusal reports whether err means that the request had no effect.
func isRefusal(err error) bool {
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// mapError returns an error of package cluster. Only what etcd says of a
// request's size and of its space has one of its own.
func mapError(err error) error {
	var class error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrTooManyOps), errors.Is(err, rpctypes.ErrRequestTooLarge):
		class = cluster.ErrTxTooLarge
	case errors.Is(err, rpctypes.ErrNoSpace):
		class = cluster.ErrNoSpace
	default:
		class = cluster.ErrUnavailable
	}
	return cluster.Because(class, err)
}

// persist sends a request again until it is answered, for requestTimeout at the
// most; the client itself resends only reads by key. The request may take effect twice.
func persist(ctx context.Context, request func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return callerOr(ctx, resend(limited, requestTimeout, request))
}

// resend sends a request, and again until it is answered: for span, or where nobody says
// anything until ctx ends.
func resend(ctx context.Context, span time.Duration, request func(context.Context) error) error {
	end := time.Now().Add(span)
	for attempt := 0; ; attempt++ {
		silent, err := try(ctx, attempt, request)
		if err == nil || isAnswer(err) || !silent && time.Now().After(end) || occ.Backoff(ctx, attempt) != nil {
			return err
		}
	}
}

// try sends a request once more. It is silent if nobody answered.
func try(ctx context.Context, attempt int, request func(context.Context) error) (silent bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience(attempt))
	defer cancel()
	err = request(ctx)
	return ctx.Err() != nil, err
}

// patience returns how long a try waits for its answer: longer after two that had none, since
// all may be slow rather than one stand still.
func patience(attempt int) time.Duration {
	wait := tryTimeout
	for range attempt / 2 {
		wait = min(2*wait, commitTimeout)
	}
	return wait
}

// isAnswer reports whether a member gave err, and would give it again.
func isAnswer(err error) bool {
	return isRefusal(err) || errors.Is(err, rpctypes.ErrNoSpace) || errors.Is(err, rpctypes.ErrLeaseNotFound) ||
		errors.Is(err, rpctypes.ErrCompacted) || errors.Is(err, rpctypes.ErrFutureRev)
}

// callerOr returns why the caller of a request gave up, else the mapped err.
func callerOr(ctx context.Context, err error) error {
	if e := ctx.Err(); e != nil {
		return e
	}
	return mapError(err)
}

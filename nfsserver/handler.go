package nfsserver

import (
	"context"
	"sync"
	"time"

	"ogw/nfsserver/rpc"
)

// procFunc decodes its arguments from q.args, and writes the results of
// success to q.out, beginning with the status. An error is answered with its
// status and empty attributes.
type procFunc func(ctx context.Context, q *request) error

// Shapes of failures: how many words of absent attributes follow the status.
const (
	failNothing = 0
	failPostOp  = 1
	failWcc     = 2
	failLink    = 3
	failRename  = 4
)

var requestPool = sync.Pool{New: func() any { return new(request) }}

// handler makes an RPC handler of a procedure.
func (s *Server) handler(name string, shape int, fn procFunc) func(context.Context, *rpc.Call, *rpc.Reply) error {
	return func(ctx context.Context, c *rpc.Call, r *rpc.Reply) error {
		q := requestPool.Get().(*request)
		*q = request{s: s, call: c, args: &c.Args, out: r}
		err := fn(ctx, q)
		if err != nil {
			err = q.orStale(ctx, err)
		}
		if s.done != nil {
			q.tell(name, err)
		}
		if err != nil {
			err = q.fail(ctx, name, shape, err)
		}
		*q = request{}
		requestPool.Put(q)
		return err
	}
}

func (q *request) fail(ctx context.Context, name string, shape int, err error) error {
	if dropped(err) {
		return err
	}
	if ctx.Err() != nil {
		return rpc.ErrDrop // the server is going away: the client asks the next one
	}
	status := statusOf(err)
	q.out.Reset()
	q.out.Status = uint32(status)
	q.out.Uint32(uint32(status))
	for range shape {
		q.out.Uint32(0)
	}
	switch status {
	case ErrIO, ErrServerFault, ErrJukebox, ErrNoSpc, ErrROFS:
		q.s.log.Warn("nfs: call failed", "op", name, "inode", uint64(q.ino), "name", q.name,
			"uid", q.cred.UID(), "client", q.call.Remote, "xid", q.call.XID,
			"duration", time.Since(q.call.Start()), "err", err)
	default:
		q.s.log.Debug("nfs: call refused", "op", name, "inode", uint64(q.ino), "name", q.name,
			"uid", q.cred.UID(), "client", q.call.Remote, "xid", q.call.XID, "status", status)
	}
	return nil
}

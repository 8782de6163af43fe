package postgres

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"ogw/cluster"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// MaxConnections of one client: transactions beyond them wait.
	MaxConnections = 32
	// urgentConnections are for urgent calls alone: one, and another one while that is
	// stuck.
	urgentConnections = 2
	// connectTimeout bounds the making of a connection, which takes one of these
	// places meanwhile; pgxpool's own is two minutes.
	connectTimeout = 5 * time.Second
	// pingTimeout bounds the question whether a connection that was idle still works,
	// before another one is tried: far above what an answer takes, and, for all of
	// urgentConnections, below what a beat may take.
	pingTimeout = time.Second
	// pingAfter is how long a connection may have been idle that is not asked.
	pingAfter = time.Second
)

// pools are the connections of one client. Each is made when it is needed.
type pools struct {
	shared, urgent *pgxpool.Pool
	// doubted is when a request had no answer, lost when a connection had none either that was then
	// asked whether it works, in nanoseconds since born: other ones that were used last before
	// doubted are asked, and before lost they are given up.
	doubted, lost atomic.Int64
	born          time.Time
}

// newPools changes config. The connections outlive ctx.
func newPools(ctx context.Context, config *pgxpool.Config) (*pools, error) {
	ctx = context.WithoutCancel(ctx)
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, connectTimeout)
	config.PingTimeout = pingTimeout
	config.BeforeClose = dropBroken
	config.MaxConns = MaxConnections
	config.ConnConfig.DialFunc = dialer().DialContext
	p := &pools{born: time.Now()}
	config.ShouldPing = p.asks
	urgent := config.Copy()
	urgent.MaxConns, urgent.MinConns, urgent.MinIdleConns = urgentConnections, 0, 0
	var err error
	if p.shared, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	if p.urgent, err = pgxpool.NewWithConfig(ctx, urgent); err != nil {
		p.shared.Close()
		return nil, err
	}
	return p, nil
}

// doubt notes that a connection was lost, or that its server is slow.
func (p *pools) doubt() { p.doubted.Store(p.now()) }

func (p *pools) now() int64 { return int64(time.Since(p.born)) }

// asks reports whether a connection is asked whether it works before it is used. One that is
// closed is not, says the pool then.
func (p *pools) asks(ctx context.Context, c pgxpool.ShouldPingParams) bool {
	switch used := p.now() - int64(c.IdleDuration); {
	case used < p.lost.Load():
		_ = c.Conn.PgConn().Conn().Close()
		return true
	case used <= p.doubted.Load():
		ping, cancel := context.WithTimeout(ctx, pingTimeout)
		defer cancel()
		err := c.Conn.Ping(ping)
		if err != nil && ctx.Err() == nil {
			p.lost.Store(p.now())
		}
		return err != nil
	}
	return c.IdleDuration > pingAfter
}

// dropBroken has the pool wait for no word of the server about the end of a connection that
// failed, which takes its place there meanwhile: of one that was lost there is none.
func dropBroken(conn *pgx.Conn) {
	if conn.IsClosed() {
		_ = conn.PgConn().Conn().Close()
	}
}

// of returns where a call with ctx takes its connections.
func (p *pools) of(ctx context.Context) *pgxpool.Pool {
	if cluster.IsUrgent(ctx) {
		return p.urgent
	}
	return p.shared
}

func (p *pools) close() {
	p.shared.Close()
	p.urgent.Close()
}

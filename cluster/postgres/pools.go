package postgres

import (
	"cmp"
	"context"
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
)

// pools are the connections of one client. Each is made when it is needed.
type pools struct{ shared, urgent *pgxpool.Pool }

// newPools changes config. The connections outlive ctx.
func newPools(ctx context.Context, config *pgxpool.Config) (*pools, error) {
	ctx = context.WithoutCancel(ctx)
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, connectTimeout)
	config.PingTimeout = pingTimeout
	config.BeforeClose = dropBroken
	config.MaxConns = MaxConnections
	urgent := config.Copy()
	urgent.MaxConns, urgent.MinConns, urgent.MinIdleConns = urgentConnections, 0, 0
	p := &pools{}
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

package postgres

import (
	"context"
	"fmt"
	"time"

	"ogw/cluster"
	"ogw/cluster/coherence"
	"ogw/cluster/internal/occ"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// MaxNameBytes bounds a store's name.
	MaxNameBytes = 63
	// openTimeout is for a connection, the tables and their function.
	openTimeout = 10 * time.Second
	// lockTimeout bounds the wait of a commit for others' locks on the
	// server: far above what commits take, far below what a client waits.
	lockTimeout = 5 * time.Second
)

// Options of a client of one store.
type Options struct {
	// URL names the server, the database and the user, as libpq does:
	// postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full, or
	// key=value words. The user may create tables in its schema.
	URL string
	// Password of the user; empty for that of URL, or without.
	Password string
	// Store is the name of the store among those of the database; at most
	// MaxNameBytes, "ogw" if empty.
	Store string
	// Peers is told what is about to be changed; nil without.
	Peers *coherence.Client
}

// Open connects to a store, which begins to exist with its first pair, and
// makes the tables if they are missing. It returns ErrUnavailable if the server
// does not answer, or refuses the caller.
func Open(ctx context.Context, o Options) (*KV, error) {
	if o.Store == "" {
		o.Store = "ogw"
	}
	if len(o.Store) > MaxNameBytes {
		return nil, fmt.Errorf("%w: a store's name of %d bytes, at most %d are allowed", cluster.ErrInvalid, len(o.Store), MaxNameBytes)
	}
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cluster.ErrInvalid, err) // without the password: pgx leaves it out
	}
	if o.Password != "" {
		config.ConnConfig.Password = o.Password
	}
	config.ConnConfig.RuntimeParams["application_name"] = "ogw"
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "read committed"
	config.ConnConfig.RuntimeParams["lock_timeout"] = fmt.Sprint(lockTimeout.Milliseconds())
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement

	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	p, err := newPools(ctx, config) // which ctx does not end
	if err != nil {
		return nil, mapError(err)
	}
	if err := makeTables(ctx, p.shared); err != nil {
		p.close()
		return nil, fmt.Errorf("PostgreSQL at %s: %w", config.ConnConfig.Host, mapError(err))
	}
	kv := &KV{pools: p, store: o.Store, gate: occ.NewGate(), slots: newSlots(p, o.Store), memory: occ.NewMemory(o.Peers.Trust()), peers: o.Peers}
	kv.reads = newReads(p, o.Store)
	return kv, nil
}

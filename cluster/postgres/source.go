package postgres

import (
	"context"
	"time"

	"ogw/cluster/internal/occ"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// requestTimeout bounds one query.
	requestTimeout = 10 * time.Second
	begin          = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	rollback       = "ROLLBACK"
	holdLocks      = "SELECT ogw_hold_v1($1, $2)"
	// holdTime is what the server waits for a client that holds locks and says
	// nothing: one that stands still must not stop the others.
	holdTime     = "SET LOCAL idle_in_transaction_session_timeout = '1s'"
	releaseLocks = "SELECT pg_advisory_unlock_all()"

	selectMany = "SELECT key, value, version FROM ogw_pairs WHERE store = $1 AND key = ANY($2)"
)

// source is one snapshot of the server, as an occ.Source, which begins with its
// first read. It takes a connection when it needs one, and keeps it.
type source struct {
	ctx   context.Context
	kv    *KV
	conn  *pgxpool.Conn // nil before it is needed
	began bool          // the snapshot
	held  bool          // locks beyond the transaction
	reads *occ.Versions
	// lost is set when the connection ended, perhaps since it held locks for too
	// long.
	lost bool
}

// newSource returns what the first read finds. A nil reads takes no note.
func newSource(ctx context.Context, kv *KV, reads *occ.Versions) *source {
	return &source{ctx: ctx, kv: kv, reads: reads}
}

// connect takes the connection.
func (s *source) connect(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	conn, err := s.kv.pool.Acquire(ctx)
	if err != nil {
		return callerOr(s.ctx, err)
	}
	s.conn = conn
	return nil
}

// hold waits for the locks of a commit before the snapshot begins, so that
// nothing comes between the two. close lets them go.
func (s *source) hold(numbers []int64, shared []bool) error {
	ctx, cancel := context.WithTimeout(s.ctx, requestTimeout)
	defer cancel()
	if err := s.connect(ctx); err != nil {
		return err
	}
	s.held = true
	if _, err := s.conn.Exec(ctx, holdLocks, numbers, shared); err != nil {
		if isBusy(err) {
			return nil // without them it is a matter of luck, as before
		}
		return callerOr(s.ctx, err)
	}
	s.began = true
	batch := &pgx.Batch{}
	batch.Queue(begin)
	batch.Queue(holdTime)
	return callerOr(s.ctx, s.conn.SendBatch(ctx, batch).Close())
}

// endSnapshot lets the connection be used for something else.
func (s *source) endSnapshot(ctx context.Context) error {
	if !s.began {
		return nil
	}
	s.began = false
	_, err := s.conn.Exec(ctx, rollback)
	return err
}

// close ends the snapshot and gives the connection back.
func (s *source) close() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), requestTimeout)
	defer cancel()
	err := s.endSnapshot(ctx)
	if s.held && err == nil {
		_, err = s.conn.Exec(ctx, releaseLocks)
	}
	if err != nil {
		_ = s.conn.Conn().Close(ctx) // the pool makes another
	}
	s.conn.Release()
	s.conn = nil
}

// query runs a query and calls row for each of its rows. The first one begins
// the snapshot, in the same round trip.
func (s *source) query(sql string, row func(pgx.Rows) error, args ...any) error {
	ctx, cancel := context.WithTimeout(s.ctx, requestTimeout)
	defer cancel()
	if err := s.connect(ctx); err != nil {
		return err
	}
	batch := &pgx.Batch{}
	first := !s.began
	if first {
		s.began = true
		batch.Queue(begin)
	}
	batch.Queue(sql, args...)
	err := send(ctx, s.conn, batch, func(results pgx.BatchResults) error {
		if first {
			if _, err := results.Exec(); err != nil {
				return err
			}
		}
		rows, err := results.Query()
		if err != nil {
			return err
		}
		for rows.Next() {
			if err := row(rows); err != nil {
				rows.Close()
				return err
			}
		}
		return rows.Err()
	})
	s.lost = s.lost || err != nil && s.conn.Conn().IsClosed()
	return callerOr(s.ctx, err)
}

// send sends batch and has read take its results.
func send(ctx context.Context, conn *pgxpool.Conn, batch *pgx.Batch, read func(pgx.BatchResults) error) error {
	results := conn.SendBatch(ctx, batch)
	err := read(results)
	if e := results.Close(); err == nil {
		err = e
	}
	return err
}

// Get implements occ.Source.
func (s *source) Get(key []byte) ([]byte, error) {
	var values [1][]byte
	err := s.GetMany([][]byte{key}, values[:])
	return values[0], err
}

// GetMany implements occ.Source.
func (s *source) GetMany(keys, values [][]byte) error {
	places := make(map[string][]int, len(keys))
	for i, key := range keys {
		places[string(key)] = append(places[string(key)], i)
		s.reads.Saw(key, 0)
	}
	return s.query(selectMany, func(rows pgx.Rows) error {
		var key, value []byte
		var version int64
		if err := rows.Scan(&key, &value, &version); err != nil {
			return err
		}
		for _, i := range places[string(key)] {
			values[i] = value
		}
		s.reads.Saw(key, version)
		return nil
	}, s.kv.store, keys)
}

// Iter implements occ.Source.
func (s *source) Iter(start, end []byte, keysOnly bool) (occ.Iter, error) {
	s.reads.BeginScan()
	if start == nil {
		start = []byte{}
	}
	return newIter(s, start, end, keysOnly), nil
}

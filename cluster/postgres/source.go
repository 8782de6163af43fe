package postgres

import (
	"context"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/occ"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	begin    = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	rollback = "ROLLBACK"
	// holdSilence is what the server waits for a client that holds locks and says nothing:
	// one that stands still must not stop the others. holdLocks and holdSnapshot say so for
	// outside a transaction, and within.
	holdSilence  = "1s"
	holdLocks    = "SELECT ogw_hold_v2($1, $2, '" + holdSilence + "')"
	holdSnapshot = "SET LOCAL idle_in_transaction_session_timeout = '" + holdSilence + "'"
	releaseLocks = "SELECT pg_advisory_unlock_all()"
	releaseTime  = "RESET idle_session_timeout"

	selectMany     = "SELECT key, value, version FROM ogw_pairs WHERE store = $1 AND key = ANY($2)"
	selectVersions = "SELECT key, version FROM ogw_pairs WHERE store = $1 AND key = ANY($2)"
)

// source is one snapshot of the server, as an occ.Source, which begins with its
// first read. It takes a connection when it needs one, and keeps it.
type source struct {
	ctx   context.Context
	kv    *KV
	conn  *pgxpool.Conn // nil before it is needed
	began bool          // the snapshot
	held  bool          // locks beyond the transaction
	// recall knows what was read; nil: each read asks. While it moves, each round
	// trip has a snapshot of its own, in which all that was read before is compared.
	recall *occ.Recall
	// lost is set when the connection ended, perhaps since it held locks for too
	// long.
	lost bool
}

// newSource returns what the first read finds. Without a recall, each read asks.
func newSource(ctx context.Context, kv *KV, recall *occ.Recall) *source {
	return &source{ctx: ctx, kv: kv, recall: recall}
}

// connect takes the connection.
func (s *source) connect(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	conn, err := s.kv.pools.of(ctx).Acquire(ctx)
	if err != nil {
		return callerOr(s.ctx, err)
	}
	s.conn = conn
	return nil
}

// alone reports whether a commit goes by itself: it has a connection already, locks perhaps,
// or is urgent.
func (s *source) alone() bool { return s.began || s.held || cluster.IsUrgent(s.ctx) }

// hold waits for the locks of a commit before the snapshot begins, so that
// nothing comes between the two. close lets them go.
func (s *source) hold(numbers []int64, shared []bool) error {
	ctx, cancel := context.WithTimeout(s.ctx, requestTimeout)
	defer cancel()
	if err := s.connect(ctx); err != nil {
		return err
	}
	err := s.conn.QueryRow(ctx, holdLocks, numbers, shared).Scan(&s.held)
	switch {
	case err != nil && ctx.Err() != nil && s.ctx.Err() == nil:
		s.release() // it waited for one after another
		return nil
	case err != nil:
		return callerOr(s.ctx, err)
	case !s.held:
		return nil // without them it is a matter of luck, as before
	}
	s.began = true
	batch := &pgx.Batch{}
	batch.Queue(begin)
	batch.Queue(holdSnapshot)
	err = s.conn.SendBatch(ctx, batch).Close()
	if s.lost = err != nil && s.conn.Conn().IsClosed(); s.lost {
		return nil
	}
	return callerOr(s.ctx, err)
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

// close ends the snapshot and gives the connection back. Who only read need not
// wait for that.
func (s *source) close() {
	switch {
	case s.conn == nil:
	case s.began && !s.held:
		left := *s
		s.conn = nil
		go left.release()
	default:
		s.release()
	}
}

func (s *source) release() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), requestTimeout)
	defer cancel()
	err := s.endSnapshot(ctx)
	if s.held && err == nil {
		batch := &pgx.Batch{}
		batch.Queue(releaseLocks)
		batch.Queue(releaseTime)
		err = s.conn.SendBatch(ctx, batch).Close()
	}
	if err != nil {
		_ = s.conn.Conn().Close(ctx) // the pool makes another
	}
	s.conn.Release()
	s.conn = nil
}

// query runs a query and calls row for each of its rows. In the same round trip, the
// first one begins the snapshot, and what is in doubt is compared.
// patience is that of ask.
func (s *source) query(patience time.Duration, sql string, row func(pgx.Rows) error, args ...any) error {
	return s.ask(patience, func(b *pgx.Batch) func(pgx.BatchResults) error {
		b.Queue(sql, args...)
		return func(results pgx.BatchResults) error { return eachRow(results, row) }
	})
}

// Settle implements occ.Settler.
func (s *source) Settle() error {
	switch {
	case !s.recall.Doubtful(cluster.IsUrgent(s.ctx)):
		return nil
	case s.recall.Moves():
		return s.look(nil, nil)
	}
	return s.ask(silentTimeout, nil)
}

// ask sends a batch of what compares the doubts and, if not nil, of what queue puts
// there, which returns how its results are read. What begins a snapshot goes on by another
// connection if it has no answer after patience, or its own ends.
func (s *source) ask(patience time.Duration, queue func(*pgx.Batch) func(pgx.BatchResults) error) error {
	ctx, cancel := context.WithTimeout(s.ctx, requestTimeout)
	defer cancel()
	if err := s.connect(ctx); err != nil {
		return err
	}
	if s.began {
		_, err := s.tryAsk(ctx, queue)
		return err
	}
	try, end := bounded(ctx, patience)
	defer end()
	answered, err := s.tryAsk(try, queue)
	if answered || err == nil || !s.conn.Conn().IsClosed() || ctx.Err() != nil {
		return err
	}
	s.kv.pools.doubt()
	s.began, s.lost = false, false
	s.release()
	if err := s.connect(ctx); err != nil {
		return err
	}
	_, err = s.tryAsk(ctx, queue)
	return err
}

// tryAsk is one try to ask, by the connection that s has. It reports whether anything was
// answered.
func (s *source) tryAsk(ctx context.Context, queue func(*pgx.Batch) func(pgx.BatchResults) error) (answered bool, err error) {
	var reads []func(pgx.BatchResults) error
	batch, doubts := &pgx.Batch{}, s.recall.Doubts()
	if !s.began {
		s.began = true
		batch.Queue(begin)
		reads = append(reads, noRows)
	}
	if len(doubts) > 0 {
		reads = append(reads, s.compare(batch, doubts))
	}
	if queue != nil {
		reads = append(reads, queue(batch))
	}
	err = send(ctx, s.conn, batch, func(results pgx.BatchResults) error {
		for _, read := range reads {
			if err := read(results); err != nil {
				return err
			}
			answered = true
		}
		return nil
	})
	s.lost = s.lost || err != nil && s.conn.Conn().IsClosed()
	if err != nil {
		return answered, callerOr(s.ctx, err)
	}
	return answered, s.recall.Compared()
}

func noRows(results pgx.BatchResults) error {
	_, err := results.Exec()
	return err
}

func eachRow(results pgx.BatchResults, row func(pgx.Rows) error) error {
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
}

// compare queues the question for the versions of doubts.
func (s *source) compare(batch *pgx.Batch, doubts []occ.KeyVersion) func(pgx.BatchResults) error {
	keys := make([][]byte, len(doubts))
	for i, d := range doubts {
		keys[i] = d.Key
	}
	batch.Queue(selectVersions, s.kv.store, keys)
	return func(results pgx.BatchResults) error {
		found := make(map[string]int64, len(doubts))
		err := eachRow(results, func(rows pgx.Rows) error {
			var key []byte
			var version int64
			err := rows.Scan(&key, &version)
			found[string(key)] = version
			return err
		})
		if err == nil {
			for _, d := range doubts {
				s.recall.Found(d, found[string(d.Key)])
			}
		}
		return err
	}
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
	if s.recall == nil {
		return s.getAll(keys, values)
	}
	return s.recall.GetMany(keys, values, s.getAll, s.Settle)
}

func (s *source) getAll(keys, values [][]byte) error {
	if s.recall.Moves() {
		return s.look(keys, values)
	}
	places := make(map[string][]int, len(keys))
	for i, key := range keys {
		places[string(key)] = append(places[string(key)], i)
	}
	versions := make([]int64, len(keys))
	err := s.query(silentTimeout, selectMany, func(rows pgx.Rows) error {
		var key, value []byte
		var version int64
		if err := rows.Scan(&key, &value, &version); err != nil {
			return err
		}
		for _, i := range places[string(key)] {
			values[i], versions[i] = value, version
		}
		return nil
	}, s.kv.store, keys)
	if err != nil {
		return err
	}
	for i, key := range keys {
		s.recall.Learned(key, values[i], versions[i])
	}
	return nil
}

// look asks for keys, and compares what is in doubt, in a snapshot that others may share.
func (s *source) look(keys, values [][]byte) error {
	doubts := s.recall.Doubts()
	l := &lookup{keys: keys[:len(keys):len(keys)], values: len(keys)}
	for _, d := range doubts {
		l.keys = append(l.keys, d.Key)
	}
	if cluster.IsUrgent(s.ctx) {
		b := newLookups(s.kv.pools, s.kv.store)
		b.Add(l)
		b.send(s.ctx)
	} else if _, err := s.kv.reads.Do(s.ctx, l); err != nil {
		return err
	}
	if l.err != nil {
		return callerOr(s.ctx, l.err)
	}
	for i, d := range doubts {
		s.recall.Found(d, l.found[len(keys)+i].version)
	}
	if err := s.recall.Compared(); err != nil {
		return err
	}
	for i, key := range keys {
		values[i] = l.found[i].value
		s.recall.Learned(key, values[i], l.found[i].version)
	}
	return nil
}

// Iter implements occ.Source.
func (s *source) Iter(start, end []byte, o cluster.ScanOptions) (occ.Iter, error) {
	s.recall.BeginScan()
	s.recall.Stop() // its pages are of one snapshot
	if start == nil {
		start = []byte{}
	}
	return newIter(s, start, end, o), nil
}

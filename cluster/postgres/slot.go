package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"ogw/cluster/internal/gather"
	"ogw/cluster/internal/occ"

	"github.com/jackc/pgx/v5"
)

const (
	// resolveTimeout bounds the search for the outcome of a commit without an
	// answer: a restart of the server.
	resolveTimeout = 20 * time.Second
	// closeTimeout bounds the requests of a client that ends.
	closeTimeout = 2 * time.Second
	// slotIDBytes of chance make a slot's name.
	slotIDBytes = 16

	insertSlot = "INSERT INTO ogw_slots (store, id, number, kind, used) VALUES ($1, $2, 0, 'f', now())"
	// fenceSlot writes in any case: what it finds of a commit that waits for a standby
	// counts once the standby has both.
	fenceSlot = `UPDATE ogw_slots SET used = now(),
		kind = CASE number WHEN $3 THEN 'f' ELSE kind END, number = CASE number WHEN $3 THEN number + 1 ELSE number END
		WHERE store = $1 AND id = $2 RETURNING number, kind::text`
	deleteSlots = "DELETE FROM ogw_slots WHERE store = $1 AND id = ANY($2)"
)

// What a slot records about its last writer.
const (
	byCommit = "c"
	byFence  = "f"
)

// slot is a row that one commit at a time moves to the next number.
type slot struct {
	id     []byte
	number int64 // after its last writing
}

// slots are those of one client.
type slots struct {
	pools *pools
	store string
	// commits share calls.
	commits *gather.Group[*request]

	mu   sync.Mutex
	idle []*slot // no more than there were connections at once
}

func newSlots(p *pools, store string) *slots {
	return &slots{pools: p, store: store, commits: newCommits(p, store)}
}

// commit applies c, which was read from, and returns the version that what was set
// has, 0 if that is not known. It returns false without an error if its reads do not
// hold, or if the commit was made impossible after its answer was lost.
func (p *slots) commit(ctx context.Context, from *source, c *commit) (version int64, done bool, err error) {
	s, err := p.take(ctx, from)
	if err != nil {
		return 0, false, err
	}
	if !from.alone() && c.joins() {
		from.close()
		if version, done, busy, err := p.commitJointly(ctx, s, c); !busy {
			return version, done, err
		}
	}
	if err := from.connect(ctx); err != nil {
		p.giveBack(s)
		return 0, false, err
	}
	// Once sent, a commit is not given up with its caller: its outcome counts.
	sent, cancel := bounded(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	answer, err := c.call(sent, from, s)
	switch {
	case err == nil && answer >= 0:
		s.number++
		p.giveBack(s)
		return answer, true, nil
	case err == nil && answer == answerChanged:
		p.giveBack(s)
		return 0, false, nil
	case err == nil:
		return 0, false, nil // the slot was cleared away
	}
	if isLost(err) {
		from.close() // the connection is broken, and may be the last one of the pool
	}
	done, err = p.failed(ctx, s, err)
	return 0, done, err
}

// commitJointly applies c in one call with what others commit at the same time. It is busy
// if a lock or a connection was not free: then the commit has to wait for it, by itself.
func (p *slots) commitJointly(ctx context.Context, s *slot, c *commit) (version int64, done, busy bool, err error) {
	r := &request{commit: c, slot: s.id, number: s.number}
	r.numbers, r.shared = locksOf(p.store, c)
	sent, err := p.commits.Do(ctx, r)
	switch {
	case !sent:
		p.giveBack(s)
		return 0, false, false, callerOr(ctx, err)
	case r.unsent:
		return 0, false, true, nil
	case r.err != nil:
		done, err = p.failed(ctx, s, r.err)
		return 0, done, false, err
	case r.outcome == slotGone:
		return 0, false, false, nil // it was cleared away
	}
	s.number++
	if r.outcome == lockTaken {
		return 0, false, true, nil
	}
	p.giveBack(s)
	return r.version, r.outcome == committed, false, nil
}

// failed finds the outcome of a commit that was sent and failed with err.
func (p *slots) failed(ctx context.Context, s *slot, err error) (done bool, outcome error) {
	if isLost(err) {
		p.pools.doubt()
		return p.resolve(ctx, s, err)
	}
	p.giveBack(s)
	if isBusy(err) {
		return false, nil
	}
	return true, mapError(err)
}

const callCommit = "SELECT ogw_commit_v4($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"

// answerChanged is what ogw_commit_v4 returns if a read does not hold, or a lock is
// not free for who holds others.
const answerChanged = -1

// call is the one round trip of a commit by itself. It ends the snapshot too.
func (c *commit) call(ctx context.Context, from *source, s *slot) (answer int64, err error) {
	numbers, shared := locksOf(from.kv.store, c)
	batch := &pgx.Batch{}
	began := from.began
	if began {
		batch.Queue(rollback)
	}
	batch.Queue(callCommit, from.kv.store, numbers, shared, !from.held,
		append(c.readKeys, c.metKeys...), append(c.readVersions, c.metVersions...),
		c.rangeStarts, c.rangeEnds, c.rangeCounts, c.expectKeys, c.expectValues, c.setKeys, c.setValues, c.deleteKeys, s.id, s.number)
	from.began = false
	err = send(ctx, from.conn, batch, func(results pgx.BatchResults) error {
		if began {
			if _, err := results.Exec(); err != nil {
				return err
			}
		}
		return results.QueryRow().Scan(&answer)
	})
	return answer, err
}

// resolve finds the outcome of a commit that failed with cause, and makes it
// impossible if it has not happened yet.
func (p *slots) resolve(ctx context.Context, s *slot, cause error) (done bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTimeout)
	defer cancel()
	for attempt := 0; ; attempt++ {
		number, kind, err := p.fence(ctx, s)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return true, occ.Unknown(cause) // cleared away meanwhile
		case err == nil && number != s.number+1:
			return true, occ.Unknown(cause)
		case err == nil:
			s.number = number
			p.giveBack(s)
			return kind == byCommit, nil
		}
		if occ.Backoff(ctx, attempt) != nil {
			return true, occ.Unknown(cause)
		}
	}
}

// fence moves the slot unless a commit did, and returns how it stands then. It
// waits for a commit that runs on the server.
func (p *slots) fence(ctx context.Context, s *slot) (number int64, kind string, err error) {
	ctx, cancel := bounded(ctx, commitTimeout)
	defer cancel()
	err = p.pools.of(ctx).QueryRow(ctx, fenceSlot, p.store, s.id, s.number).Scan(&number, &kind)
	return number, kind, err
}

// take returns an idle slot or makes one, on from's connection, if it has one: a second
// one could be waited for by everybody at once.
func (p *slots) take(ctx context.Context, from *source) (*slot, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return s, nil
	}
	p.mu.Unlock()
	s := &slot{id: make([]byte, slotIDBytes)}
	_, _ = rand.Read(s.id) // never fails
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := from.connect(ctx); err != nil {
		return nil, err
	}
	if err := from.endSnapshot(ctx); err != nil {
		return nil, callerOr(from.ctx, err)
	}
	if _, err := from.conn.Exec(ctx, insertSlot, p.store, s.id); err != nil {
		return nil, callerOr(from.ctx, err)
	}
	return s, nil
}

func (p *slots) giveBack(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
}

// close clears the slots away; what cannot be is cleared a day later.
func (p *slots) close() {
	p.mu.Lock()
	ids := make([][]byte, len(p.idle))
	for i, s := range p.idle {
		ids[i] = s.id
	}
	p.idle = nil
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, _ = p.pools.of(ctx).Exec(ctx, deleteSlots, p.store, ids)
}

package session

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/cluster/pause"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

const (
	// maxPurges bounds the purges under way in a store.
	maxPurges = 64
	// purgePoll is between two looks for answers.
	purgePoll = BeatEvery / 8
	// purgeLimit bounds the work of one gateway for one purge.
	purgeLimit = time.Minute
	// purgeBatch is how many records of a purge are removed together.
	purgeBatch = 64
)

// Purged is what became of a purge at one gateway.
type Purged struct {
	record.Gateway
	record.PurgeAnswer
	Answered bool // in time
	Gone     bool // and with it all that it remembered
}

// Purge has the other gateways that serve drop path from what they remember, and returns
// what they answered within wait. The request stands in the store: each gateway learns of
// it with its next beat.
func (s *Session) Purge(ctx context.Context, path string, wait time.Duration) ([]Purged, error) {
	if s.lease == nil {
		return nil, nil
	}
	return s.lease.purge(ctx, path, wait)
}

func (l *Lease) purge(ctx context.Context, path string, wait time.Duration) (list []Purged, err error) {
	list, live, err := l.tidyPurges(ctx)
	switch {
	case err != nil:
		return nil, err
	case live >= maxPurges:
		return nil, fmt.Errorf("%w: %d purges are under way", fserr.ErrBusy, live)
	case len(list) == 0:
		return nil, nil
	}
	number, err := l.askPurge(ctx, path)
	defer func() { l.endPurge(ctx, number) }() // also if it may have been asked for
	if err != nil {
		return nil, err
	}
	for begun := l.clock(); ; {
		var missing bool
		if missing, err = l.purgeAnswers(ctx, number, list); err != nil || !missing || l.clock()-begun >= wait {
			break
		}
		if err = pause.For(ctx, purgePoll); err != nil {
			break
		}
	}
	return list, err
}

// endPurge removes a request and its answers, and what is left of such as could not be removed.
func (l *Lease) endPurge(ctx context.Context, number uint64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beatTimeout)
	defer cancel()
	l.asked.end(number)
	if _, _, err := l.tidyPurges(ctx); err != nil {
		l.log.Warn("the records of a purge are left to the next one", "err", err)
	}
}

// tidyPurges returns the others that serve, and how many purges are under way, and removes
// the records of those that are not any more.
func (l *Lease) tidyPurges(ctx context.Context) (list []Purged, live int, err error) {
	var stale [][]byte
	err = l.kv.View(ctx, func(r cluster.Reader) error {
		list, stale = nil, nil
		all, err := record.Gateways(r)
		if err != nil {
			return err
		}
		there := make(map[uint64]bool)
		for _, g := range all {
			there[g.ID] = true
			if g.ID != l.me.ID && g.Serves {
				list = append(list, Purged{Gateway: g})
			}
		}
		live, stale, err = l.stalePurges(r, there)
		return err
	})
	if err == nil {
		err = l.removePurges(ctx, stale)
	}
	return list, live, err
}

// stalePurges returns how many purges are under way, and the records of those of which
// the askers are not there any more, or do not wait.
func (l *Lease) stalePurges(r cluster.Reader, there map[uint64]bool) (live int, keys [][]byte, err error) {
	from, to := record.Table(record.TabPurge)
	over := false
	err = r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
		q, ok, err := record.DecodePurgeRequest(k, v)
		if err != nil {
			return err
		}
		if ok { // its answers follow it
			if over = !there[q.By] || q.By == l.me.ID && !l.asked.has(q.Number); !over {
				live++
			}
		}
		if over {
			keys = append(keys, bytes.Clone(k))
		}
		return nil
	})
	return live, keys, err
}

// askPurge stores the request, and returns its number, which endPurge ends, also after an error.
func (l *Lease) askPurge(ctx context.Context, path string) (number uint64, err error) {
	q := record.PurgeRequest{By: l.me.ID, Path: path}
	value, err := q.Encode()
	if err != nil {
		return 0, err
	}
	err = l.kv.Update(ctx, func(t cluster.Txn) error {
		l.asked.end(number) // of an attempt that failed
		number = 0
		if err := l.read(t); err != nil {
			return err
		}
		n, err := record.Counter(t, record.CounterPurge)
		if err != nil {
			return err
		}
		number = n + 1
		l.asked.begin(number) // before anybody can see it
		if err := record.SetCounter(t, record.CounterPurge, number); err != nil {
			return err
		}
		return t.Set(record.PurgeKey(number), value)
	})
	return number, err
}

// purgeAnswers looks for the answers that list lacks, and reports whether some are missing.
func (l *Lease) purgeAnswers(ctx context.Context, number uint64, list []Purged) (missing bool, err error) {
	err = l.kv.View(ctx, func(r cluster.Reader) error {
		missing = false
		keys := make([][]byte, 0, 2*len(list))
		for i := range list {
			keys = append(keys, record.PurgeAnswerKey(number, list[i].ID), record.FenceKey(list[i].ID))
		}
		values, err := r.GetMany(keys)
		if err != nil {
			return err
		}
		for i := range list {
			answer, fence := values[2*i], values[2*i+1]
			if answer != nil {
				if list[i].PurgeAnswer, err = record.DecodePurgeAnswer(answer); err != nil {
					return err
				}
			}
			list[i].Answered, list[i].Gone = answer != nil, answer == nil && fence == nil
			missing = missing || answer == nil && fence != nil
		}
		return nil
	})
	return missing, err
}

// removePurges removes records of purges: who answers later finds no request.
func (l *Lease) removePurges(ctx context.Context, keys [][]byte) error {
	for batch := range slices.Chunk(keys, purgeBatch) {
		err := l.kv.Update(ctx, func(t cluster.Txn) error {
			for _, key := range batch {
				if err := t.Delete(key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ServePurges does what other gateways ask for, until ctx ends: do drops a path and returns
// how many inodes it touched.
func (s *Session) ServePurges(ctx context.Context, do func(ctx context.Context, path string) (int, error)) {
	if s.lease == nil {
		return
	}
	l := s.lease
	for done := l.reads.served; ; {
		select {
		case <-ctx.Done():
			return
		case <-l.reads.asked:
		}
		var err error
		if done, err = l.servePurges(ctx, done, do); err != nil && ctx.Err() == nil {
			l.log.Warn("a purge that another gateway asked for fails, it is tried again", "err", err)
			_ = pause.For(ctx, BeatEvery) // ctx is looked at above
			l.reads.ask()
		}
	}
}

// servePurges serves the requests after number done, and returns that of the last.
func (l *Lease) servePurges(ctx context.Context, done uint64, do func(ctx context.Context, path string) (int, error)) (uint64, error) {
	var list []record.PurgeRequest
	_, to := record.Table(record.TabPurge)
	err := l.kv.View(ctx, func(r cluster.Reader) error {
		list = nil
		return r.Scan(record.PurgeKey(done+1), to, cluster.ScanOptions{}, func(k, v []byte) error {
			q, ok, err := record.DecodePurgeRequest(k, v)
			if ok {
				list = append(list, q)
			}
			return err
		})
	})
	if err != nil {
		return done, err
	}
	for i := range list {
		if q := &list[i]; q.By != l.me.ID {
			if err := l.servePurge(ctx, q, do); err != nil {
				return done, err
			}
		}
		done = list[i].Number
	}
	return done, nil
}

func (l *Lease) servePurge(ctx context.Context, q *record.PurgeRequest, do func(ctx context.Context, path string) (int, error)) error {
	bounded, cancel := context.WithTimeout(ctx, purgeLimit)
	n, err := do(bounded, q.Path)
	cancel()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	answer := record.PurgeAnswer{Inodes: n}
	if err != nil {
		answer.Error = err.Error()
	}
	value, err := answer.Encode()
	if err != nil {
		return err
	}
	return l.kv.Update(ctx, func(t cluster.Txn) error {
		if err := l.read(t); err != nil {
			return err
		}
		asked, err := t.Get(record.PurgeKey(q.Number))
		if err != nil || asked == nil { // nobody waits any more
			return err
		}
		return t.Set(record.PurgeAnswerKey(q.Number, l.me.ID), value)
	})
}

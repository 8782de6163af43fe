package sharedlocks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

const (
	// pollFast is between two looks at what waits, while something began to wait or was
	// granted less than pollRecent ago, pollSlow after that.
	pollFast   = 25 * time.Millisecond
	pollSlow   = 200 * time.Millisecond
	pollRecent = 5 * time.Second
	// pollBatch is how many files one look is about.
	pollBatch = 64
	// lateEvery is between two attempts at what is late.
	lateEvery = 500 * time.Millisecond
	// pollTimeout bounds one transaction of the poller.
	pollTimeout = 10 * time.Second
)

// rouse has the poller run. Under mu.
func (t *Table) rouse() {
	if t.polling || t.closed {
		return
	}
	t.polling = true
	t.wait.Go(t.poll)
}

// poll looks at what waits in this process, and is late, for as long as there is any.
func (t *Table) poll() {
	tried := time.Now()
	for {
		every := t.pace()
		select {
		case <-t.ctx.Done():
			return
		case <-time.After(every):
		}
		t.mu.Lock()
		if len(t.busy) == 0 {
			t.polling = false
			t.mu.Unlock()
			return
		}
		var waiting []glance
		var due []uint64
		for ino, f := range t.busy {
			if len(f.waiters) > 0 {
				waiting = append(waiting, glance{ino: ino, file: f, version: f.version})
			}
			if f.due() {
				due = append(due, ino)
			}
		}
		t.mu.Unlock()
		err := t.lookAll(waiting)
		if err == nil && len(due) > 0 && time.Since(tried) >= lateEvery {
			err = t.giveUpLate(due)
			tried = time.Now()
		}
		t.report(err)
	}
}

// due reports whether something is to be tried again. Under mu.
func (f *file) due() bool {
	return f.stale || slices.ContainsFunc(f.late, func(u *late) bool { return !u.applied || !f.doubt })
}

func (t *Table) pace() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.recent) < pollRecent {
		return pollFast
	}
	return pollSlow
}

// report logs a failure once until there is none.
func (t *Table) report(err error) {
	if err != nil && !t.failing && t.ctx.Err() == nil {
		t.cfg.Log.Error("what waits for locks cannot be looked at, it is tried again", "err", err)
	}
	t.failing = err != nil
}

// giveUpLate tries what is late again, each file for itself.
func (t *Table) giveUpLate(inos []uint64) (err error) {
	for _, ino := range inos {
		if e := t.refresh(ino, nil); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// refresh drops what the dead left in a file, of whom gone are known, grants what can be, and
// learns of it.
func (t *Table) refresh(ino uint64, gone []uint64) error {
	ctx, stop := context.WithTimeout(t.ctx, pollTimeout)
	defer stop()
	return t.update(ctx, ino, change{gone: gone})
}

// glance is what one look finds of a file.
type glance struct {
	ino     uint64
	file    *file
	version uint64 // of file, before the look
	locks   *record.FileLocks
	gone    []uint64 // gateways that vouch for something and are not there
	acts    bool     // there is something to do for anybody
}

func (t *Table) lookAll(list []glance) error {
	for batch := range slices.Chunk(list, pollBatch) {
		if err := t.look(batch); err != nil {
			return err
		}
	}
	return nil
}

// look finds out what became of those that wait.
func (t *Table) look(batch []glance) error {
	ctx, stop := context.WithTimeout(t.ctx, pollTimeout)
	defer stop()
	err := t.cfg.KV.Peek(ctx, func(r cluster.Reader) error { return glimpse(r, t.cfg.Gateway, batch) })
	if err != nil {
		return err
	}
	for i := range batch {
		g := &batch[i]
		if !g.acts && t.learn(g) {
			continue
		}
		if e := t.refresh(g.ino, g.gone); e != nil && !lasting(e) && err == nil {
			err = e
		}
	}
	return err
}

// glimpse reads a batch.
func glimpse(r cluster.Reader, me uint64, batch []glance) error {
	keys := make([][]byte, len(batch))
	for i := range batch {
		keys[i] = record.LockKey(batch[i].ino)
	}
	values, err := r.GetMany(keys)
	if err != nil {
		return err
	}
	there := map[uint64]bool{me: true, 0: true}
	var all []uint64
	for i, v := range values {
		batch[i].locks, err = record.DecodeFileLocks(v)
		if batch[i].acts = err != nil; err == nil { // else whoever asks for it is told
			all = append(all, gateways(batch[i].locks)...)
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(there)+len(all) > maxFences {
		there, err = present(r)
	} else {
		_, err = ask(r, there, all, nil)
	}
	if err != nil {
		return err
	}
	for i := range batch {
		l := batch[i].locks
		if l == nil {
			continue
		}
		batch[i].gone = missing(l, there)
		batch[i].acts = grantable(&l.File) || len(batch[i].gone) > 0 || adoptable(l) ||
			slices.ContainsFunc(l.Ended, func(e record.EndedWait) bool { return e.Gateway == me })
	}
	return nil
}

// adoptable reports whether a gateway of a version before granted a remote client something:
// it counts on the fence of who had it wait.
func adoptable(l *record.FileLocks) bool {
	for o, h := range l.Holders {
		if h.Gateway != 0 && o.Remote() {
			return true
		}
	}
	return false
}

// learn tells those that were granted, and returns false if the look is not new enough for
// that.
func (t *Table) learn(g *glance) bool {
	t.mu.Lock()
	f := t.files[g.ino]
	if f != g.file || f.version != g.version { // it may have been forgotten, and be another
		t.mu.Unlock()
		return true // who changed it learned
	}
	granted := false
	for n := range f.waiters {
		granted = granted || !slices.ContainsFunc(g.locks.Waiting, func(w lock.Waiter) bool { return w.Ticket == n })
	}
	if !granted {
		t.mu.Unlock()
		return true
	}
	t.recent = time.Now()
	select {
	case f.turn <- struct{}{}:
		f.users++
	default: // who has the turn may have begun before
		t.mu.Unlock()
		return false
	}
	list := t.absorb(f, g.locks, nil)
	t.mu.Unlock()
	t.leave(f)
	tell(list)
	return true
}

// sweepPage is how many records one look of Sweep is about.
const sweepPage = 1000

// Sweep drops what gateways left that are gone, in files that nobody locks any more. One
// does it for all. A file where that fails does not keep it from the others, unless the store
// does not answer; the error is that of the first one.
func (t *Table) Sweep(ctx context.Context) error {
	var bad failures
	from, to := record.Table(record.TabLock)
	for from != nil {
		var left []glance
		var next []byte
		err := t.cfg.KV.View(ctx, func(r cluster.Reader) error {
			left, next = nil, nil
			there, err := present(r)
			if err != nil {
				return err
			}
			n := 0
			return r.Scan(from, to, cluster.ScanOptions{Limit: sweepPage}, func(k, v []byte) error {
				if n++; n == sweepPage {
					next = append(slices.Clone(k), 0)
				}
				f, err := record.DecodeFileLocks(v)
				if err != nil {
					return nil //nolint:nilerr // Check reports it
				}
				if gone := missing(f, there); grantable(&f.File) || len(gone) > 0 {
					left = append(left, glance{ino: uint64(record.InoOfKey(k)), gone: gone})
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		for _, g := range left {
			switch err := t.update(ctx, g.ino, change{gone: g.gone}); {
			case err == nil:
			case unknown(err):
				return err
			default:
				bad.add(fmt.Errorf("locks of inode %d: %w", g.ino, err))
			}
		}
		from = next
	}
	return bad.err()
}

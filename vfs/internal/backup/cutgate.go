package backup

import (
	"context"
	"sync"
	"time"
)

const (
	// MaxWait bounds how long writers wait for the instant of a backup. The
	// snapshot itself takes less than the rest to 100 ms.
	MaxWait = 75 * time.Millisecond
	// cutTries is how often an instant is tried in which no write waits in a
	// buffer. A store under load has one within a few tries, or its medium is
	// so slow that it has none.
	cutTries = 20
	// cutTime is how long another try is begun: it bounds the tries where each
	// flush takes seconds.
	cutTime = 30 * time.Second
)

// Gate finds an instant at which the store holds all that was written. Other
// changes are transactions, and in the store when they are seen; what is written
// through Files waits in buffers. So for an instant these writers wait: the
// buffers are flushed twice, the second time behind a closed gate, which finds
// nothing but what came during the first.
type Gate struct {
	// A writer passes with its bytes in hand, and never waits for anything
	// while it passes.
	pass sync.RWMutex
}

// Enter reports whether a writer passes, until it leaves. It never waits.
func (g *Gate) Enter() bool { return g.pass.TryRLock() }

// Leave ends what Enter began.
func (g *Gate) Leave() { g.pass.RUnlock() }

// Await returns when the gate was open. A writer holds no lock here.
func (g *Gate) Await() {
	g.pass.RLock()
	g.pass.RUnlock() //nolint:staticcheck // to wait is all there is to do
}

// take calls snapshot at such an instant, if there is one (settled), else at any.
// It returns the longest that a writer can have waited.
func (g *Gate) take(ctx context.Context, flush func(context.Context) error, snapshot func() error) (wait time.Duration, settled bool, err error) {
	start := time.Now()
	for try := 0; try < cutTries && time.Since(start) < cutTime; try++ {
		if err := flush(ctx); err != nil { // of a store that takes no writes, what it holds is saved
			break
		}
		begun := time.Now()
		g.pass.Lock()
		flushed := make(chan error, 1)
		go func() { flushed <- flush(ctx) }()
		limit := time.NewTimer(MaxWait)
		select {
		case err = <-flushed:
			settled = err == nil
			err = snapshot()
			g.pass.Unlock()
			wait = max(wait, time.Since(begun))
			limit.Stop()
			return wait, settled, err
		case <-limit.C:
			g.pass.Unlock()
			wait = max(wait, time.Since(begun))
			<-flushed //nolint:errcheck // the next flush meets its error again
			if err := ctx.Err(); err != nil {
				return wait, false, err
			}
		}
	}
	return wait, false, snapshot()
}

package occ

import (
	"context"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// turnStripes share all keys: two keys of one stripe wait for each other.
	turnStripes = 1024
	// turnWait bounds the wait for a turn. Who waited for so long goes on without: the
	// one whose turn it is may be stuck, or wait itself for who waits.
	turnWait = time.Second
)

// Turns are an order among the transactions of one client that write the same keys, for
// an engine whose server refuses late what is refused. A transaction that was refused
// because of a key waits for its turn there, and others leave the key alone until it
// is through. Those of other clients do not know of it. It is safe for concurrent use.
type Turns struct {
	seed    maphash.Seed
	stripes [turnStripes]turnStripe
}

type turnStripe struct {
	claims atomic.Int32  // by who has the turn, and who waits for it
	turn   chan struct{} // holds one while somebody has it
}

// NewTurns returns Turns that nobody has.
func NewTurns() *Turns {
	t := &Turns{seed: maphash.MakeSeed()}
	for i := range t.stripes {
		t.stripes[i].turn = make(chan struct{}, 1)
	}
	return t
}

func (t *Turns) stripe(key []byte) int { return int(maphash.Bytes(t.seed, key) % turnStripes) }

// Turn is what one transaction has of Turns. It is for one goroutine. A nil Turn has
// none, and respects none.
type Turn struct {
	turns *Turns
	held  []int // stripes, sorted
	over  bool  // it waited for too long once
}

// Turn returns one that has nothing.
func (t *Turns) Turn() *Turn { return &Turn{turns: t} }

// Barred returns those of keys that are somebody else's turn.
func (t *Turn) Barred(keys [][]byte) (barred [][]byte) {
	if t == nil || t.over {
		return nil
	}
	for _, key := range keys {
		if s := t.turns.stripe(key); t.turns.stripes[s].claims.Load() > 0 && !slices.Contains(t.held, s) {
			barred = append(barred, key)
		}
	}
	return barred
}

// Wait waits until it is t's turn at keys, and at those of earlier calls; or for
// turnWait, or until ctx is done.
func (t *Turn) Wait(ctx context.Context, keys [][]byte) {
	if t == nil || t.over {
		return
	}
	want := slices.Clone(t.held)
	for _, key := range keys {
		if s := t.turns.stripe(key); !slices.Contains(want, s) {
			want = append(want, s)
		}
	}
	if len(want) == len(t.held) {
		return
	}
	for _, s := range want {
		t.turns.stripes[s].claims.Add(1)
	}
	t.Leave() // all are taken in one order, so that no two wait for each other
	slices.Sort(want)
	n := t.turns.take(ctx, want)
	t.held = want[:n]
	if n < len(want) {
		for _, s := range want[n:] {
			t.turns.stripes[s].claims.Add(-1)
		}
		t.Leave()
		t.over = true
	}
}

// take takes the turns of stripes in their order, and returns how many it came to.
func (t *Turns) take(ctx context.Context, stripes []int) int {
	ctx, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	for i, s := range stripes {
		select {
		case t.stripes[s].turn <- struct{}{}:
		case <-ctx.Done():
			return i
		}
	}
	return len(stripes)
}

// Leave gives up what t has.
func (t *Turn) Leave() {
	if t == nil {
		return
	}
	for _, s := range t.held {
		<-t.turns.stripes[s].turn
		t.turns.stripes[s].claims.Add(-1)
	}
	t.held = nil
}

// Package guess slows down who guesses tokens, passwords and signatures.
//
//	door ── Try ───── verify ─┬─ Right
//	        (may it?)         └─ Wrong
//
// What is wrong counts for the account that was tried and for the client as a
// whole. Some mistakes are free; from then on each one closes the door for a
// time that doubles, and what comes meanwhile is refused without a look at it:
// nothing is held for it, no connection, no slot.
//
// # Invariants
//
// A client closes doors for itself only: another address is never affected. Who
// shares an address with a guesser, and proved within provenFor to have an
// account, is not shut out by guesses at other accounts; guesses at that very
// account leave spareRate attempts a second between them.
//
// Memory is bounded by maxEntries, whatever names are tried.
package guess

import (
	"container/list"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"ogw/vfs/clients/subscriber"
)

const (
	// freeAccount mistakes with one account cost nothing: a script with an
	// old password notices, and its owner can correct it at once.
	freeAccount = 20
	// freeClient mistakes with all accounts of an address: many people may
	// have it.
	freeClient = 100
	// firstPause doubles with every mistake up to maxPause. At that, a day has
	// 1440 guesses.
	firstPause = time.Second
	maxPause   = time.Minute
	// forgetAfter a time without mistakes they are forgotten.
	forgetAfter = 15 * time.Minute
	// provenFor is how long the right password stands for a client.
	provenFor = time.Hour
	// provenStep is how old that knowledge gets before it is written again.
	provenStep = time.Minute
	// spareRate attempts a second stay for who proved an account that is
	// guessed at from the same address.
	spareRate = 20
	// maxEntries bounds the memory, at some 200 bytes each; the one unused for
	// longest goes first.
	maxEntries = 16384
)

// ErrThrottled refuses an attempt after too many wrong ones.
var ErrThrottled = errors.New("too many wrong attempts")

// Throttled is ErrThrottled with the time to wait.
type Throttled struct{ After time.Duration }

// Error implements error.
func (t *Throttled) Error() string {
	return fmt.Sprintf("%v; try again in %d s", ErrThrottled, t.Seconds())
}

// Unwrap makes it an ErrThrottled.
func (t *Throttled) Unwrap() error { return ErrThrottled }

// Seconds is the time to wait, for Retry-After.
func (t *Throttled) Seconds() int { return int((t.After + time.Second - 1) / time.Second) }

// Guard counts. A nil Guard lets everything pass.
type Guard struct {
	now  func() time.Time
	seed maphash.Seed

	mu      sync.Mutex
	entries map[key]*list.Element // of *entry
	order   list.List             // the last used first
}

// key is an account as tried by a client.
type key struct {
	client subscriber.Key
	// account is of the door and its name there, hashed, because the name is the
	// client's to choose; allAccounts is the client as a whole.
	account uint64
}

// allAccounts is no hash but for one in 2^64 names, whose mistakes count twice.
const allAccounts = 0

type entry struct {
	key
	wrong  int
	last   time.Time // of the mistakes
	until  time.Time // nothing is tried before
	proven time.Time // when it was right
	spare  float64   // attempts that are left in spite of until
	filled time.Time // spare is as of
}

// New returns a Guard.
func New() *Guard {
	return &Guard{now: time.Now, seed: maphash.MakeSeed(), entries: map[key]*list.Element{}}
}

// Attempt is one to be reported. The zero value reports to nobody.
type Attempt struct {
	g   *Guard
	key key
	// asIs keeps the entry unchanged if it was right.
	asIs   bool
	proven bool
}

// Proven reports whether the client proved within provenFor to have the account.
func (a Attempt) Proven() bool { return a.proven }

// Try begins an attempt of client at an account of a door (never ""); it
// returns a Throttled if that may not be tried now.
func (g *Guard) Try(client subscriber.Key, door, account string) (Attempt, error) {
	if g == nil {
		return Attempt{}, nil
	}
	a := Attempt{g: g, key: key{client, g.hash(door, account)}}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	e := g.find(a.key)
	proven := e != nil && now.Sub(e.proven) < provenFor
	a.proven = proven
	if e != nil && now.Before(e.until) {
		if proven && e.take(now) {
			return a, nil
		}
		return Attempt{}, &Throttled{e.until.Sub(now)}
	}
	if proven {
		a.asIs = e.wrong == 0 && now.Sub(e.proven) < provenStep
		return a, nil
	}
	if all := g.find(key{client, allAccounts}); all != nil && now.Before(all.until) {
		return Attempt{}, &Throttled{all.until.Sub(now)}
	}
	return a, nil
}

func (g *Guard) hash(door, account string) uint64 {
	const odd = 0x9e3779b97f4a7c15 // else the doors "a" and "b" with the accounts "b" and "a" are one
	return maphash.String(g.seed, door)*odd + maphash.String(g.seed, account)
}

// Wrong counts the attempt as a wrong one.
func (a Attempt) Wrong() {
	g := a.g
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.use(a.key).fail(now, freeAccount)
	g.use(key{a.key.client, allAccounts}).fail(now, freeClient)
}

// Right remembers that the client has the account.
func (a Attempt) Right() {
	g := a.g
	if g == nil || a.asIs {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.use(a.key)
	e.proven = g.now()
	if now := e.proven; !now.Before(e.until) {
		e.wrong = 0
	}
}

// find returns an entry, or nil. mu is held.
func (g *Guard) find(k key) *entry {
	el, ok := g.entries[k]
	if !ok {
		return nil
	}
	g.order.MoveToFront(el)
	return el.Value.(*entry)
}

// use returns an entry, a new one in the place of the oldest if there are
// too many. mu is held.
func (g *Guard) use(k key) *entry {
	if e := g.find(k); e != nil {
		return e
	}
	if len(g.entries) >= maxEntries {
		oldest := g.order.Back()
		delete(g.entries, oldest.Value.(*entry).key)
		g.order.Remove(oldest)
	}
	e := &entry{key: k}
	g.entries[k] = g.order.PushFront(e)
	return e
}

// fail counts a mistake and closes the door if there were too many.
func (e *entry) fail(now time.Time, free int) {
	if now.Sub(e.last) > forgetAfter {
		e.wrong = 0
	}
	e.wrong++
	e.last = now
	if e.wrong <= free {
		return
	}
	pause := maxPause
	if n := e.wrong - free - 1; n < 6 { // 1, 2, 4 ... 32 s
		pause = firstPause << n
	}
	e.until = now.Add(pause)
}

// take reports whether a spare attempt is left.
func (e *entry) take(now time.Time) bool {
	e.spare = min(spareRate, e.spare+spareRate*now.Sub(e.filled).Seconds())
	e.filled = now
	if e.spare < 1 {
		return false
	}
	e.spare--
	return true
}

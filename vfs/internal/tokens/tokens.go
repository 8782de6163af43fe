// Package tokens knows which changes were made already, for requests that a client
// sends again until they are answered.
package tokens

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/session"
)

// ErrDone means that a change asked for under a Token was made already, by a
// process that could not tell: nothing was done now.
var ErrDone = errors.New("vfs: done already, as this request was sent before")

// Token identifies one request of a client that sends it again, unchanged,
// until it is answered. The first change made in a context with a token
// leaves a record of the token in its own transaction. If the process dies
// between that and the answer, the next one finds the record and returns
// ErrDone instead of, for example, ErrExist for the directory that the
// request made itself.
//
// A process recognises the requests that it answered itself by other means:
// its own records say nothing. A Token is for one operation.
type Token struct {
	// ID is a digest of all that makes the request what it is, sender and
	// transaction number included.
	ID   [16]byte
	used bool
}

const (
	// slots bounds the records; each takes the place of an earlier one
	// in the same slot. It is far above the requests that are on their way at
	// the time of a crash.
	slots = 1 << 16
	// ttl bounds how long a record is valid: above the time that servers are away while
	// clients wait and send again, and what clocks of two machines differ by; below the
	// time after which transaction numbers come round, or a client begins with the same
	// ones again each day.
	ttl = int64(20 * 60 * 60 * 1e9)
)

type tokenKey struct{}

// WithToken returns a context for one operation that must not happen twice.
func WithToken(ctx context.Context, t *Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, t)
}

// Take returns the unused token of ctx, nil if there is none. What the
// operation does besides, or afterwards, goes without.
func Take(ctx context.Context) *Token {
	t, _ := ctx.Value(tokenKey{}).(*Token)
	if t == nil || t.used {
		return nil
	}
	t.used = true
	return t
}

// Again returns ctx for one more attempt at what t, which may be nil, was taken
// for.
func Again(ctx context.Context, t *Token) context.Context {
	if t == nil {
		return ctx
	}
	return WithToken(ctx, &Token{ID: t.ID})
}

func (t *Token) key() []byte {
	return record.OnceKey(binary.BigEndian.Uint16(t.ID[:]) & (slots - 1))
}

// Book knows the records of other processes. Where this process alone
// has the store, they are those of the processes before it: it reads them
// Once, and then no change has to look.
type Book struct {
	kv      cluster.KV
	session *session.Session

	loaded atomic.Bool
	mu     sync.Mutex
	before map[[16]byte]int64 // time of the record, Unix nanoseconds; fixed once loaded
}

// NewBook returns the book of the process whose session s is.
func NewBook(kv cluster.KV, s *session.Session) *Book { return &Book{kv: kv, session: s} }

// Once runs fn unless its token was used by another process.
func (b *Book) Once(t cluster.Txn, token *Token, nowNS int64, fn func(t cluster.Txn) error) error {
	if token == nil {
		return fn(t)
	}
	done, err := b.done(t, token, nowNS)
	if err != nil {
		return err
	}
	if done {
		return ErrDone
	}
	if err := fn(t); err != nil {
		return err
	}
	return t.Set(token.key(), token.record(b.session.ID(), nowNS))
}

func (b *Book) done(r cluster.Reader, token *Token, nowNS int64) (bool, error) {
	if !b.session.Alone() {
		old, err := r.Get(token.key())
		return token.doneIn(old, b.session.ID(), nowNS), err
	}
	if !b.loaded.Load() {
		if err := b.load(nowNS); err != nil {
			return false, err
		}
	}
	at, ok := b.before[token.ID]
	return ok && nowNS-at < ttl, nil
}

// load reads the records. Those that this process writes meanwhile are its
// own, and left out.
func (b *Book) load(nowNS int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.loaded.Load() {
		return nil
	}
	b.before = make(map[[16]byte]int64)
	from, to := record.Table(record.TabOnce)
	err := b.kv.View(context.Background(), func(r cluster.Reader) error {
		clear(b.before)
		return r.Scan(from, to, cluster.ScanOptions{}, func(_, v []byte) error {
			done, ok := record.DecodeDone(v)
			if t := (Token{ID: done.ID}); ok && t.doneIn(v, b.session.ID(), nowNS) {
				b.before[done.ID] = done.TimeNS
			}
			return nil
		})
	})
	b.loaded.Store(err == nil)
	return err
}

func (t *Token) record(process uint64, nowNS int64) []byte {
	done := record.Done{ID: t.ID, Process: process, TimeNS: nowNS}
	return done.Encode()
}

// doneIn reports whether a stored record says that another process did it.
func (t *Token) doneIn(b []byte, process uint64, nowNS int64) bool {
	done, ok := record.DecodeDone(b)
	return ok && done.ID == t.ID && done.Process != process && nowNS-done.TimeNS < ttl
}

package backup

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// losesAnswers stores what is put under the name of the lock, and loses the answers of the
// next ones.
type losesAnswers struct {
	door         http.Handler
	next, stored atomic.Int64
}

func (l *losesAnswers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/"+lockName) {
		l.door.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	l.door.ServeHTTP(answer, r)
	if answer.Code == http.StatusOK {
		l.stored.Add(1)
		if l.next.Add(-1) >= 0 {
			panic(http.ErrAbortHandler)
		}
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// A beat that was stored, and is sent again because its answer was lost, is the holder's own.
func TestBeatWhoseAnswerWasLost(t *testing.T) {
	var door losesAnswers
	b := testBucketBehind(t, func(inner http.Handler) http.Handler {
		door.door = inner
		return &door
	})
	b.beat = 10 * time.Millisecond
	locked, lock, err := b.Lock(t.Context(), NewHolder("backup"))
	if err != nil {
		t.Fatal(err)
	}
	door.next.Store(1)
	for deadline := time.Now().Add(30 * time.Second); door.next.Load() > -3; time.Sleep(time.Millisecond) {
		if locked.Err() != nil || time.Now().After(deadline) {
			t.Fatalf("%d beats were stored: %v", door.stored.Load(), context.Cause(locked))
		}
	}
	if err := lock.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	lock.Release()
	if _, err := b.Get(t.Context(), lockName, 0, -1); !errors.Is(err, ErrNotExist) {
		t.Errorf("the lock after its release: %v", err)
	}
}

// A beat that was stored while its holder gave up waiting is not another's lock.
func TestBeatThatNobodyWaitedFor(t *testing.T) {
	b := testBucket(t)
	b.beat = time.Hour
	_, lock, err := b.Lock(t.Context(), NewHolder("backup"))
	if err != nil {
		t.Fatal(err)
	}
	l := lock.(*s3Lock)
	who := l.who
	who.Beat++
	if _, err := b.writeLock(t.Context(), who, l.etag); err != nil {
		t.Fatal(err)
	}
	l.who.Beat++ // that one is known to have been sent
	if err := lock.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	lock.Release()
	if _, err := b.Get(t.Context(), lockName, 0, -1); !errors.Is(err, ErrNotExist) {
		t.Errorf("the lock after its release: %v", err)
	}
}

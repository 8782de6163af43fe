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

// suspended stands still around the first write of a name that begins so, while others
// use the repository.
type suspended struct {
	Storage
	prefix string
	after  bool
	others func()
}

func (s *suspended) Put(ctx context.Context, name string, data []byte, replace bool) error {
	others := func() {}
	if s.others != nil && strings.HasPrefix(name, s.prefix) {
		others, s.others = s.others, nil
	}
	if !s.after {
		others()
	}
	err := s.Storage.Put(ctx, name, data, replace)
	if s.after {
		others()
	}
	return err
}

func quiet(b *S3) *S3 {
	b.beat = time.Hour // a machine that stands still sends none
	return b
}

// otherMachine takes the lock away, for which time has passed.
func otherMachine(b *S3) *S3 {
	other := *b
	other.stale = 0
	return &other
}

// A backup that stood still for so long that another process took the lock, and removed
// what it knew nothing of, publishes nothing.
func TestNothingIsPublishedWithoutTheLock(t *testing.T) {
	for name, at := range map[string]*suspended{
		"before the snapshot": {prefix: "catalogs/", after: true},
		"at the snapshot":     {prefix: snapshotDir},
	} {
		t.Run(name, func(t *testing.T) {
			s, b := newStore(t), quiet(testBucket(t))
			s.putText("f", strings.Repeat("x", 100_000))
			first, second := s.mustBackup(b), s.mustBackup(b)
			s.putText("g", strings.Repeat("y", 100_000))
			at.Storage = b
			at.others = func() {
				if _, err := Remove(t.Context(), &Repository{Storage: otherMachine(b)}, []string{first.ID}); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.backup(at); !errors.Is(err, ErrLockLost) {
				t.Errorf("a backup without the lock: %v", err)
			}
			repo := &Repository{Storage: b}
			list, bad, err := repo.Snapshots(t.Context())
			if err != nil || bad != nil || len(list) != 1 || list[0].ID != second.ID {
				t.Errorf("%d snapshots: %v, %v", len(list), bad, err)
			}
			for _, snap := range list {
				if _, err := Verify(t.Context(), repo, snap, nil); err != nil {
					t.Errorf("%s: %v", snap.ID, err)
				}
			}
			snap := s.mustBackup(b)
			wantRestored(t, b, snap.ID, s.files)
		})
	}
}

// A removal that stood still for so long that another process made a backup removes
// nothing of it.
func TestNothingIsPrunedWithoutTheLock(t *testing.T) {
	s, b := newStore(t), quiet(testBucket(t))
	s.putText("f", strings.Repeat("x", 100_000))
	first := s.mustBackup(b)
	s.mustBackup(b)
	at := &listing{Storage: b, prefix: "catalogs/"}
	var third *Snapshot
	at.others = func() {
		s.putText("g", strings.Repeat("y", 100_000))
		third = s.mustBackup(otherMachine(b))
	}
	if _, err := Remove(t.Context(), &Repository{Storage: at}, []string{first.ID}); !errors.Is(err, ErrLockLost) {
		t.Errorf("a removal without the lock: %v", err)
	}
	wantRestored(t, b, third.ID, s.files)
}

// listing stands still before the first list of a prefix.
type listing struct {
	Storage
	prefix string
	others func()
}

func (l *listing) List(ctx context.Context, prefix string, fn func(Object) error) error {
	if others := l.others; others != nil && prefix == l.prefix {
		l.others = nil
		others()
	}
	return l.Storage.List(ctx, prefix, fn)
}

// Who lost the lock does not release that of the next holder.
func TestReleaseOfALostLock(t *testing.T) {
	b := quiet(testBucket(t))
	_, lock, err := b.Lock(t.Context(), NewHolder("backup"))
	if err != nil {
		t.Fatal(err)
	}
	_, next, err := otherMachine(b).Lock(t.Context(), NewHolder("prune"))
	if err != nil {
		t.Fatal(err)
	}
	lock.Release()
	if err := next.Renew(t.Context()); err != nil {
		t.Errorf("the lock of the next holder: %v", err)
	}
	next.Release()
}

package occ

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func keysOf(names ...string) (keys [][]byte) {
	for _, n := range names {
		keys = append(keys, []byte(n))
	}
	return keys
}

// A key is barred to others from when somebody waits for it until the last one left.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		first, second, other := turns.Turn(), turns.Turn(), turns.Turn()
		first.Wait(t.Context(), keysOf("a"))
		through := false
		go func() {
			second.Wait(t.Context(), keysOf("a"))
			through = true
		}()
		synctest.Wait()
		if through || len(other.Barred(keysOf("a"))) != 1 || len(first.Barred(keysOf("a"))) != 0 {
			t.Errorf("the second is through: %v; barred to others %q, to who has it %q", through, other.Barred(keysOf("a")), first.Barred(keysOf("a")))
		}
		first.Leave()
		synctest.Wait()
		if !through || len(first.Barred(keysOf("a"))) != 1 {
			t.Error("the turn did not go to who waited")
		}
		second.Leave()
		if b := other.Barred(keysOf("a", "b")); len(b) != 0 {
			t.Errorf("%q are barred, and nobody has them", b)
		}
	})
}

// Who waits for more keeps what it had, in an order that no two wait for each other.
func TestTurnsOfMany(t *testing.T) {
	turns := NewTurns()
	var wg sync.WaitGroup
	count := map[string]int{}
	begin := time.Now()
	for i := range 8 {
		wg.Go(func() {
			a, b := fmt.Sprint("key", i%3), fmt.Sprint("key", (i+1)%3)
			for range 200 {
				turn := turns.Turn()
				turn.Wait(t.Context(), keysOf(a))
				turn.Wait(t.Context(), keysOf(b, a))
				if turn.over {
					t.Error("it waited too long")
				}
				if a == "key0" || b == "key0" {
					count["key0"]++ // the race detector sees two at once
				}
				turn.Leave()
			}
		})
	}
	wg.Wait()
	t.Logf("%v, %d times", time.Since(begin), count["key0"])
}

// Nobody waits for ever, and who gave up leaves nothing behind.
func TestTurnsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		stuck, late, left := turns.Turn(), turns.Turn(), turns.Turn()
		stuck.Wait(t.Context(), keysOf("a"))
		begin := time.Now()
		late.Wait(t.Context(), keysOf("b", "a"))
		if took := time.Since(begin); took != turnWait || len(late.Barred(keysOf("a"))) != 0 {
			t.Errorf("it waited for %v, and respects %q", took, late.Barred(keysOf("a")))
		}
		ended, end := context.WithCancel(t.Context())
		end()
		left.Wait(ended, keysOf("a"))
		late.Leave()
		stuck.Leave()
		if b := turns.Turn().Barred(keysOf("a", "b")); len(b) != 0 {
			t.Errorf("%q are barred after all have left", b)
		}
		var none *Turn
		none.Wait(t.Context(), keysOf("a"))
		none.Leave()
		if len(none.Barred(keysOf("a"))) != 0 {
			t.Error("what respects no turn was barred")
		}
	})
}

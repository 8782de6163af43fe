package lock

import (
	"errors"
	"fmt"
	"testing"
)

// TestAccounts: clients of one account have one part, and leave others theirs.
func TestAccounts(t *testing.T) {
	m := New(8 * minClientLocks)
	ino := uint64(0)
	fill := func(client string) (n int) {
		for ; ; n++ {
			ino++
			err := m.TryLock(bg, ino, Range, Lock{Owner: Owner{Client: client, ID: "1"}, End: EOF, Type: Exclusive})
			if errors.Is(err, ErrNoLocks) {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	total := 0
	for i := range 10 {
		client := fmt.Sprint("mallory ", i)
		m.SetAccount(client, "mallory")
		total += fill(client)
	}
	if total < 3*minClientLocks || total > 4*minClientLocks {
		t.Errorf("ten names of one client hold %d of %d", total, 8*minClientLocks)
	}
	for i := range 3 {
		if n := fill(fmt.Sprint("other ", i)); n < minClientLocks-2 {
			t.Errorf("number %d gets %d", i, n)
		}
	}
	for i := range 10 {
		m.ReleaseClient(fmt.Sprint("mallory ", i))
		m.SetAccount(fmt.Sprint("mallory ", i), "")
	}
	if len(m.tally.account) != 0 || m.tally.parts["mallory"] != 0 || len(m.tally.parts) != 3 {
		t.Errorf("left: %v %v", m.tally.account, m.tally.parts)
	}
}

package lock

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// costLimit is far above what is measured here, and far below what the square of the number
// of locks would cost.
const costLimit = time.Second

// All that a client with many ranges holds goes in one pass.
func TestReleaseClientCost(t *testing.T) {
	for _, journal := range []bool{false, true} {
		m, o, told := New(0), Owner{"c", "1"}, 0
		if journal {
			m.SetJournal("c", func(uint64, Space, []Lock) { told++ })
		}
		f := m.fileOf(1)
		const ranges = 100_000
		for i := range uint64(ranges) {
			f.Held[Range] = append(f.Held[Range], Lock{Owner: o, Start: 2 * i, End: 2 * i})
		}
		m.tally.Add("c", ranges)
		begin := time.Now()
		m.ReleaseClient("c")
		if took := time.Since(begin); took > costLimit || m.Count() != 0 || told > 1 {
			t.Errorf("with a journal %v: %v, %d locks are left, told %d times", journal, took, m.Count(), told)
		}
	}
}

// A request that may close a cycle asks of each file once what waits there.
func TestDeadlockCost(t *testing.T) {
	bg, m := context.Background(), New(0)
	lockAll := func(ino uint64, o Owner, typ Type) (waiting bool) {
		_, waiting, err := m.LockFunc(bg, ino, Range, Lock{Owner: o, Type: typ, End: EOF}, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		return waiting
	}
	lockAll(2, Owner{"x", "x"}, Exclusive)
	for i := range 1000 {
		o := Owner{"c", fmt.Sprint(i)}
		if lockAll(1, o, Shared) || !lockAll(2, o, Exclusive) {
			t.Fatal("it is not as it should be")
		}
	}
	begin := time.Now()
	if !lockAll(1, Owner{"y", "y"}, Exclusive) {
		t.Error("it is granted")
	}
	if took := time.Since(begin); took > costLimit {
		t.Errorf("%v for one request", took)
	}
}

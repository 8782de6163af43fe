package record

import (
	"context"
	"slices"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
)

// What was stored late is looked for from the first number on that may have been its, unless
// numbers were skipped since: those before are left alone.
func TestSweepAgain(t *testing.T) {
	names := []string{CounterNumber, CounterSwept, CounterLeft, CounterLate}
	for _, x := range []struct {
		about         string
		before, after []uint64
		skip          bool
	}{
		{"swept", []uint64{9000, 9000, 9000, 0}, []uint64{9001, 500, 9001, 1}, false},
		{"being swept", []uint64{9000, 400, 9000, 3}, []uint64{9001, 400, 9001, 4}, false},
		{"no number was ever taken", []uint64{0, 0, 0, 0}, []uint64{0, 0, 0, 0}, false},
		{"restored", []uint64{300, 200, 250, 0}, []uint64{300, 300, 250, 0}, true},
	} {
		t.Run(x.about, func(t *testing.T) {
			ctx, c := context.Background(), mem.New(mem.Options{})
			defer c.Close() //nolint:errcheck // of a test
			var got []uint64
			err := c.KV.Update(ctx, func(t cluster.Txn) error {
				for i, name := range names {
					if err := SetCounter(t, name, x.before[i]); err != nil {
						return err
					}
				}
				if x.skip {
					if err := SkipNumbers(t); err != nil {
						return err
					}
				}
				if err := SweepAgain(t, 500); err != nil {
					return err
				}
				var err error
				if got, err = Counters(t, names...); err != nil || !x.skip {
					return err
				}
				skipped, err := Counter(t, CounterSkipped)
				got[0], got[1] = got[0]-skipped, got[1]-skipped
				return err
			})
			if err != nil || !slices.Equal(got, x.after) {
				t.Errorf("%v is %v, want %v: %v", names, got, x.after, err)
			}
		})
	}
}

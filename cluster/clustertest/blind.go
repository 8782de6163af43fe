package clustertest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"ogw/cluster"
)

// testBlind: many set one pair without having read it, together with pairs of their own. Each
// commits; what the pair has afterwards is what one of them set, for all who read it however they
// do; and what was refused is never there.
func testBlind(t *testing.T, a, b cluster.KV) {
	const workers, rounds = 24, 25
	shared, never := []byte("blind"), []byte("never")
	for round := range rounds {
		value := func(w int) []byte { return fmt.Appendf(nil, "%d of %d", w, round) }
		own := func(w int) []byte { return fmt.Appendf(nil, "own/%d", w) }
		var wg sync.WaitGroup
		for w := range workers {
			kv := [2]cluster.KV{a, b}[w/8%2]
			wg.Go(func() {
				runs := 0
				err := kv.Update(ctx, func(txn cluster.Txn) error {
					if w%6 == 5 { // is refused
						if runs++; runs > refusedRuns {
							return errRefused
						}
						return errors.Join(txn.Expect(never, never), txn.Set(shared, []byte("refused")))
					}
					if w%6 == 4 { // conflicts with others of its kind
						if _, err := txn.Get([]byte("hot")); err != nil {
							return err
						}
						if err := txn.Set([]byte("hot"), value(w)); err != nil {
							return err
						}
					}
					return errors.Join(txn.Set(shared, value(w)), txn.Set(own(w), value(w)))
				})
				if refused := errors.Is(err, errRefused); refused != (w%6 == 5) || err != nil && !refused {
					t.Errorf("round %d, %d: %v", round, w, err)
				}
			})
		}
		wg.Wait()
		var first []byte
		for name, read := range map[string]func(func(cluster.Reader) error) error{
			"a.View": func(fn func(cluster.Reader) error) error { return a.View(ctx, fn) },
			"a.Peek": func(fn func(cluster.Reader) error) error { return a.Peek(ctx, fn) },
			"b.View": func(fn func(cluster.Reader) error) error { return b.View(ctx, fn) },
			"b.Peek": func(fn func(cluster.Reader) error) error { return b.Peek(ctx, fn) },
		} {
			var last []byte // of the run that counts
			err := read(func(r cluster.Reader) error {
				got, err := r.Get(shared)
				if err != nil {
					return err
				}
				last = bytes.Clone(got)
				var who, in int
				if _, err := fmt.Sscanf(string(got), "%d of %d", &who, &in); err != nil || in != round {
					return fmt.Errorf("the pair has %q", got)
				}
				for w := range workers {
					if w%6 == 5 {
						continue
					}
					if v, err := r.Get(own(w)); err != nil || !bytes.Equal(v, value(w)) {
						return fmt.Errorf("%s is %q, %w", own(w), v, err)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatalf("round %d, %s: %v", round, name, err)
			}
			if first == nil {
				first = last
			}
			if !bytes.Equal(last, first) {
				t.Fatalf("round %d, %s: the pair has %q, another reader found %q", round, name, last, first)
			}
		}
	}
}

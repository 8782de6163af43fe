package clustertest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"ogw/cluster"
)

// testPeek: the members of a family are always written together, with the
// same text, of lengths that an engine may and may not remember, or deleted
// together. A caller that reads some of them, in any order and by any means, must
// see one text, and never an older one than before.
func testPeek(t *testing.T, kv cluster.KV) {
	const families, members, writers, rounds = 3, 4, 2, 150
	key := func(f, m int) []byte { return fmt.Appendf(nil, "f%d/%d", f, m) }
	var changers, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range writers {
		changers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for range rounds {
				if err := kv.Update(ctx, func(txn cluster.Txn) error {
					return changeFamily(txn, key, rng.IntN(families), members, rng)
				}); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	for i, run := range []func(fn func(cluster.Reader) error) error{
		func(fn func(cluster.Reader) error) error { return kv.Peek(ctx, fn) },
		func(fn func(cluster.Reader) error) error { return kv.Peek(cluster.Relaxed(ctx), fn) },
		func(fn func(cluster.Reader) error) error { return kv.View(ctx, fn) },
	} {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 2))
			var last [families]uint64
			for {
				select {
				case <-done:
					return
				default:
				}
				f := rng.IntN(families)
				var seen uint64
				err := run(func(r cluster.Reader) (err error) {
					seen, err = readFamily(r, key, f, members, rng)
					return err
				})
				if err == nil && seen < last[f] {
					err = fmt.Errorf("version %d after %d", seen, last[f])
				}
				if err != nil {
					t.Errorf("reader %d, family %d: %v", i, f, err)
					return
				}
				last[f] = seen
			}
		})
	}
	changers.Wait()
	close(done)
	readers.Wait()
}

// changeFamily gives all members the next version. Member 0 always exists.
func changeFamily(txn cluster.Txn, key func(f, m int) []byte, f, members int, rng *rand.Rand) error {
	version, err := readFamily(txn, key, f, members, rng)
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, "%020d", version+1)
	text = append(text, bytes.Repeat([]byte{'.'}, []int{0, 500, 3000, 100_000}[rng.IntN(4)])...)
	errs := []error{txn.Set(key(f, 0), text)}
	whole := rng.IntN(3) > 0
	for m := 1; m < members; m++ {
		if whole {
			errs = append(errs, txn.Set(key(f, m), text))
		} else {
			errs = append(errs, txn.Delete(key(f, m)))
		}
	}
	return errors.Join(errs...)
}

// readFamily reads some members and returns their version; 0 is absent.
func readFamily(r cluster.Reader, key func(f, m int) []byte, f, members int, rng *rand.Rand) (uint64, error) {
	values := make([][]byte, members)
	order := rng.Perm(members)
	var err error
	switch rng.IntN(4) {
	case 0:
		keys := make([][]byte, members)
		for m := range keys {
			keys[m] = key(f, m)
		}
		if values, err = r.GetMany(keys); err != nil {
			return 0, err
		}
	case 1: // the rest by a scan
		if values[order[0]], err = r.Get(key(f, order[0])); err != nil {
			return 0, err
		}
		err = r.Scan(key(f, 0), key(f, members), cluster.ScanOptions{}, func(k, v []byte) error {
			m := int(k[len(k)-1] - '0')
			if m == order[0] && !bytes.Equal(v, values[m]) {
				return fmt.Errorf("member %d by key %.20q, by scan %.20q", m, values[m], v)
			}
			values[m] = bytes.Clone(v)
			return nil
		})
		if err != nil {
			return 0, err
		}
	default:
		for _, m := range order {
			if values[m], err = r.Get(key(f, m)); err != nil {
				return 0, err
			}
		}
	}
	present := 0
	for m, v := range values {
		if v == nil {
			continue
		}
		present++
		if !bytes.Equal(v, values[0]) {
			return 0, fmt.Errorf("member 0 is %.20q, member %d is %.20q", values[0], m, v)
		}
	}
	if values[0] == nil {
		if present > 0 {
			return 0, errors.New("member 0 is missing, others are there")
		}
		return 0, nil
	}
	if present != 1 && present != members {
		return 0, fmt.Errorf("%d of %d members of %.20q are there", present, members, values[0])
	}
	var version uint64
	_, err = fmt.Sscanf(string(values[0][:20]), "%d", &version)
	return version, err
}

// testScanThenGet: what a scan met and a read by key of the same pair fit together in
// the run that counts, whatever the same client commits in between. So does what
// Settle was asked about.
func testScanThenGet(t *testing.T, kv cluster.KV) {
	const scanned, read = "by a scan", "by key"
	k := []byte("m/k")
	for name, change := range map[string]func(cluster.Txn) error{
		"removed":  func(txn cluster.Txn) error { return txn.Delete(k) },
		"replaced": func(txn cluster.Txn) error { return txn.Set(k, []byte("new")) },
	} {
		for _, first := range []string{scanned, read} {
			update(t, kv, func(txn cluster.Txn) error { return txn.Set(k, []byte("old")) })
			changed := false
			var seen map[string]string
			run := func(r cluster.Reader) error {
				seen = map[string]string{}
				reads := []func() error{
					func() error {
						return r.Scan([]byte("m"), []byte("n"), cluster.ScanOptions{}, func(_, v []byte) error {
							seen[scanned] = string(v)
							return nil
						})
					},
					func() error {
						v, err := r.Get(k)
						if v != nil {
							seen[read] = string(v)
						}
						return err
					},
				}
				if first == read {
					reads[0], reads[1] = reads[1], reads[0]
				}
				if err := reads[0](); err != nil {
					return err
				}
				if !changed {
					changed = true
					update(t, kv, change)
				}
				if err := reads[1](); err != nil {
					return err
				}
				return nil
			}
			settled := func(r cluster.Reader) error {
				err := errors.Join(run(r), r.Settle())
				if err == nil && seen[scanned] != seen[read] {
					t.Errorf("%s after it was read %s: settled as %q", name, first, seen)
				}
				return err
			}
			for way, in := range map[string]func() error{
				"Peek":         func() error { return kv.Peek(ctx, run) },
				"settled Peek": func() error { return kv.Peek(ctx, settled) },
				"settled Update": func() error {
					return kv.Update(ctx, func(txn cluster.Txn) error { return errors.Join(settled(txn), txn.Set([]byte("out"), nil)) })
				},
				"Update": func() error {
					return kv.Update(ctx, func(txn cluster.Txn) error { return errors.Join(run(txn), txn.Set([]byte("out"), nil)) })
				},
			} {
				changed = false
				update(t, kv, func(txn cluster.Txn) error { return txn.Set(k, []byte("old")) })
				if err := in(); err != nil || seen[scanned] != seen[read] {
					t.Errorf("%s in %s after it was read %s: %q, %v", name, way, first, seen, err)
				}
			}
		}
	}
}

package model

import (
	"fmt"
	"sync"
	"testing"
)

// Run runs several workers at once, each for so many steps: alone in a
// bucket, and together in one.
func Run(t testing.TB, d *Doors, seed uint64, steps int) {
	t.Helper()
	roots := []string{"model-0", "model-1", "model-2/a", "model-2/b", "model-2/c"}
	var wg sync.WaitGroup
	for _, w := range Workers(t, d, seed, roots...) {
		wg.Go(func() {
			for range steps {
				if !w.Step() {
					return
				}
			}
			w.End()
		})
	}
	wg.Wait()
}

// Workers returns one for each root, which it makes: a bucket, or a directory
// in one.
func Workers(t testing.TB, d *Doors, seed uint64, roots ...string) []*Worker {
	t.Helper()
	made := map[string]bool{}
	var out []*Worker
	for i, root := range roots {
		for _, dir := range []string{parent(root), root} {
			if dir == "" || made[dir] {
				continue
			}
			if err := d.Posix[i%len(d.Posix)].Mkdir(dir); err != nil {
				t.Fatal(fmt.Errorf("mkdir %s through %s: %w", dir, d.Posix[i%len(d.Posix)].Name(), err))
			}
			made[dir] = true
		}
		out = append(out, NewWorker(t, d, root, seed, uint64(i)))
	}
	return out
}

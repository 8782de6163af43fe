package vfs

import (
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// Bodies that meet are hashed together; each gets its own sum, whatever the
// others do and however they are cut.
func TestMD5Pool(t *testing.T) {
	var p md5Pool
	defer p.close()
	const bodies = 3 * md5Lanes
	var wg sync.WaitGroup
	for i := range bodies {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rnd := rand.New(rand.NewPCG(7, uint64(i)))
			for range 4 {
				data := make([]byte, rnd.IntN(200<<10))
				for j := range data {
					data[j] = byte(rnd.Uint32())
				}
				sum := p.begin()
				for rest := data; len(rest) > 0; {
					n := min(len(rest), 1+rnd.IntN(70<<10))
					sum.Write(rest[:n])
					rest = rest[n:]
				}
				if rnd.IntN(5) == 0 {
					sum.end() // a body that broke off
					sum.end()
					continue
				}
				var got [md5.Size]byte
				sum.Sum(got[:0])
				sum.end()
				if want := md5.Sum(data); got != want {
					t.Errorf("body %d of %d bytes: %x, want %x", i, len(data), got, want)
				}
			}
		}()
	}
	wg.Wait()
	if p.active != 0 {
		t.Errorf("%d bodies are still counted", p.active)
	}
	for _, u := range p.units {
		if u.used != 0 {
			t.Errorf("%d lanes are still taken", u.used)
		}
	}
}

// A few bodies are hashed plainly: a vector unit would take longer.
func TestMD5PoolAlone(t *testing.T) {
	var p md5Pool
	var sums []*md5Sum
	for range md5Beside {
		sums = append(sums, p.begin())
	}
	if len(p.units) != 0 {
		t.Error("a vector unit for so few")
	}
	for _, s := range sums {
		s.Write([]byte("abc"))
		if got := fmt.Sprintf("%x", s.Sum(nil)); got != "900150983cd24fb0d6963f7d28e17f72" {
			t.Error(got)
		}
		s.end()
	}
}

func TestMD5PoolOf(t *testing.T) {
	var p md5Pool
	defer p.close()
	for _, n := range []int{0, 1, md5Short, md5Short + 1, 1 << 20} {
		data := make([]byte, n)
		if got, want := p.of(data), md5.Sum(data); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
	if p.active != 0 {
		t.Errorf("%d bodies are still counted", p.active)
	}
}

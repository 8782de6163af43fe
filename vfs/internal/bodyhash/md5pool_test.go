package bodyhash

import (
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"ogw/vfs/internal/md5lanes"
)

// Bodies that meet are hashed together; each gets its own sum, whatever the
// others do and however they are cut.
func TestMD5Pool(t *testing.T) {
	var p MD5Pool
	const bodies = 3 * md5lanes.Lanes
	var wg sync.WaitGroup
	for i := range bodies {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rnd := rand.New(rand.NewPCG(7, uint64(i)))
			for range 4 {
				data := make([]byte, rnd.IntN(400<<10))
				for j := range data {
					data[j] = byte(rnd.Uint32())
				}
				sum := p.begin()
				for rest := data; len(rest) > 0; {
					n := min(len(rest), 1+rnd.IntN(140<<10))
					sum.Write(rest[:n])
					rest = rest[n:]
				}
				if got, want := [md5.Size]byte(sum.finish(nil)), md5.Sum(data); got != want {
					t.Errorf("body %d of %d bytes: %x, want %x", i, len(data), got, want)
				}
			}
		}()
	}
	wg.Wait()
	if p.leading != 0 || len(p.waiting) != 0 {
		t.Errorf("%d lead and %d wait still", p.leading, len(p.waiting))
	}
}

// All lengths around the ends of blocks and chunks, in pieces.
func TestMD5Sum(t *testing.T) {
	var p MD5Pool
	data := make([]byte, 3*md5ChunkBytes)
	rand.NewChaCha8([32]byte{1}).Read(data)
	var lengths []int
	for n := range 200 {
		lengths = append(lengths, n, md5Short+n-100, md5ChunkBytes+n-100, 2*md5ChunkBytes+n-100)
	}
	for _, n := range lengths {
		want := md5.Sum(data[:n])
		for _, cut := range []int{0, 1, n / 2, n - min(n, 1), n} {
			s := p.begin()
			s.Write(data[:min(cut, n)])
			s.Write(data[min(cut, n):n])
			if got := [md5.Size]byte(s.finish(nil)); got != want {
				t.Fatalf("%d bytes, cut at %d: %x, want %x", n, cut, got, want)
			}
		}
		if got := p.Of(data[:n]); got != want {
			t.Fatalf("%d bytes as a whole: %x, want %x", n, got, want)
		}
	}
	s := p.begin()
	s.Write([]byte("abc"))
	if got := fmt.Sprintf("%x", s.finish(nil)); got != "900150983cd24fb0d6963f7d28e17f72" {
		t.Error(got)
	}
}

// The Go that runs keeps the state of crypto/md5 as this package knows it, and
// one that did not would be noticed.
func TestMD5StateOfThisGo(t *testing.T) {
	if !rebuildsMD5(addBlocks) {
		t.Error("crypto/md5 of this Go has a state of another form: bodies are hashed plainly, one at a time")
	}
	for name, add := range map[string]func(*md5lanes.State, []byte) error{
		"an error": func(*md5lanes.State, []byte) error { return errMD5State },
		"a state that is not taken": func(s *md5lanes.State, data []byte) error {
			*s = md5lanes.Init()
			return addBlocks(s, data)
		},
		"words in another order": func(s *md5lanes.State, data []byte) error {
			s[0], s[1] = s[1], s[0]
			return addBlocks(s, data)
		},
	} {
		if rebuildsMD5(add) {
			t.Errorf("%s was not noticed", name)
		}
	}
}

// Without a state that is known, all sums are those of crypto/md5 itself.
func TestMD5StateUnknown(t *testing.T) {
	known := md5StateKnown
	md5StateKnown = func() bool { return false }
	defer func() { md5StateKnown = known }()
	TestMD5Pool(t)
	TestMD5Sum(t)
	var p MD5Pool
	if s := p.begin(); s.plain == nil {
		t.Error("a state that is not known is used")
	}
}

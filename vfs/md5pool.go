package vfs

import (
	"crypto/md5"
	"hash"
	"runtime"
	"sync"

	md5simd "github.com/minio/md5-simd"
)

const (
	// md5Beside is how many other bodies must be hashed for one to join the
	// vector unit. It saves when many lanes have work at the same time:
	// measured over S3, sixteen uploads take a third less of the processors
	// in all, and four take half as much again, because bodies come in
	// pieces and the lanes are rarely full.
	md5Beside = 7
	// md5Short is up to what length a body is hashed plainly in any case:
	// joining takes longer than that.
	md5Short = 256 << 10
	// md5Lanes is how many bodies one vector unit takes at a time.
	md5Lanes = md5simd.Lanes
)

// md5Pool computes the MD5 of many bodies at once. MD5 cannot use more than
// one lane of a vector unit by itself, so a body alone is hashed plainly, and
// bodies that meet share a unit.
type md5Pool struct {
	mu     sync.Mutex
	active int // bodies being hashed
	units  []*md5Unit
}

// md5Unit is a goroutine that hashes for up to md5Lanes bodies.
type md5Unit struct {
	server md5simd.Server
	used   int
}

// md5Sum is one body's hash; end must be called.
type md5Sum struct {
	hash.Hash
	pool *md5Pool
	unit *md5Unit // nil: plain
}

// of hashes a body that is there as a whole.
func (p *md5Pool) of(data []byte) (sum [md5.Size]byte) {
	if len(data) <= md5Short {
		return md5.Sum(data)
	}
	s := p.begin()
	defer s.end()
	s.Write(data)
	s.Sum(sum[:0])
	return sum
}

func (p *md5Pool) begin() *md5Sum {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &md5Sum{pool: p}
	if p.active >= md5Beside {
		s.unit = p.take()
	}
	p.active++
	if s.unit != nil {
		s.Hash = s.unit.server.NewHash()
	} else {
		s.Hash = md5.New()
	}
	return s
}

// take finds a unit with a free lane: fuller ones first, since a unit's work
// hardly depends on its bodies. Half of the processors is for them.
func (p *md5Pool) take() *md5Unit {
	for _, u := range p.units {
		if u.used < md5Lanes {
			u.used++
			return u
		}
	}
	if len(p.units) >= max(1, runtime.NumCPU()/2) {
		return nil
	}
	u := &md5Unit{server: md5simd.NewServer(), used: 1}
	p.units = append(p.units, u)
	return u
}

func (s *md5Sum) end() {
	if s.pool == nil {
		return
	}
	if s.unit != nil {
		s.Hash.(md5simd.Hasher).Close()
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.active--
	if s.unit != nil {
		s.unit.used--
	}
	s.pool = nil
}

// close ends the units; no body is being hashed any more.
func (p *md5Pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.units {
		u.server.Close()
	}
	p.units = nil
}

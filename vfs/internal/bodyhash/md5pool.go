package bodyhash

import (
	"crypto/md5"
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"runtime"
	"slices"
	"sync"

	"ogw/vfs/internal/md5lanes"
)

const (
	// md5Short is up to what length a body is hashed by itself in any case:
	// meeting others takes longer than that.
	md5Short = 16 << 10
	// md5ChunkBytes is what is hashed between two looks at who else came.
	md5ChunkBytes = 64 << 10
)

// MD5Pool computes the MD5 of many bodies at once. MD5 cannot use more than
// one lane of a vector unit by itself, so a body alone is hashed plainly, and
// bodies that meet share a unit, which takes no longer for sixteen than for
// one.
//
// There is no goroutine for it: whose body comes when nobody hashes leads,
// takes those along that come meanwhile, and hands over when its own is done.
type MD5Pool struct {
	mu      sync.Mutex
	waiting []*md5Job
	leading int // goroutines that hash
}

// md5Job is whole blocks that are added to the state of one body.
type md5Job struct {
	lane md5lanes.Lane // Data is what is left
	// turn wakes the one who waits: it is done (true) or leads (false).
	turn chan bool
}

// Of hashes a body that is there as a whole.
func (p *MD5Pool) Of(data []byte) (sum [md5.Size]byte) {
	if len(data) <= md5Short {
		return md5.Sum(data)
	}
	s := p.begin()
	s.Write(data)
	s.finish(sum[:0])
	return sum
}

func (p *MD5Pool) begin() *md5Sum {
	s := &md5Sum{pool: p, state: md5lanes.Init()}
	if !md5lanes.Available() || !md5StateKnown() {
		s.plain = md5.New()
	}
	return s
}

// add adds whole blocks to a state.
func (p *MD5Pool) add(s *md5lanes.State, data []byte) {
	j := &md5Job{lane: md5lanes.Lane{State: s, Data: data}, turn: make(chan bool, 1)}
	p.mu.Lock()
	p.waiting = append(p.waiting, j)
	p.mu.Unlock()
	runtime.Gosched() // who is about to come may come along
	p.mu.Lock()
	i := slices.Index(p.waiting, j)
	if i < 0 || p.leading > 0 && len(p.waiting) < md5lanes.Lanes {
		p.mu.Unlock()
		if <-j.turn {
			return
		}
	} else {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.leading++
		p.mu.Unlock()
	}
	p.lead(j)
}

// lead hashes j and who else comes until j is done. The caller counts as
// leading and j does not wait.
func (p *MD5Pool) lead(j *md5Job) {
	batch := make([]*md5Job, 1, md5lanes.Lanes)
	batch[0] = j
	for len(j.lane.Data) > 0 {
		p.mu.Lock()
		k := min(md5lanes.Lanes-len(batch), len(p.waiting))
		batch = append(batch, p.waiting[:k]...)
		p.waiting = slices.Delete(p.waiting, 0, k)
		p.mu.Unlock()
		hashTogether(batch)
		batch = slices.DeleteFunc(batch, func(other *md5Job) bool {
			if len(other.lane.Data) > 0 {
				return false
			}
			if other != j {
				other.turn <- true
			}
			return true
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = slices.Insert(p.waiting, 0, batch...)
	if len(p.waiting) == 0 {
		p.leading--
		return
	}
	next := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	next.turn <- false
}

// hashTogether takes one chunk off each job, or as much as all have left.
func hashTogether(batch []*md5Job) {
	n := md5ChunkBytes
	for _, j := range batch {
		n = min(n, len(j.lane.Data))
	}
	if len(batch) == 1 {
		hashAlone(batch[0].lane.State, batch[0].lane.Data[:n])
	} else {
		var lanes [md5lanes.Lanes]md5lanes.Lane
		for i, j := range batch {
			lanes[i] = j.lane
		}
		md5lanes.Blocks(lanes[:len(batch)], n)
	}
	for _, j := range batch {
		j.lane.Data = j.lane.Data[n:]
	}
}

// What crypto/md5 writes as its state: a name, the state, a block of which
// nothing is filled, and the length. It is private to Go and not promised, so
// md5StateKnown tries it before anybody relies on it.
const (
	md5Magic      = "md5\x01"
	md5StateBytes = len(md5Magic) + md5.Size + md5.BlockSize + 8
)

// errMD5State means that crypto/md5 of this Go keeps its state in another form.
var errMD5State = errors.New("crypto/md5 has a state of another form")

// md5StateKnown reports whether crypto/md5 of this Go takes and gives its state
// in the form that this file knows. Where it does not, bodies are hashed plainly.
var md5StateKnown = sync.OnceValue(func() bool { return rebuildsMD5(addBlocks) })

// rebuildsMD5 reports whether add, in two steps, computes what md5.Sum does.
func rebuildsMD5(add func(*md5lanes.State, []byte) error) bool {
	var data [3 * md5.BlockSize]byte
	for i := range data {
		data[i] = byte(i)
	}
	end := md5.BlockSize * 2 // the last block is the padding (RFC 1321, 3.1 and 3.2)
	want := md5.Sum(data[:end])
	clear(data[end:])
	data[end] = 0x80
	binary.LittleEndian.PutUint64(data[len(data)-8:], uint64(end)*8)
	s := md5lanes.Init()
	if add(&s, data[:md5.BlockSize]) != nil || add(&s, data[md5.BlockSize:]) != nil {
		return false
	}
	return string(s.Append(nil)) == string(want[:])
}

// addBlocks adds whole blocks to a state with crypto/md5, which is as fast as
// one lane and does not need the vector unit.
func addBlocks(s *md5lanes.State, data []byte) error {
	var buf [md5StateBytes]byte
	b := append(buf[:0], md5Magic...)
	for _, w := range s {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	h := md5.New()
	in, canTake := h.(encoding.BinaryUnmarshaler)
	out, canGive := h.(encoding.BinaryAppender)
	if !canTake || !canGive {
		return errMD5State
	}
	if err := in.UnmarshalBinary(buf[:]); err != nil {
		return fmt.Errorf("%w: %w", errMD5State, err)
	}
	h.Write(data)
	b, err := out.AppendBinary(buf[:0])
	if err != nil || len(b) != md5StateBytes || string(b[:len(md5Magic)]) != md5Magic {
		return errMD5State
	}
	for i := range s {
		s[i] = binary.BigEndian.Uint32(b[len(md5Magic)+4*i:])
	}
	return nil
}

// hashAlone is addBlocks after md5StateKnown, which leaves nothing to fail: a
// wrong MD5 would be stored as an ETag, so an error here ends the program.
func hashAlone(s *md5lanes.State, data []byte) {
	if err := addBlocks(s, data); err != nil {
		panic(err)
	}
}

// md5Sum is one body's hash.
type md5Sum struct {
	pool   *MD5Pool
	plain  hash.Hash // instead of all else, without a vector unit or md5StateKnown
	state  md5lanes.State
	length uint64
	tail   [md5.BlockSize]byte
	filled int // of tail
}

// Write adds bytes.
func (s *md5Sum) Write(p []byte) {
	if s.plain != nil {
		s.plain.Write(p)
		return
	}
	s.length += uint64(len(p))
	if s.filled > 0 {
		k := copy(s.tail[s.filled:], p)
		s.filled += k
		p = p[k:]
		if s.filled < len(s.tail) {
			return
		}
		hashAlone(&s.state, s.tail[:])
		s.filled = 0
	}
	if whole := len(p) &^ (md5.BlockSize - 1); whole > 0 {
		s.blocks(p[:whole])
		p = p[whole:]
	}
	s.filled = copy(s.tail[:], p)
}

func (s *md5Sum) blocks(p []byte) {
	if len(p) <= md5Short {
		hashAlone(&s.state, p)
	} else {
		s.pool.add(&s.state, p)
	}
}

// finish appends the MD5 of all that was written. It must be called once.
func (s *md5Sum) finish(b []byte) []byte {
	if s.plain != nil {
		return s.plain.Sum(b)
	}
	// A bit, zeros, and the length in bits (RFC 1321, 3.1 and 3.2).
	var pad [2 * md5.BlockSize]byte
	n := copy(pad[:], s.tail[:s.filled])
	pad[n] = 0x80
	size := md5.BlockSize
	if n+1+8 > size {
		size *= 2
	}
	binary.LittleEndian.PutUint64(pad[size-8:], s.length*8)
	hashAlone(&s.state, pad[:size])
	return s.state.Append(b)
}

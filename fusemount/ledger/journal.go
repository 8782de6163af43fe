package ledger

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Write is one write that was not stored yet.
type Write struct {
	Ino    uint64
	Epoch  uint64 // of the file's content
	Off    int64
	Data   []byte
	Unique uint64 // of the request; 0: none
	Seq    uint64 // grows with the writes to a file, whichever mount they come through
	// KillPriv reports whether the write takes setuid and setgid off the file.
	KillPriv bool
}

// journalHead is the beginning of the journal's memory. Positions only grow;
// the ring has them modulo its length.
type journalHead struct {
	head, tail uint64
	last       uint64 // the greatest Seq
}

// journalRecord precedes the bytes of a write. Records have a length of whole
// recordAlign and do not wrap: what is left at the end is a dead one.
type journalRecord struct {
	size   uint32 // with this
	dead   uint32
	ino    uint64
	epoch  uint64
	off    uint64
	unique uint64
	length uint32
	flags  uint32
	seq    uint64
	_      [8]byte
}

const (
	recordBytes = int(unsafe.Sizeof(journalRecord{}))
	recordAlign = recordBytes

	recordKillPriv = 1

	// restartBytes is the memory that a journal has at least, once it was used.
	restartBytes = 2 << 20
)

// Journal keeps the bytes of writes.
type Journal struct {
	h    *journalHead
	ring []byte

	mu       sync.Mutex
	reserved int                 // bytes that Reserve promised
	files    map[uint64][]uint64 // positions of the live records of a file, in order
	freed    chan struct{}       // closed when room comes back while somebody waits
}

func newJournal(mem []byte) (*Journal, error) {
	j := &Journal{h: (*journalHead)(unsafe.Pointer(&mem[0])), ring: mem[headerBytes:],
		files: make(map[uint64][]uint64), freed: make(chan struct{})}
	if j.h.head-j.h.tail > uint64(len(j.ring)) || (j.h.head|j.h.tail)%uint64(recordAlign) != 0 {
		return nil, fmt.Errorf("%w: journal of writes, from %d to %d", ErrFormat, j.h.tail, j.h.head)
	}
	for at := j.h.tail; at < j.h.head; {
		r := j.record(at)
		n := uint64(r.size)
		if n == 0 || n%uint64(recordAlign) != 0 || at%uint64(len(j.ring))+n > uint64(len(j.ring)) || uint64(r.length)+uint64(recordBytes) > n && r.dead == 0 {
			return nil, fmt.Errorf("%w: journal of writes, at %d", ErrFormat, at)
		}
		if r.dead == 0 {
			j.files[r.ino] = append(j.files[r.ino], at)
		}
		at += n
	}
	return j, nil
}

func (j *Journal) record(at uint64) *journalRecord {
	return (*journalRecord)(unsafe.Pointer(&j.ring[at%uint64(len(j.ring))]))
}

// recordSize is what a write of n bytes takes.
func recordSize(n int) int { return (recordBytes + n + recordAlign - 1) / recordAlign * recordAlign }

// room is what a write of n bytes may take: as much again may be left over at
// the end of the ring.
func room(n int) int { return 2 * recordSize(n) }

// Reserve waits until a write of n bytes can be kept. While there is no room,
// it calls store for the file whose bytes were kept first. The caller gives the
// room back with Unreserve.
func (j *Journal) Reserve(ctx context.Context, n int, store func(ctx context.Context, ino uint64) error) error {
	for {
		j.mu.Lock()
		if int(j.h.head-j.h.tail)+j.reserved+room(n) <= len(j.ring) {
			j.reserved += room(n)
			j.mu.Unlock()
			return nil
		}
		freed := j.freed
		var oldest uint64
		empty := j.h.tail == j.h.head
		if !empty {
			oldest = j.record(j.h.tail).ino // the record at the tail lives
		}
		j.mu.Unlock()
		if !empty {
			if err := store(ctx, oldest); err != nil {
				return err
			}
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Unreserve gives back what Reserve promised for n bytes.
func (j *Journal) Unreserve(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reserved -= room(n)
	j.wake()
}

func (j *Journal) wake() {
	close(j.freed)
	j.freed = make(chan struct{})
}

// Keep records a write, with a greater Seq than those to the file before. ErrFull,
// if Reserve made no room for it: it is not recorded.
func (j *Journal) Keep(w *Write) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	size := recordSize(len(w.Data))
	at := j.h.head
	left := len(j.ring) - int(at%uint64(len(j.ring)))
	taken := int(at - j.h.tail)
	if left < size {
		taken += left
	}
	if taken+size > len(j.ring) {
		return fmt.Errorf("%w: %d bytes of writes that are not stored", ErrFull, taken)
	}
	// With nothing in it, the ring begins anew: what was never used takes no
	// memory.
	if begun := len(j.ring) - left; left < size || j.h.head == j.h.tail && begun > restartBytes {
		r := j.record(at)
		*r = journalRecord{size: uint32(left), dead: 1}
		at += uint64(left)
	}
	r := j.record(at)
	*r = journalRecord{size: uint32(size), ino: w.Ino, epoch: w.Epoch, off: uint64(w.Off), unique: w.Unique, length: uint32(len(w.Data)), seq: w.Seq}
	if w.KillPriv {
		r.flags = recordKillPriv
	}
	copy(j.data(at, r), w.Data)
	j.h.last = max(j.h.last, w.Seq)
	j.files[w.Ino] = append(j.files[w.Ino], at)
	atomic.StoreUint64(&j.h.head, at+uint64(size))
	j.advance() // over the end of the ring
	return nil
}

func (j *Journal) data(at uint64, r *journalRecord) []byte {
	off := int(at%uint64(len(j.ring))) + recordBytes
	return j.ring[off : off+int(r.length)]
}

// Stored frees the writes to a file up to seq, in their order, whose bytes are in
// the store, or nowhere because they must not be.
func (j *Journal) Stored(ino, seq uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.files[ino]
	n := 0
	for ; n < len(list) && j.record(list[n]).seq <= seq; n++ {
		atomic.StoreUint32(&j.record(list[n]).dead, 1)
	}
	if n == 0 {
		return
	}
	if j.files[ino] = list[n:]; n == len(list) {
		delete(j.files, ino)
	}
	j.advance()
	j.wake()
}

// Oldest returns the Seq of the first write to a file that was not stored.
func (j *Journal) Oldest(ino uint64) (seq uint64, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.files[ino]
	if len(list) == 0 {
		return 0, false
	}
	return j.record(list[0]).seq, true
}

// Last returns the greatest Seq of all writes that it had.
func (j *Journal) Last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.h.last
}

// advance gives room back.
func (j *Journal) advance() {
	tail := j.h.tail
	for tail < j.h.head && j.record(tail).dead != 0 {
		tail += uint64(j.record(tail).size)
	}
	atomic.StoreUint64(&j.h.tail, tail)
}

// Each calls fn for every write that was not stored, in order. The bytes are the
// journal's.
func (j *Journal) Each(fn func(w *Write)) {
	for at := j.h.tail; at < j.h.head; {
		r := j.record(at)
		if r.dead == 0 {
			w := Write{Ino: r.ino, Epoch: r.epoch, Off: int64(r.off), Data: j.data(at, r), Unique: r.unique, Seq: r.seq, KillPriv: r.flags&recordKillPriv != 0}
			fn(&w)
		}
		at += uint64(r.size)
	}
}

// Bytes is what is in use.
func (j *Journal) Bytes() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return int(j.h.head - j.h.tail)
}

// writeSlot is a request that changed bytes.
type writeSlot struct {
	unique uint64
	length uint64
}

// writeProbes is how many places a request may have: its own, and those behind it if unanswered
// ones, of which there are few, have that.
const writeProbes = 8

// Writes are the requests that changed bytes lately: sent again, they must not
// do it again, over what others wrote since.
type Writes struct {
	slots *[writeSlots]writeSlot

	mu         sync.Mutex
	unanswered map[uint64]struct{}
}

// slot returns one of the places of a request. They spread the numbers, which go in steps
// of two.
func (a *Writes) slot(unique uint64, probe int) *writeSlot {
	return &a.slots[(unique/2+uint64(probe))%writeSlots]
}

// Begin has others leave a request its place until End, when it is about to be answered: there
// may be many of them between its change and its answer.
func (a *Writes) Begin(unique uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unanswered[unique] = struct{}{}
}

// End comes behind Begin.
func (a *Writes) End(unique uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.unanswered, unique)
}

// Done records that a request changed length bytes, after Keep.
func (a *Writes) Done(unique uint64, length int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.place(unique)
	atomic.StoreUint64(&s.unique, 0)
	atomic.StoreUint64(&s.length, uint64(length))
	atomic.StoreUint64(&s.unique, unique)
}

// place returns where a request is to be recorded; a.mu is held.
func (a *Writes) place(unique uint64) *writeSlot {
	var free *writeSlot
	for i := range writeProbes {
		s := a.slot(unique, i)
		if s.unique == unique {
			return s
		}
		if _, taken := a.unanswered[s.unique]; free == nil && !taken {
			free = s
		}
	}
	if free == nil {
		free = a.slot(unique, 0)
	}
	return free
}

// Again is Done for a write that the server before kept, and recorded unless it was killed
// in between. A later request has its place if it is long since: that may not be answered.
func (a *Writes) Again(unique uint64, length int) {
	if _, done := a.Find(unique); !done && atomic.LoadUint64(&a.slot(unique, 0).unique) < unique {
		a.Done(unique, length)
	}
}

// Find returns how much a request changed.
func (a *Writes) Find(unique uint64) (length int, done bool) {
	for i := range writeProbes {
		s := a.slot(unique, i)
		if unique != 0 && atomic.LoadUint64(&s.unique) == unique {
			return int(atomic.LoadUint64(&s.length)), true
		}
	}
	return 0, false
}

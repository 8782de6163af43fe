package session

import (
	"slices"
	"sync"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// maxHeld bounds the contents that a gateway names to the others, those in which it
// has read since before the last epoch, and the inodes, those that it has open or
// holds, or if these are more, as with a mount whose kernel remembers what it was shown,
// those of them that have no links. While there are more of one kind, nothing is removed;
// of too many contents, those of files that nobody reads just now are let go (OnCrowded).
const maxHeld = 8192

// Pins are the contents that this process uses.
type Pins interface {
	// Mark begins a time.
	Mark()
	// Older returns the contents that have been pinned since before the last Mark;
	// ok reports whether there are no more than most.
	Older(most int) (list []record.ContentID, ok bool)
}

// Numbers are those that this process takes for contents and blobs (ids.Allocator).
type Numbers interface {
	// Oldest returns a number: nothing is named any more under a smaller one that is
	// not yet.
	Oldest() uint64
	// Unsettled returns how many are about to name something, and how many may have.
	Unsettled() (uses, doubts int)
	// Settle is called when no transaction of the first n in doubt can commit any more.
	Settle(n int)
}

// saying is what one beat says and learns.
type saying struct {
	record.Reads
	doubts, others     int // that were there before
	epoch, left, purge uint64
}

// publisher says to the others, with the beats, what this process reads.
//
//	beat  reads the epoch ─► mark: the views that run by now are old
//	beat  no old view runs any more ─► mark: what is pinned by now may be old
//	      ─► says that epoch, the contents that are still pinned since then, and the
//	         inodes in use
//
// A view that begins after an epoch was read finds nothing that was deleted before
// that epoch began. So whoever deleted, moved the epoch on, and then sees it said by
// all, may remove all but what they named. A view pins what it finds before it ends.
//
// An inode that lost its last link before the epoch began is the same: it is named
// while its use goes on, and whose use of it begins later finds it without links, and
// does not begin.
type publisher struct {
	said   record.Reads  // of the goroutine that beats
	served uint64        // CounterPurge when this process came
	asked  chan struct{} // holds one when there may be purges that are not served

	mu      sync.Mutex // guards what is below
	readers *Readers   // nil: nothing is read yet
	pins    Pins
	open    *Table
	numbers Numbers  // nil: none are taken yet
	unsure  []func() // called when no transaction of before can commit any more
	left    uint64   // CounterLeft, read by the last beat
	purge   uint64   // CounterPurge, likewise
	epoch   uint64   // read by the last beat
	mark    uint64   // of readers, since then
	// restoring reports whether what a process before this one had in use is not all
	// known yet: nothing is said then.
	restoring bool
	wanted    uint64  // epoch for which the inodes in use without links are asked for
	looking   bool    // findOrphans runs
	orphans   orphans // those of one epoch
	quiet     bool    // no view of before mark runs, and pins are marked since then
	letGo     func()  // nil: nothing can be let go
	crowded   bool    // there were more contents than maxHeld, and letGo was not called since
	letting   bool    // it runs
}

// orphans are inodes in use that were without links when an epoch had begun.
type orphans struct {
	epoch uint64
	inos  []record.Ino
	ok    bool // no more than maxHeld
}

// attach has p ask for what this process reads and uses. It comes before the first.
func (p *publisher) attach(r *Readers, pins Pins, open *Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers, p.pins, p.open = r, pins, open
}

// number has p ask for the numbers of this process. It comes before the first is taken.
func (p *publisher) number(n Numbers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.numbers = n
}

// unsettled reports whether this process may leave something that nothing names.
func (p *publisher) unsettled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.numbers == nil {
		return false
	}
	uses, doubts := p.numbers.Unsettled()
	return uses+doubts > 0
}

// waits returns CounterLeft, as the last beat read it.
func (p *publisher) waits() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// begin returns what a gateway that comes says first.
func (p *publisher) begin(r cluster.Reader) (s saying, err error) {
	n, err := record.Counters(r, record.CounterNumber, record.CounterEpoch, record.CounterPurge)
	if err != nil {
		return s, err
	}
	s.First, s.Epoch, s.purge = n[0], n[1], n[2]
	if p.restoring { // of before all that others ask about
		s.Epoch = 0
	}
	return s, nil
}

// begun comes after a fence was written with s.
func (p *publisher) begun(s *saying) {
	p.said, p.served, p.purge = s.Reads, s.purge, s.purge
	p.asked = make(chan struct{}, 1)
}

// ask has purges served.
func (p *publisher) ask() {
	select {
	case p.asked <- struct{}{}:
	default:
	}
}

// next is what the next beat says.
func (p *publisher) next() saying {
	p.mu.Lock()
	defer p.mu.Unlock()
	say := saying{Reads: p.nextReads(), others: len(p.unsure)}
	if p.numbers == nil {
		return say
	}
	if p.left > say.First { // else nothing waits for it
		say.First = max(say.First, p.numbers.Oldest())
	}
	_, say.doubts = p.numbers.Unsettled()
	return say
}

// nextReads is what it says of reads. Under mu.
func (p *publisher) nextReads() record.Reads {
	say := p.said
	if p.epoch <= say.Epoch || p.restoring {
		return say
	}
	var held []record.ContentID
	var used []record.Ino
	if p.readers != nil {
		if !p.quiet && p.readers.Older(p.mark) {
			return say
		}
		if !p.quiet {
			p.quiet = true
			p.pins.Mark()
		}
		var ok bool
		if held, ok = p.pins.Older(maxHeld); !ok {
			p.crowded = true
			return say
		}
		if used, ok = p.inUse(); !ok {
			return say
		}
	}
	say.Epoch, say.Contents, say.Inodes = p.epoch, held, used
	return say
}

// inUse returns the inodes that others have to spare; ok reports whether they are known.
// Under mu.
func (p *publisher) inUse() (list []record.Ino, ok bool) {
	if list, ok = p.open.InUse(maxHeld); ok {
		return list, true
	}
	if p.orphans.epoch == p.epoch && p.orphans.ok {
		return p.orphans.inos, true
	}
	p.wanted = p.epoch
	return nil, false
}

// wants returns the epoch, which has begun, for which findOrphans is asked for, and the
// table of what is in use; 0 for none. It asks no more before looked is called.
func (p *publisher) wants() (epoch uint64, open *Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted == 0 || p.looking {
		return 0, nil
	}
	epoch, p.wanted, p.looking = p.wanted, 0, true
	return epoch, p.open
}

// looked comes after findOrphans.
func (p *publisher) looked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looking = false
}

// found takes what findOrphans found. few reports whether that before was not too many.
func (p *publisher) found(o orphans) (few bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	few = p.orphans.epoch == 0 || p.orphans.ok
	p.orphans = o
	return few
}

// onCrowded has letGo called when there are too many contents.
func (p *publisher) onCrowded(letGo func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.letGo = letGo
}

// lets returns what is to be called since there are too many contents, or nil. It asks no more
// before that has returned.
func (p *publisher) lets() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.crowded || p.letting || p.letGo == nil {
		return nil
	}
	p.crowded, p.letting = false, true
	return func() {
		p.letGo()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.letting = false
	}
}

// doubt has settled called when no transaction can commit any more that began before.
func (p *publisher) doubt(settled func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unsure = append(p.unsure, settled)
}

// restored has p say what is in use from now on.
func (p *publisher) restored() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restoring = false
}

// isRestoring reports whether restored is still to come.
func (p *publisher) isRestoring() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restoring
}

// say writes what is new of s, and reads what others say.
func (p *publisher) say(t cluster.Txn, id uint64, s *saying) error {
	if s.Epoch != p.said.Epoch || s.First != p.said.First {
		if err := t.Set(record.ReadKey(id), s.Encode()); err != nil {
			return err
		}
	}
	n, err := record.Counters(t, record.CounterEpoch, record.CounterLeft, record.CounterPurge)
	if err == nil {
		s.epoch, s.left, s.purge = n[0], n[1], n[2]
	}
	return err
}

// learned comes after the beat of s was acknowledged.
func (p *publisher) learned(s *saying) {
	p.mu.Lock()
	settled := slices.Clone(p.unsure[:s.others])
	p.unsure = slices.Delete(p.unsure, 0, s.others)
	p.learn(s)
	p.mu.Unlock()
	for _, fn := range settled {
		fn()
	}
}

func (p *publisher) learn(s *saying) {
	p.said, p.left = s.Reads, s.left
	if s.purge > p.purge {
		p.purge = s.purge
		p.ask()
	}
	if s.doubts > 0 {
		p.numbers.Settle(s.doubts)
	}
	if s.epoch <= p.epoch {
		return
	}
	p.epoch = s.epoch
	if p.open != nil && p.open.tells() { // others are about to remove what has no links
		p.wanted = p.epoch
	}
	if p.quiet = false; p.readers != nil {
		p.mark = p.readers.Mark()
	}
}

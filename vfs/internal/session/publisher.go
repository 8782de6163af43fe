package session

import (
	"sync"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// maxHeld bounds the contents that a gateway names to the others: those in which it
// has read since before the last epoch. While there are more, nothing is removed.
const maxHeld = 8192

// Pins are the contents that this process uses.
type Pins interface {
	// Mark begins a time.
	Mark()
	// Older returns the contents that have been pinned since before the last Mark;
	// ok reports whether there are no more than most.
	Older(most int) (list []record.ContentID, ok bool)
}

// publisher says to the others, with the beats, what this process reads.
//
//	beat  reads the epoch ─► mark: the views that run by now are old
//	beat  no old view runs any more ─► mark: what is pinned by now may be old
//	      ─► says that epoch, and the contents that are still pinned since then
//
// A view that begins after an epoch was read finds nothing that was deleted before
// that epoch began. So whoever deleted, moved the epoch on, and then sees it said by
// all, may remove all but what they named. A view pins what it finds before it ends.
type publisher struct {
	said record.Reads // of the goroutine that beats; First never changes

	mu      sync.Mutex // guards what is below
	readers *Readers   // nil: nothing is read yet
	pins    Pins
	epoch   uint64 // read by the last beat
	mark    uint64 // of readers, since then
	quiet   bool   // no view of before mark runs, and pins are marked since then
}

// attach has p ask for the reads of this process. It comes before the first.
func (p *publisher) attach(r *Readers, pins Pins) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers, p.pins = r, pins
}

// begin writes the first record of a gateway that comes.
func (p *publisher) begin(t cluster.Txn, id uint64) (r record.Reads, err error) {
	if r.First, err = record.Counter(t, record.CounterNumber); err != nil {
		return r, err
	}
	if r.Epoch, err = record.Counter(t, record.CounterEpoch); err != nil {
		return r, err
	}
	return r, t.Set(record.ReadKey(id), r.Encode())
}

// next is what the next beat says.
func (p *publisher) next() record.Reads {
	p.mu.Lock()
	defer p.mu.Unlock()
	say := p.said
	if p.epoch <= say.Epoch {
		return say
	}
	var held []record.ContentID
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
			return say
		}
	}
	say.Epoch, say.Contents = p.epoch, held
	return say
}

// say writes r if it is new, and returns the epoch.
func (p *publisher) say(t cluster.Txn, id uint64, r *record.Reads) (epoch uint64, err error) {
	if r.Epoch != p.said.Epoch {
		if err := t.Set(record.ReadKey(id), r.Encode()); err != nil {
			return 0, err
		}
	}
	return record.Counter(t, record.CounterEpoch)
}

// learned comes after a beat was acknowledged that said r and read an epoch.
func (p *publisher) learned(r record.Reads, epoch uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = r
	if epoch <= p.epoch {
		return
	}
	p.epoch = epoch
	if p.quiet = false; p.readers != nil {
		p.mark = p.readers.Mark()
	}
}

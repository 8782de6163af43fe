package session

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"ogw/cluster"
	"ogw/cluster/pause"
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

// Settle waits until no gateway has a read under way that began before the call, but
// those of the contents that it returns.
func (l *Lease) Settle(ctx context.Context) (held map[record.ContentID]bool, err error) {
	var epoch uint64
	err = l.kv.Update(cluster.Strict(ctx), func(t cluster.Txn) error {
		if err := l.read(t); err != nil {
			return err
		}
		n, err := record.Counter(t, record.CounterEpoch)
		if err != nil {
			return err
		}
		epoch = n + 1
		return record.SetCounter(t, record.CounterEpoch, epoch)
	})
	for err == nil && held == nil {
		if err = pause.For(ctx, lookEvery); err != nil {
			break
		}
		err = l.kv.View(ctx, func(r cluster.Reader) (err error) {
			held, err = settled(r, epoch)
			return err
		})
	}
	return held, err
}

// settled returns the contents that the gateways named, nil if one did not say that
// epoch yet.
func settled(r cluster.Reader, epoch uint64) (map[record.ContentID]bool, error) {
	held := make(map[record.ContentID]bool)
	list, err := reads(r)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Epoch < epoch {
			return nil, nil
		}
		for _, c := range list[i].Contents {
			held[c] = true
		}
	}
	return held, nil
}

// reads returns what each gateway said last.
func reads(r cluster.Reader) ([]record.Reads, error) {
	gateways, err := record.Gateways(r)
	if err != nil {
		return nil, err
	}
	keys := make([][]byte, len(gateways))
	for i := range gateways {
		keys[i] = record.ReadKey(gateways[i].ID)
	}
	values, err := r.GetMany(keys)
	if err != nil {
		return nil, err
	}
	list := make([]record.Reads, len(values))
	for i, v := range values {
		if list[i], err = record.DecodeReads(v); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// First returns the first number that a gateway may use which is not stored yet: what
// has a smaller one, and nothing names, is left by one that is gone.
func (l *Lease) First(r cluster.Reader) (uint64, error) {
	list, err := reads(r)
	if err == nil && len(list) == 0 {
		err = errLost
	}
	if err != nil {
		return 0, err
	}
	return slices.MinFunc(list, func(a, b record.Reads) int { return cmp.Compare(a.First, b.First) }).First, nil
}

// Alive reports whether a gateway uses the store.
func (l *Lease) Alive(r cluster.Reader, id uint64) (bool, error) {
	v, err := r.Get(record.FenceKey(id))
	return v != nil, err
}

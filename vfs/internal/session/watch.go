package session

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

const (
	// BeatEvery is the time between two beats.
	BeatEvery = 2 * time.Second
	// lookEvery is the time between two looks at the beats of others.
	lookEvery = BeatEvery / 4
	// A gap between two looks shows that the store stood still, or this process
	// did: the beats of others may have, too, and prove nothing. lookGap is that of
	// who only looks, beatGap of who beats before each look.
	lookGap = BeatEvery
	beatGap = 2 * BeatEvery
)

// sighting is a gateway and its last beat.
type sighting struct {
	record.Gateway
	beat record.Beat
}

// sightings are the gateways of one moment that are wanted.
func sightings(r cluster.Reader, wanted func(*record.Gateway) bool) (list []sighting, err error) {
	all, err := record.Gateways(r)
	if err != nil {
		return nil, err
	}
	var keys [][]byte
	for i := range all {
		if wanted(&all[i]) {
			list, keys = append(list, sighting{Gateway: all[i]}), append(keys, record.BeatKey(all[i].ID))
		}
	}
	beats, err := r.GetMany(keys)
	for i, v := range beats {
		list[i].beat = record.DecodeBeat(v)
	}
	return list, err
}

func look(ctx context.Context, kv cluster.KV, wanted func(*record.Gateway) bool) (list []sighting, err error) {
	err = kv.View(ctx, func(r cluster.Reader) (err error) {
		list, err = sightings(r, wanted)
		return err
	})
	return list, err
}

// same reports whether no gateway came, went or moved.
func same(a, b []sighting) bool {
	return slices.EqualFunc(a, b, func(x, y sighting) bool { return x.ID == y.ID && x.beat.Number == y.beat.Number })
}

// watch is what a process sees of the beats of others, by its own clock.
type watch struct {
	gap  time.Duration // longer ones prove nothing
	seen map[uint64]standing
	last time.Duration // clock after the last look
}

// standing is a beat, and since when it is seen.
type standing struct {
	sighting
	since time.Duration
	moved bool
}

func newWatch(gap time.Duration) *watch { return &watch{gap: gap, seen: map[uint64]standing{}} }

// saw notes what a look found that began before and ended after.
func (w *watch) saw(before, after time.Duration, list []sighting) {
	old := w.seen
	if after-w.last > w.gap {
		old = nil
	}
	w.last, w.seen = after, make(map[uint64]standing, len(list))
	for _, s := range list {
		o, known := old[s.ID]
		if !known || o.beat.Number != s.beat.Number {
			o = standing{s, after, known}
		}
		w.seen[s.ID] = o
	}
}

// alive returns a gateway whose beat moved, or nil.
func (w *watch) alive() *record.Gateway {
	for _, s := range w.seen {
		if s.moved {
			return &s.Gateway
		}
	}
	return nil
}

// still returns those that had stood still for EvictAfter when a look began.
func (w *watch) still(before time.Duration) (list []standing) {
	for _, s := range w.seen {
		if before-s.since >= EvictAfter {
			list = append(list, s)
		}
	}
	return list
}

// peers is what a gateway sees of all that are beside one another.
type peers struct {
	watch *watch                     // of the goroutine that beats
	speak bool                       // all can go by later rules than this one does; likewise
	seen  atomic.Pointer[[]standing] // in the order of their IDs
	// rules are those that this one goes by, so that nobody comes who cannot.
	rules atomic.Uint32
	// introduced is set once all others know of this one (cluster.Peers).
	introduced atomic.Bool
}

func (p *peers) init() {
	p.watch = newWatch(beatGap)
	p.rules.Store(record.OldestRules)
}

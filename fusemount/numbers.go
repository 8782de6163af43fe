package fusemount

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

const (
	// maxPositions bounds the positions that the listings of one directory remember, some 50
	// bytes each. Who goes on from one that is forgotten may have to start over.
	maxPositions = 1 << 19
	// lastPositions is how many of a pass are left when its older ones are forgotten: its
	// reader goes on behind the last, or goes back a little.
	lastPositions = 1 << 10
	// maxPasses bounds the passes of one directory: as many as have room when all are cut.
	maxPasses = maxPositions / lastPositions
)

// Indices in a pass: behind ".", behind "..", behind the first entry.
const (
	offDot uint64 = iota + 1
	offDotDot
	offFirst
)

// A place in a listing is opaque to the VFS, and a number to the kernel: which pass it is
// of, and how many entries are before it. The first pass has small numbers, since programs
// of 32 bits may know no others: until a listing was forgotten, or a server took the mount over.
const passShift = 32

func indexOf(offset uint64) uint64    { return offset & (1<<passShift - 1) }
func passOf(offset uint64) uint64     { return offset >> passShift }
func atIndex(offset, i uint64) uint64 { return passOf(offset)<<passShift | i }

// numbers are the places of a directory that the kernel was given. Those of one pass are of
// one state of the directory, as far as anybody has read it twice: the kernel goes on in
// what it kept for another handle where it finds the number, and looks for changes only at
// the start. So who begins anew after a change has a pass of his own.
type numbers struct {
	mu      sync.Mutex
	pass    uint64 // of who begins now
	last    uint64 // pass that there is
	began   bool   // somebody has
	changes uint64 // of the directory, when the pass began
	runs    map[uint64]*positions
	uses    uint64 // of passes, so far
	total   int    // positions
}

// positions are those of a pass: list[i] is behind the entry with index first+i.
type positions struct {
	first   uint64
	list    []string
	readers int    // that have not come to the end, as far as is known
	used    uint64 // numbers.uses when a reader came
}

// begin returns the number at which a pass from the first entry on starts, with the
// changes of the directory, begun and over.
func (n *numbers) begin(begun, ended uint64) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.began && (begun != ended || ended != n.changes) {
		n.last++
		n.pass = n.last
	}
	n.began, n.changes = true, ended
	p := n.runs[n.pass]
	if p == nil {
		p = n.add(n.pass, offFirst)
	}
	p.readers++
	n.use(p)
	return n.pass << passShift
}

// over returns the number at which a pass starts that goes on for a reader of whom nothing is
// known, from the first entry on.
func (n *numbers) over() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	p := n.add(n.last, offFirst)
	p.readers++
	n.use(p)
	return n.last<<passShift | offDotDot
}

// end notes that a reader found nothing behind offset.
func (n *numbers) end(offset uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.runs[passOf(offset)]; p != nil && p.readers > 0 {
		p.readers--
	}
}

// add adds a pass, of which the entry with index first comes first. Under mu.
func (n *numbers) add(pass, first uint64) *positions {
	p := &positions{first: first}
	if n.runs == nil {
		n.runs = make(map[uint64]*positions)
	}
	n.runs[pass] = p
	n.makeRoom(p)
	return p
}

// use notes that a reader is in a pass. Under mu.
func (n *numbers) use(p *positions) {
	n.uses++
	p.used, p.readers = n.uses, max(p.readers, 1)
}

// position returns where the VFS goes on behind offset; known reports whether it is
// remembered.
func (n *numbers) position(offset uint64) (pos string, known bool) {
	if indexOf(offset) < offFirst {
		return "", true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.runs[passOf(offset)]; p != nil {
		n.use(p)
	}
	return n.at(offset)
}

// at is position of an entry. Under mu.
func (n *numbers) at(offset uint64) (pos string, known bool) {
	p, i := n.runs[passOf(offset)], indexOf(offset)
	if p == nil || i < p.first || i-p.first >= uint64(len(p.list)) {
		return "", false
	}
	return p.list[i-p.first], true
}

// number returns the offset of the entry at pos, which follows the one at offset prev. Where
// another handle met another entry there, a new pass goes on.
func (n *numbers) number(prev uint64, pos string) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := atIndex(prev, max(indexOf(prev)+1, offFirst))
	if p, known := n.at(next); known && p == pos {
		return next
	}
	p := n.runs[passOf(next)]
	if p != nil && indexOf(next) != p.first+uint64(len(p.list)) {
		n.last++
		p, next = nil, n.last<<passShift|indexOf(next)
	}
	if p == nil {
		p = n.add(passOf(next), indexOf(next))
		n.use(p)
	}
	p.list = append(p.list, pos)
	n.total++
	n.makeRoom(p)
	return next
}

// full reports whether there is more than may be. Under mu.
func (n *numbers) full() bool { return n.total > maxPositions || len(n.runs) > maxPasses }

// makeRoom keeps the bounds. What nobody needs goes first, but for p: passes that were read to the end; then
// what is before the last positions of the others, of p, and then all of others. The longest unused is
// the first of each. Under mu.
func (n *numbers) makeRoom(p *positions) {
	if !n.full() {
		return
	}
	others := slices.SortedFunc(maps.Keys(n.runs), func(a, b uint64) int {
		return cmp.Compare(n.runs[a].used, n.runs[b].used)
	})
	others = slices.DeleteFunc(others, func(pass uint64) bool { return n.runs[pass] == p })
	others = n.drop(others, func(o *positions) bool { return n.full() && o.readers == 0 })
	for _, pass := range others {
		if n.total > maxPositions {
			n.cut(n.runs[pass], lastPositions)
		}
	}
	if n.total > maxPositions {
		n.cut(p, max(len(p.list)/2, lastPositions))
	}
	n.drop(others, func(*positions) bool { return n.full() })
}

// drop forgets passes that are to go, and returns the others. Under mu.
func (n *numbers) drop(passes []uint64, goes func(*positions) bool) (left []uint64) {
	return slices.DeleteFunc(passes, func(pass uint64) bool {
		p := n.runs[pass]
		if !goes(p) {
			return false
		}
		n.total -= len(p.list)
		delete(n.runs, pass)
		return true
	})
}

// cut leaves the newest positions of a pass. Under mu.
func (n *numbers) cut(p *positions, left int) {
	if k := len(p.list) - left; k > 0 {
		p.list, p.first = append([]string(nil), p.list[k:]...), p.first+uint64(k)
		n.total -= k
	}
}

// trim forgets all but the last positions of passes that were not read to the end.
func (n *numbers) trim() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(slices.Collect(maps.Keys(n.runs)), func(p *positions) bool { return p.readers == 0 })
	for _, p := range n.runs {
		n.cut(p, lastPositions)
	}
}

// passes returns one more than the last pass that there is.
func (n *numbers) passes() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last + 1
}

// size returns how many positions and passes are remembered.
func (n *numbers) size() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.total + len(n.runs)
}

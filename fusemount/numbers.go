package fusemount

import "sync"

// maxPositions bounds the positions that the listings of one directory remember, some 50
// bytes each. Who goes on from one that is forgotten counts entries from the first on.
const maxPositions = 1 << 19

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
	order   []uint64 // passes in runs, the oldest first
	total   int      // positions
}

// positions are those of a pass: list[i] is behind the entry with index first+i.
type positions struct {
	first uint64
	list  []string
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
	return n.pass << passShift
}

// position returns where the VFS goes on behind offset; known reports whether it is
// remembered.
func (n *numbers) position(offset uint64) (pos string, known bool) {
	if indexOf(offset) < offFirst {
		return "", true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
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
		p = &positions{first: indexOf(next)}
		if n.runs == nil {
			n.runs = make(map[uint64]*positions)
		}
		n.runs[passOf(next)] = p
		n.order = append(n.order, passOf(next))
	}
	p.list = append(p.list, pos)
	n.total++
	n.forget(p)
	return next
}

// forget keeps the bound: other passes than p go first, and then its older half. Under mu.
func (n *numbers) forget(p *positions) {
	for i := 0; n.total > maxPositions && i < len(n.order); {
		old := n.runs[n.order[i]]
		if old == p {
			i++
			continue
		}
		delete(n.runs, n.order[i])
		n.order = append(n.order[:i], n.order[i+1:]...)
		n.total -= len(old.list)
	}
	if n.total > maxPositions {
		half := len(p.list) / 2
		p.list, p.first = append([]string(nil), p.list[half:]...), p.first+uint64(half)
		n.total -= half
	}
}

// passes returns one more than the last pass that there is.
func (n *numbers) passes() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last + 1
}

// size returns how many are remembered.
func (n *numbers) size() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.total
}

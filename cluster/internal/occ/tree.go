package occ

import (
	"bytes"

	"github.com/tidwall/btree"
)

// Pair is a stored pair, or in a transaction's writes perhaps a deletion.
type Pair struct {
	Key, Value []byte
	Deleted    bool
}

// Tree is an ordered map whose copies are cheap. Its users lock it.
type Tree = btree.BTreeG[Pair]

// treeDegree keeps the small trees of most transactions in one node.
const treeDegree = 16

// NewTree returns an empty Tree.
func NewTree() *Tree {
	return btree.NewBTreeGOptions(func(a, b Pair) bool { return bytes.Compare(a.Key, b.Key) < 0 },
		btree.Options{NoLocks: true, Degree: treeDegree})
}

// TreeIter is an Iter over a Tree, deletions included.
type TreeIter struct {
	it         btree.IterG[Pair]
	start, end []byte
}

// NewTreeIter returns an unpositioned iterator over start <= key < end.
func NewTreeIter(t *Tree, start, end []byte) *TreeIter {
	return &TreeIter{it: t.Iter(), start: start, end: end}
}

// First implements Iter.
func (t *TreeIter) First() bool { return t.it.Seek(Pair{Key: t.start}) && t.inRange() }

// Last implements Iter.
func (t *TreeIter) Last() bool {
	if t.end != nil && t.it.Seek(Pair{Key: t.end}) {
		return t.it.Prev() && t.inRange()
	}
	return t.it.Last() && t.inRange()
}

// Next implements Iter.
func (t *TreeIter) Next() bool { return t.it.Next() && t.inRange() }

// Prev implements Iter.
func (t *TreeIter) Prev() bool { return t.it.Prev() && t.inRange() }

func (t *TreeIter) inRange() bool {
	return keyRange{t.start, t.end}.contains(t.it.Item().Key)
}

// Key implements Iter.
func (t *TreeIter) Key() []byte { return t.it.Item().Key }

// Value implements Iter.
func (t *TreeIter) Value() ([]byte, error) { return t.it.Item().Value, nil }

// Close implements Iter.
func (t *TreeIter) Close() error {
	t.it.Release()
	return nil
}

// mergeIter is what a transaction sees: base under the transaction's own
// writes. It moves in one direction only, that of its first positioning.
type mergeIter struct {
	base, own     Iter
	tree          *TreeIter
	baseOK, ownOK bool
	useOwn        bool
	reverse       bool
}

func newMergeIter(base Iter, own *TreeIter) *mergeIter {
	return &mergeIter{base: base, own: own, tree: own}
}

func (m *mergeIter) First() bool {
	m.reverse, m.baseOK, m.ownOK = false, m.base.First(), m.own.First()
	return m.choose()
}

func (m *mergeIter) Last() bool {
	m.reverse, m.baseOK, m.ownOK = true, m.base.Last(), m.own.Last()
	return m.choose()
}

func (m *mergeIter) Next() bool { return m.advance() }
func (m *mergeIter) Prev() bool { return m.advance() }

func (m *mergeIter) advance() bool {
	if m.useOwn {
		m.ownOK = m.move(m.own)
	} else {
		m.baseOK = m.move(m.base)
	}
	return m.choose()
}

func (m *mergeIter) move(it Iter) bool {
	if m.reverse {
		return it.Prev()
	}
	return it.Next()
}

// choose picks the side to show, and steps over what the transaction
// deleted or replaced.
func (m *mergeIter) choose() bool {
	for {
		if !m.ownOK {
			m.useOwn = false
			return m.baseOK
		}
		if m.baseOK {
			c := bytes.Compare(m.base.Key(), m.own.Key())
			if c == 0 {
				m.baseOK = m.move(m.base)
			} else if c < 0 != m.reverse {
				m.useOwn = false
				return true
			}
		}
		if !m.tree.it.Item().Deleted {
			m.useOwn = true
			return true
		}
		m.ownOK = m.move(m.own)
	}
}

func (m *mergeIter) Key() []byte {
	if m.useOwn {
		return m.own.Key()
	}
	return m.base.Key()
}

func (m *mergeIter) Value() ([]byte, error) {
	if m.useOwn {
		return m.own.Value()
	}
	return m.base.Value()
}

func (m *mergeIter) Close() error {
	_ = m.own.Close()
	return m.base.Close()
}

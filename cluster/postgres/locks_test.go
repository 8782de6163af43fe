package postgres

import (
	"fmt"
	"slices"
	"testing"

	"ogw/cluster"
)

// key is one of directory d: 9 bytes, then a name.
func key(d, name string) []byte { return fmt.Appendf(nil, "d%08s%s", d, name) }

// conflict reports whether two commits wait for each other.
func conflict(a, b *commit) bool {
	an, as := locksOf("s", a)
	bn, bs := locksOf("s", b)
	for i, n := range an {
		if j := slices.Index(bn, n); j >= 0 && (!as[i] || !bs[j]) {
			return true
		}
	}
	return false
}

func TestLocks(t *testing.T) {
	prefix := key("1", "")
	listing := &commit{rangeStarts: [][]byte{prefix}, rangeEnds: [][]byte{cluster.PrefixEnd(prefix)}}
	page := &commit{rangeStarts: [][]byte{key("1", "a")}, rangeEnds: [][]byte{key("1", "b")}}
	everything := &commit{rangeStarts: [][]byte{{}}, rangeEnds: [][]byte{{0xff}}}
	two := &commit{rangeStarts: [][]byte{key("1", "z")}, rangeEnds: [][]byte{key("2", "a")}}
	create := func(d, name string) *commit { return &commit{setKeys: [][]byte{key(d, name)}} }
	remove := &commit{deleteKeys: [][]byte{key("1", "a")}}
	read := &commit{readKeys: [][]byte{key("1", "a")}}
	fence := &commit{expectKeys: [][]byte{key("1", "a")}}
	many := &commit{}
	for i := range maxLocks + 1 {
		many.setKeys = append(many.setKeys, key("3", fmt.Sprint(i)))
	}
	for name, test := range map[string]struct {
		a, b *commit
		want bool
	}{
		"two creates in one directory":    {create("1", "a"), create("1", "b"), false},
		"two creates of one name":         {create("1", "a"), create("1", "a"), true},
		"a create and a listing":          {create("1", "a"), listing, true},
		"a create elsewhere":              {create("2", "a"), listing, false},
		"a removal and a page":            {remove, page, true},
		"a create and a look at the name": {create("1", "a"), read, true},
		"two looks":                       {read, read, false},
		"a removal of what is expected":   {remove, fence, true},
		"two that expect one pair":        {fence, fence, false},
		"a look and a listing":            {read, listing, false},
		"a create and a scan of all":      {create("1", "a"), everything, true},
		"a create in a range of two":      {create("2", "0"), two, true},
		"many pairs and one elsewhere":    {many, create("1", "a"), true},
	} {
		if got := conflict(test.a, test.b); got != test.want {
			t.Errorf("%s: wait for each other: %v", name, got)
		}
		if got := conflict(test.b, test.a); got != test.want {
			t.Errorf("%s, the other way: wait for each other: %v", name, got)
		}
	}
}

func TestLocksAreInOrder(t *testing.T) {
	c := &commit{}
	for i := range 50 {
		c.setKeys = append(c.setKeys, key("1", fmt.Sprint(i)))
		c.readKeys = append(c.readKeys, key("1", fmt.Sprint(i)))
	}
	numbers, shared := locksOf("s", c)
	if !slices.IsSorted(numbers) || len(slices.Compact(slices.Clone(numbers))) != len(numbers) || len(shared) != len(numbers) {
		t.Errorf("locks %v, shared %v", numbers, shared)
	}
	if n := len(numbers); n != 52 { // keys, their prefix, the store
		t.Errorf("%d locks", n)
	}
}

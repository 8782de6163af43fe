package mem

import (
	"ogw/cluster"
	"ogw/cluster/internal/occ"
)

// source is an unchanging tree as an occ.Source.
type source struct{ tree *occ.Tree }

func (s source) Get(key []byte) ([]byte, error) {
	p, ok := s.tree.Get(occ.Pair{Key: key})
	if !ok {
		return nil, nil
	}
	return append([]byte{}, p.Value...), nil
}

func (s source) GetMany(keys, values [][]byte) error {
	for i, key := range keys {
		values[i], _ = s.Get(key)
	}
	return nil
}

func (s source) Iter(start, end []byte, _ cluster.ScanOptions) (occ.Iter, error) {
	return occ.NewTreeIter(s.tree, start, end), nil
}

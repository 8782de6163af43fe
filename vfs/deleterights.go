package vfs

import "ogw/vfs/internal/keypath"

// removable returns the items, of one directory, that the subject may delete as far
// as the bucket's grants and its policy decide; the others get the denial as result.
// With a policy each key is asked for by itself.
func (j *judge) removable(items []*deleteItem, at *keypath.Place) ([]*deleteItem, error) {
	by, err := j.byKeys()
	if err != nil {
		return nil, err
	}
	if !by {
		if err := j.remove(&items[0].key, at, nil); err != nil {
			return nil, refuse(items, "", err)
		}
		return items, nil
	}
	var left []*deleteItem
	for _, it := range items {
		j.key = it.key.Below()
		err := j.remove(&it.key, at, nil)
		if err == nil {
			left = append(left, it)
		} else if err = refuse([]*deleteItem{it}, "", err); err != nil {
			return nil, err
		}
	}
	return left, nil
}

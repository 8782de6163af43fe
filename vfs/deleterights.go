package vfs

import (
	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// removable returns the items, of one directory, that the subject may delete as far
// as the bucket's grants and its policy decide; the others get the denial as result.
// With a policy each key is asked for by itself.
func removable(j *rights.Judge, items []*deleteItem, at *keypath.Place) ([]*deleteItem, error) {
	by, err := j.ByKeys()
	if err != nil {
		return nil, err
	}
	if !by {
		if err := j.Remove(&items[0].key, at, nil); err != nil {
			return nil, refuse(items, "", err)
		}
		return items, nil
	}
	var left []*deleteItem
	for _, it := range items {
		j.Key = it.key.Below()
		err := j.Remove(&it.key, at, nil)
		if err == nil {
			left = append(left, it)
		} else if err = refuse([]*deleteItem{it}, "", err); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// flagsOf returns the flags of a directory that forbid something. It is only read
// if its entry tells that there are any.
func flagsOf(r cluster.Reader, d keypath.Step) (FileFlags, error) {
	if d.Tells&record.TellsFlags == 0 {
		return 0, nil
	}
	n, err := record.GetInode(r, d.Ino)
	if err != nil {
		return 0, err
	}
	return perm.FlagsOf(n) & perm.HeldFlags, nil
}

package listing

import (
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// inodeChunk is how many inodes are allocated together, in some 16 KiB.
const inodeChunk = 32

// Object is one key of a page.
type Object struct {
	Key   string
	Ino   record.Ino
	Inode *record.Inode // nil with NamesOnly, and of an entry without an inode
}

// readInodes reads the inodes of objects that are not known yet in one go, sorted by number.
func readInodes(r cluster.Reader, objects []Object) error {
	order := make([]int, 0, len(objects))
	for i := range objects {
		if objects[i].Inode == nil {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return int(int64(objects[a].Ino) - int64(objects[b].Ino)) })
	keys, bytes := make([][]byte, len(order)), make([]byte, 0, len(order)*record.Key1Bytes)
	for i, at := range order {
		from := len(bytes)
		bytes = record.AppendInodeKey(bytes, objects[at].Ino)
		keys[i] = slices.Clip(bytes[from:])
	}
	values, err := r.GetMany(keys)
	if err != nil {
		return err
	}
	var room []record.Inode // none outlives the page
	for i, at := range order {
		if values[i] == nil {
			continue
		}
		if len(room) == 0 {
			room = make([]record.Inode, min(inodeChunk, len(order)-i))
		}
		n := &room[0]
		room = room[1:]
		n.Ino = objects[at].Ino
		if err := n.Decode(values[i]); err != nil {
			return err
		}
		objects[at].Inode = n
	}
	return nil
}

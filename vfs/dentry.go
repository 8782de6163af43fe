package vfs

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"
)

// dentry is one entry of a directory: a stored name, whether it is a
// directory (which is part of the key), and the inode.
//
// Value: inode (8 bytes), then one byte: in its low four bits the type of the
// inode (mode >> 12), in the upper ones what the entry tells of the mode.
type dentry struct {
	name string // stored name, without the slash
	dir  bool
	ino  Ino
	mode uint32 // type bits
	tells
}

// tells is what the entry of a directory tells of the directory's mode and
// flags, so that who goes by it at an object door need not read the inode
// (modes.go, fileflags.go). Of the mode, an entry older than format 2 tells
// nothing: then the inode is asked.
type tells byte

const (
	// tellsOpen: the mode keeps nobody from listing or passing the directory.
	tellsOpen tells = 1 << (iota + 4)
	// tellsUnchosen: nobody chose the mode, so that it denies nothing.
	tellsUnchosen
	// tellsFlags: the directory has FileFlags that forbid something.
	tellsFlags

	tellsMask    = tellsOpen | tellsUnchosen | tellsFlags
	dentryTypeOf = 0x0f
)

const dentryValueBytes = 9

func (e *dentry) key(parent Ino) []byte {
	if e.dir {
		return dirEntryKey(parent, e.name)
	}
	return fileEntryKey(parent, e.name)
}

// s3name is the entry's part of an S3 key: directories end in "/".
func (e *dentry) s3name() string {
	if e.dir {
		return e.name + "/"
	}
	return e.name
}

func (e *dentry) value() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, dentryValueBytes), uint64(e.ino))
	return append(b, byte(e.mode>>12)|byte(e.tells))
}

func putDentry(t cluster.Txn, parent Ino, e *dentry) error {
	return t.Set(e.key(parent), e.value())
}

// decodeDentry decodes the part of the key behind the parent, and the value.
func decodeDentry(keyName, value []byte) (dentry, error) {
	if len(value) != dentryValueBytes {
		return dentry{}, fmt.Errorf("%w: dentry %q", ErrCorrupt, keyName)
	}
	e := dentry{ino: Ino(binary.BigEndian.Uint64(value))}
	e.mode, e.tells = dentryType(value[8])
	if n := len(keyName); n > 0 && keyName[n-1] == '/' {
		e.name, e.dir = string(keyName[:n-1]), true
	} else {
		e.name = string(keyName)
	}
	if e.dir != (e.mode == ModeDirectory) {
		return dentry{}, fmt.Errorf("%w: dentry %q has type %o", ErrCorrupt, keyName, e.mode)
	}
	return e, nil
}

// dentryType splits the last byte of an entry's value.
func dentryType(b byte) (mode uint32, t tells) {
	return uint32(b&dentryTypeOf) << 12, tells(b) & tellsMask
}

// getDentry reads the entry of that stored name and kind; nil if there is none.
func getDentry(r cluster.Reader, parent Ino, name string, dir bool) (*dentry, error) {
	e := dentry{name: name, dir: dir}
	v, err := r.Get(e.key(parent))
	if err != nil || v == nil {
		return nil, err
	}
	e, err = decodeDentry([]byte(e.s3name()), v)
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// getPair reads the directory and the other entry of one stored name.
func getPair(r cluster.Reader, parent Ino, name string) (dir, file *dentry, err error) {
	vs, err := r.GetMany([][]byte{fileEntryKey(parent, name), dirEntryKey(parent, name)})
	if err != nil {
		return nil, nil, err
	}
	if vs[0] != nil {
		e, err := decodeDentry([]byte(name), vs[0])
		if err != nil {
			return nil, nil, err
		}
		file = &e
	}
	if vs[1] != nil {
		e, err := decodeDentry([]byte(name+"/"), vs[1])
		if err != nil {
			return nil, nil, err
		}
		dir = &e
	}
	return dir, file, nil
}

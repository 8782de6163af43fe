package record

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
)

// Dentry is one entry of a directory: a stored name, whether it is a
// directory (which is part of the key), and the inode.
//
// Value: inode (8 bytes), then one byte: in its low four bits the type of the
// inode (mode >> 12), in the upper ones what the entry repeats of the mode.
type Dentry struct {
	Name string // stored name, without the slash
	Dir  bool
	Ino  Ino
	Mode uint32 // type bits
	DirBits
}

// DirBits is what the entry of a directory repeats of the directory's mode, flags and
// policy, so that who goes by it at an object door need not read the inode
// (package perm). Of the mode, an entry older than format 2 repeats
// nothing: then the inode is asked.
type DirBits byte

const (
	// DirOpen: the mode keeps nobody from listing or passing the directory.
	DirOpen DirBits = 1 << (iota + 4)
	// DirUnchosen: nobody chose the mode, so that it denies nothing.
	DirUnchosen
	// DirFlags: the directory has FileFlags that forbid something.
	DirFlags
	// DirPolicy: the directory is a bucket with a policy, or one that owns what
	// others write into it.
	DirPolicy

	dirBitsMask  = DirOpen | DirUnchosen | DirFlags | DirPolicy
	dentryTypeOf = 0x0f
)

const dentryValueBytes = 9

// DentryPairBytes is how long a dentry is at most, with its key, in bytes.
const DentryPairBytes = cluster.MaxKeyBytes + dentryValueBytes

func (e *Dentry) Key(parent Ino) []byte {
	if e.Dir {
		return DirEntryKey(parent, e.Name)
	}
	return FileEntryKey(parent, e.Name)
}

// S3Name is the entry's part of an S3 key: directories end in "/".
func (e *Dentry) S3Name() string {
	if e.Dir {
		return e.Name + "/"
	}
	return e.Name
}

func (e *Dentry) Value() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, dentryValueBytes), uint64(e.Ino))
	return append(b, byte(e.Mode>>12)|byte(e.DirBits))
}

func PutDentry(t cluster.Txn, parent Ino, e *Dentry) error {
	return t.Set(e.Key(parent), e.Value())
}

// DecodeDentry decodes the part of the key behind the parent, and the value.
func DecodeDentry(keyName, value []byte) (Dentry, error) {
	e := Dentry{}
	if n := len(keyName); n > 0 && keyName[n-1] == '/' {
		e.Name, e.Dir = string(keyName[:n-1]), true
	} else {
		e.Name = string(keyName)
	}
	if err := e.decodeValue(value); err != nil {
		return Dentry{}, err
	}
	return e, nil
}

// DentryOf is the entry of that stored name and kind, with the value.
func DentryOf(name string, dir bool, value []byte) (Dentry, error) {
	e := Dentry{Name: name, Dir: dir}
	err := e.decodeValue(value)
	return e, err
}

// decodeValue sets what the value of an entry says, whose name and kind are set.
func (e *Dentry) decodeValue(value []byte) error {
	var ok bool
	if e.Ino, e.Mode, e.DirBits, ok = DecodeDentryValue(value); !ok {
		return fmt.Errorf("%w: dentry %q", fserr.ErrCorrupt, e.S3Name())
	}
	if e.Dir != (e.Mode == ModeDirectory) {
		return fmt.Errorf("%w: dentry %q has type %o", fserr.ErrCorrupt, e.S3Name(), e.Mode)
	}
	return nil
}

// DecodeDentryValue splits an entry's value; ok is false if it is none.
func DecodeDentryValue(v []byte) (ino Ino, mode uint32, t DirBits, ok bool) {
	if len(v) != dentryValueBytes {
		return 0, 0, 0, false
	}
	last := v[dentryValueBytes-1]
	return Ino(binary.BigEndian.Uint64(v)), uint32(last&dentryTypeOf) << 12, DirBits(last) & dirBitsMask, true
}

// GetDentry reads the entry of that stored name and kind; nil if there is none.
func GetDentry(r cluster.Reader, parent Ino, name string, dir bool) (*Dentry, error) {
	e := &Dentry{Name: name, Dir: dir}
	v, err := r.Get(e.Key(parent))
	if err != nil || v == nil {
		return nil, err
	}
	if err := e.decodeValue(v); err != nil {
		return nil, err
	}
	return e, nil
}

// GetDentries reads the directory and the other entry of one stored name.
func GetDentries(r cluster.Reader, parent Ino, name string) (dir, file *Dentry, err error) {
	vs, err := r.GetMany([][]byte{FileEntryKey(parent, name), DirEntryKey(parent, name)})
	if err != nil {
		return nil, nil, err
	}
	if vs[0] != nil {
		e, err := DentryOf(name, false, vs[0])
		if err != nil {
			return nil, nil, err
		}
		file = &e
	}
	if vs[1] != nil {
		e, err := DentryOf(name, true, vs[1])
		if err != nil {
			return nil, nil, err
		}
		dir = &e
	}
	return dir, file, nil
}

// DecodeLongName decodes the value of key 'h': a stored name, with a slash
// behind a directory's.
func DecodeLongName(b []byte) (Dentry, error) {
	n := len(b)
	switch {
	case n == 0:
		return Dentry{}, fmt.Errorf("%w: empty long name", fserr.ErrCorrupt)
	case b[n-1] == '/':
		return Dentry{Name: string(b[:n-1]), Dir: true}, nil
	}
	return Dentry{Name: string(b)}, nil
}

// RefreshEntry brings the entry of a directory in line with its mode, after each
// change of that.
func RefreshEntry(t cluster.Txn, n *Inode) error {
	if !n.IsDir() || n.Ino == RootIno {
		return nil
	}
	e, err := GetDentry(t, n.Parent, n.Name, true)
	if err != nil || e == nil || e.Ino != n.Ino || e.DirBits == n.DirBits() {
		return err
	}
	return PutDentry(t, n.Parent, EntryOf(n))
}

package record

import (
	"encoding/binary"
	"fmt"

	"ogw/vfs/internal/fserr"
)

// LockerKey is the key of what a remote client (lock.RemotePrefix) has of a file's locks, so
// that all that it has is found. The value is how many locks and waiting requests that are.
func LockerKey(client string, ino uint64) []byte {
	k := append(AppendEscaped([]byte{TabLocker}, client), 0, 1)
	return binary.BigEndian.AppendUint64(k, ino)
}

// Lockers returns the bounds of the keys of clients whose names begin with a prefix.
func Lockers(prefix string) (from, to []byte) {
	from = AppendEscaped([]byte{TabLocker}, prefix)
	to = append([]byte(nil), from...)
	for i := len(to) - 1; ; i-- { // TabLocker is no 0xff
		if to[i]++; to[i] != 0 {
			return from, to[:i+1]
		}
	}
}

// ParseLockerKey is the inverse of LockerKey.
func ParseLockerKey(k []byte) (client string, ino uint64, err error) {
	if n := len(k) - 8; n > 0 && k[0] == TabLocker {
		if client, ok := unescaped(k[1:n]); ok {
			return client, binary.BigEndian.Uint64(k[n:]), nil
		}
	}
	return "", 0, fmt.Errorf("%w: key of a client with locks %x", fserr.ErrCorrupt, k)
}

// EncodeLocker returns the value of a LockerKey.
func EncodeLocker(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// DecodeLocker is the inverse; 0: it makes no sense.
func DecodeLocker(v []byte) int {
	n, size := binary.Uvarint(v)
	if size != len(v) || n > 1<<31 {
		return 0
	}
	return int(n)
}

// Lockers counts what remote clients have of the locks of a file.
func (r *FileLocks) Lockers() map[string]int {
	var counts map[string]int
	add := func(client string) {
		if counts == nil {
			counts = make(map[string]int)
		}
		counts[client]++
	}
	for s := range r.Held {
		for i := range r.Held[s] {
			if o := &r.Held[s][i].Owner; o.Remote() {
				add(o.Client)
			}
		}
	}
	for i := range r.Waiting {
		if o := &r.Waiting[i].Lock.Owner; o.Remote() {
			add(o.Client)
		}
	}
	return counts
}

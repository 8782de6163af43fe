package record

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/lock"
)

// Share reservations of every mode, held and waiting, are read as they were written; flags that
// nothing writes are none.
func TestShareFlags(t *testing.T) {
	o := lock.Owner{Client: lock.RemotePrefix + "m s h", ID: "a"}
	for mode := range uint8(16) {
		l := lock.Lock{Owner: o, Type: lock.Reserve(mode&3, mode>>2), End: lock.EOF, Era: 3}
		f := &FileLocks{Holders: map[lock.Owner]LockHolder{o: {}}, Waits: map[uint64]uint64{7: 1}}
		f.Held[lock.Share] = []lock.Lock{l}
		f.Held[lock.Range] = []lock.Lock{{Owner: o, Type: lock.Exclusive, End: 5}}
		f.Waiting = []lock.Waiter{{Space: lock.Share, Lock: l, Ticket: 7}}
		got, err := DecodeFileLocks(f.Encode())
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Fatalf("mode %d: %+v, %v", mode, got, err)
		}
	}
	f := &FileLocks{Holders: map[lock.Owner]LockHolder{o: {}}}
	f.Held[lock.Share] = []lock.Lock{{Owner: o, Type: lock.Reserve(1, 2), End: lock.EOF}}
	b := f.Encode()
	at := bytes.LastIndexByte(b, 0x94)
	for flags := range 256 {
		b[at] = byte(flags)
		_, err := DecodeFileLocks(b)
		if known := flags <= 3 || flags&15 == 4; known != (err == nil) || err != nil && !errors.Is(err, fserr.ErrCorrupt) {
			t.Errorf("flags %#x: %v", flags, err)
		}
	}
}

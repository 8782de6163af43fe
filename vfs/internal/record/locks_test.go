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

// What an owner may not know of is read as it was written; what programs of before wrote of it is all
// of the file; and what makes no sense is none.
func TestUntold(t *testing.T) {
	o, p := lock.Owner{Client: lock.RemotePrefix + "m s h", ID: "a"}, lock.Owner{Client: lock.RemotePrefix + "m s h", ID: "b"}
	f := &FileLocks{Holders: map[lock.Owner]LockHolder{o: {Untold: []UntoldGrant{{Ticket: 7, Start: 5, End: 8}, {Ticket: 9, Space: lock.Share, End: lock.EOF}}}, p: {}},
		Waits: map[uint64]uint64{}}
	f.Held[lock.Range] = []lock.Lock{{Owner: o, End: 8, Era: 3}, {Owner: p, Start: 10, End: 12, Era: 3}}
	b := f.Encode()
	if got, err := DecodeFileLocks(b); err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("%+v, %v", got, err)
	}
	before := &FileLocks{Holders: map[lock.Owner]LockHolder{o: {Closing: 7}, p: {}}}
	before.Held = f.Held
	got, err := DecodeFileLocks(before.Encode())
	if want := (LockHolder{Untold: []UntoldGrant{{Ticket: 7, End: lock.EOF}}}); err != nil || !reflect.DeepEqual(got.Holders[o], want) {
		t.Errorf("of before: %+v, %v", got, err)
	}
	at := bytes.Index(b, []byte{9, byte(lock.Share)})
	b[at+1] = byte(lock.Spaces)
	if _, err := DecodeFileLocks(b); !errors.Is(err, fserr.ErrCorrupt) {
		t.Errorf("a space that there is none of: %v", err)
	}
}

package record

import (
	"reflect"
	"testing"
)

func TestStored(t *testing.T) {
	n := &Inode{Ino: 5, Mode: ModeRegular}
	plain := len(n.Encode())
	check := func(keeper, seq uint64, want int64) {
		t.Helper()
		got, err := DecodeInode(5, n.Encode())
		if err != nil || !reflect.DeepEqual(got, n) {
			t.Fatalf("%+v, %v, want %+v", got, err, n)
		}
		if off := got.Stored.Before(keeper, seq); off != want {
			t.Errorf("%d of %d is stored before %d, want %d", seq, keeper, off, want)
		}
	}
	n.Stored.Note(StoredWrites{1, 5, 100})
	check(1, 5, 100)
	check(1, 6, 0)
	check(2, 5, 0)
	n.Stored.Note(StoredWrites{1, 7, 50}) // the next flush, of newer writes, came less far
	check(1, 5, 100)
	check(1, 6, 50)
	n.Stored.Note(StoredWrites{1, 7, StoredWhole})
	check(1, 5, StoredWhole)
	check(1, 8, 0)
	if len(n.Stored) != 1 {
		t.Errorf("it says %+v", n.Stored)
	}
	before := n.Stored
	for k := range uint64(maxStored) {
		n.Stored.Note(StoredWrites{10 + k, 1, 1})
	}
	check(1, 7, 0)
	check(10, 1, 1)
	if len(n.Stored) != maxStored || before[0].Keeper != 1 {
		t.Errorf("it says %+v, and before %+v", n.Stored, before)
	}
	n.Stored = nil
	if len(n.Encode()) != plain {
		t.Error("it takes room where nothing is said")
	}
}

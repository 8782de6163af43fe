package record

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"testing"
	"time"
)

var someTimes = []Time{{}, {0, 1}, {-1, 999_999_999}, {-5, 0}, TimeNS(math.MaxInt64), TimeNS(math.MinInt64),
	{9_223_372_036, 854_775_808}, {-9_223_372_037, 0}, {10_000_000_000, 5}, {-62135596801, 1}, {253402300800, 9},
	{math.MaxInt64, 999_999_999}, {math.MinInt64, 0}}

func TestTime(t *testing.T) {
	for _, x := range someTimes {
		n := &Inode{Ino: 5, Mode: ModeRegular, Atime: x, Mtime: Time{7, 8}, Name: "n"}
		got, err := DecodeInode(5, n.Encode())
		if err != nil || got.Atime != x || got.Mtime != n.Mtime {
			t.Errorf("%v: as atime %v, %v, %v", x, got.Atime, got.Mtime, err)
		}
		m, c, err := ParseDirTime(EncodeDirTime(x, 77))
		if m != x || c != 77 || err != nil {
			t.Errorf("%v: of a directory %v, %d, %v", x, m, c, err)
		}
		if y := x.Date().UTC().Year(); y < 1 || y > 9999 {
			t.Errorf("%v: a date of year %d", x, y)
		}
		if !x.far() && TimeNS(x.UnixNS()) != x {
			t.Errorf("%v: %v by nanoseconds", x, TimeNS(x.UnixNS()))
		}
	}
	for _, ns := range []int64{0, 1, -1, 1e9, -1e9, math.MaxInt64, math.MinInt64} {
		if x := TimeNS(ns); !ValidTime(x) || x.Time() != time.Unix(0, ns) || !x.far() && x.UnixNS() != ns {
			t.Errorf("%d: %v, %d", ns, x, x.UnixNS())
		}
	}
}

// TestOldTimes reads records as they were before far times, and writes the same
// for all others.
func TestOldTimes(t *testing.T) {
	n := &Inode{Ino: 5, Mode: ModeRegular, Atime: TimeNS(-3), Mtime: TimeNS(1 << 60), CtimeNS: 3, BtimeNS: 4, Name: "n"}
	old := []byte{inodeVersion, 0, 0}
	old = binary.AppendUvarint(old, uint64(n.Mode))
	old = append(old, make([]byte, 10)...)
	for _, ns := range []int64{-3, 1 << 60, 3, 4} {
		old = binary.BigEndian.AppendUint64(old, uint64(ns))
	}
	old = append(old, 1, 'n', 0)
	got, err := DecodeInode(5, old)
	if err != nil || !reflect.DeepEqual(got, n) {
		t.Errorf("%+v, %v", got, err)
	}
	if !bytes.Equal(n.Encode(), old) {
		t.Errorf("written anew: %x, was %x", n.Encode(), old)
	}
}

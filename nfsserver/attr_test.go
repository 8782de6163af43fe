package nfsserver

import (
	"math"
	"ogw/vfs"
	"testing"
	"time"

	"ogw/nfsserver/xdr"
)

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		at        vfs.Time
		sec, nsec uint32
	}{
		{vfs.Time{}, 0, 0},
		{vfs.TimeNS(1_500_000_001), 1, 500_000_001},
		{vfs.TimeNS(-1), 0, 0},
		{vfs.TimeNS(math.MaxInt64), math.MaxUint32, 0},
		{vfs.Time{Sec: math.MaxInt64}, math.MaxUint32, 0},
		{vfs.Time{Sec: math.MaxUint32, Nsec: 5}, math.MaxUint32, 5},
		{vfs.TimeOf(time.Date(2100, 1, 1, 0, 0, 0, 7, time.UTC)), 4102444800, 7},
	} {
		var w xdr.Writer
		putTime(&w, c.at)
		r := xdr.NewReader(w.B)
		if s, n := r.Uint32(), r.Uint32(); s != c.sec || n != c.nsec {
			t.Errorf("%v: %d s %d ns", c.at, s, n)
		}
	}
	r := xdr.NewReader([]byte{0, 0, 0, 1, 0xff, 0, 0, 0})
	if getTime(&r); r.Err() == nil {
		t.Error("nanoseconds over a second are accepted")
	}
}

func TestDevices(t *testing.T) {
	for _, c := range [][2]uint32{{1, 3}, {8, 0}, {0xfff, 0xfffff}, {259, 300}} {
		d, ok := makeDev(c[0], c[1])
		if ma, mi := splitDev(d); !ok || ma != c[0] || mi != c[1] {
			t.Errorf("%v: %d:%d", c, ma, mi)
		}
	}
	if _, ok := makeDev(0x1000, 0); ok {
		t.Error("major number too large is accepted")
	}
}

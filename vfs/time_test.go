package vfs

import (
	"bytes"
	"encoding/binary"
	"errors"
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
		n := &inode{ino: 5, mode: ModeRegular, atime: x, mtime: Time{7, 8}, name: "n"}
		got, err := decodeInode(5, n.encode())
		if err != nil || got.atime != x || got.mtime != n.mtime {
			t.Errorf("%v: as atime %v, %v, %v", x, got.atime, got.mtime, err)
		}
		m, c, err := parseDirTime(encodeDirTime(x, 77))
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
		if x := TimeNS(ns); !x.valid() || x.Time() != time.Unix(0, ns) || !x.far() && x.UnixNS() != ns {
			t.Errorf("%d: %v, %d", ns, x, x.UnixNS())
		}
	}
}

// TestOldTimes reads records as they were before far times, and writes the same
// for all others.
func TestOldTimes(t *testing.T) {
	n := &inode{ino: 5, mode: ModeRegular, atime: TimeNS(-3), mtime: TimeNS(1 << 60), ctimeNS: 3, btimeNS: 4, name: "n"}
	old := []byte{inodeVersion, 0, 0}
	old = binary.AppendUvarint(old, uint64(n.mode))
	old = append(old, make([]byte, 10)...)
	for _, ns := range []int64{-3, 1 << 60, 3, 4} {
		old = binary.BigEndian.AppendUint64(old, uint64(ns))
	}
	old = append(old, 1, 'n', 0)
	got, err := decodeInode(5, old)
	if err != nil || !reflect.DeepEqual(got, n) {
		t.Errorf("%+v, %v", got, err)
	}
	if !bytes.Equal(n.encode(), old) {
		t.Errorf("written anew: %x, was %x", n.encode(), old)
	}
}

// TestFarTimes sets times beyond 64 bits of nanoseconds, and takes them back.
func TestFarTimes(t *testing.T) {
	fs := openTest(t, openLocal(t))
	bucket, err := fs.CreateBucket(bg, "bbb", Root)
	if err != nil {
		t.Fatal(err)
	}
	b := bucket.Ino
	for _, mode := range []uint32{ModeRegular, ModeDirectory} {
		name := map[uint32]string{ModeRegular: "f", ModeDirectory: "d"}[mode]
		var a Attr
		var err error
		if mode == ModeDirectory {
			a, err = fs.Mkdir(bg, Root, b, name, 0o755)
		} else {
			a, err = fs.Mknod(bg, Root, b, name, mode|0o644, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range someTimes {
			if _, err := fs.SetAttr(bg, Root, a.Ino, SetAttr{Atime: &x, Mtime: &x}); err != nil {
				t.Fatal(err)
			}
			got, err := fs.GetAttr(bg, a.Ino)
			if err != nil || got.Atime != x || got.Mtime != x {
				t.Errorf("%s: %v, %v, %v; want %v", name, got.Atime, got.Mtime, err, x)
			}
		}
	}
	info, err := fs.HeadObject(bg, "bbb", "f", GetOptions{})
	if err != nil || info.Modified.UTC().Year() != 1 {
		t.Errorf("the object: %v, %v", info.Modified, err)
	}
	bad := Time{0, 1_000_000_000}
	if _, err := fs.SetAttr(bg, Root, b, SetAttr{Mtime: &bad}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a second of nanoseconds: %v", err)
	}
}

package vfs

import (
	"errors"
	"math"
	"testing"
)

var farTimes = []Time{{}, {Sec: -1, Nsec: 999_999_999}, TimeNS(math.MaxInt64), TimeNS(math.MinInt64),
	{Sec: 9_223_372_036, Nsec: 854_775_808}, {Sec: -9_223_372_037}, {Sec: 10_000_000_000, Nsec: 5},
	{Sec: -62135596801, Nsec: 1}, {Sec: 253402300800, Nsec: 9}, {Sec: math.MaxInt64, Nsec: 999_999_999}, {Sec: math.MinInt64}}

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
			a, err = fs.Mknod(bg, Root, b, name, NodeOptions{Mode: mode | 0o644})
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range farTimes {
			if _, err := fs.SetAttr(bg, Root, a.Ino, SetAttr{Atime: &x, Mtime: &x}); err != nil {
				t.Fatal(err)
			}
			got, err := fs.GetAttr(bg, a.Ino)
			if err != nil || got.Atime != x || got.Mtime != x {
				t.Errorf("%s: %v, %v, %v; want %v", name, got.Atime, got.Mtime, err, x)
			}
		}
	}
	info, err := fs.HeadObject(bg, ObjectName{"bbb", "f"}, GetOptions{})
	if err != nil || info.Modified.UTC().Year() != 1 {
		t.Errorf("the object: %v, %v", info.Modified, err)
	}
	bad := Time{Nsec: 1_000_000_000}
	if _, err := fs.SetAttr(bg, Root, b, SetAttr{Mtime: &bad}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a second of nanoseconds: %v", err)
	}
}

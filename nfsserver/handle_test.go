package nfsserver

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ogw/vfs"
)

// testSealer is one over a namespace of that ID and a secret of its own.
func testSealer(t testing.TB, fsid uint64, secret byte) *sealer {
	t.Helper()
	s, err := newSealer(fsid, bytes.Repeat([]byte{secret}, vfs.StoreSecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHandleRoundTrip(t *testing.T) {
	s := testSealer(t, 42, 1)
	h := handle{export: 7, ino: 1 << 50, gen: 9}
	b := s.append(nil, h)
	if len(b) != handleBytes || len(b) > maxHandle {
		t.Fatalf("%d bytes", len(b))
	}
	got, err := testSealer(t, 42, 1).parse(b) // after a restart, or on another gateway
	if err != nil || got != h {
		t.Fatalf("%v, %v", got, err)
	}
}

// TestHandleBytes: the bytes of a handle are those that clients have kept since a release
// before, wherever they are put.
func TestHandleBytes(t *testing.T) {
	const want = "032f385300000007000400000000000000000009df9dc5598ead68560003c71e9789e052"
	got := testSealer(t, 42, 1).append([]byte("before"), handle{export: 7, ino: 1 << 50, gen: 9})
	if fmt.Sprintf("%x", got[len("before"):]) != want {
		t.Errorf("%x, want %s", got, want)
	}
}

func TestBadHandles(t *testing.T) {
	s := testSealer(t, 42, 1)
	good := s.append(nil, handle{1, 2, 3})
	for i := range good {
		for bit := range 8 {
			b := append([]byte(nil), good...)
			b[i] ^= 1 << bit
			if _, err := s.parse(b); !errors.Is(err, ErrBadHandle) && !errors.Is(err, ErrStale) {
				t.Fatalf("bit %d of byte %d flipped: %v", bit, i, err)
			}
		}
	}
	for n := range len(good) {
		if _, err := s.parse(good[:n]); !errors.Is(err, ErrBadHandle) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	if _, err := s.parse(append(good, 0)); !errors.Is(err, ErrBadHandle) {
		t.Errorf("one byte more: %v", err)
	}
	if _, err := s.parse(testSealer(t, 43, 1).append(nil, handle{1, 2, 3})); !errors.Is(err, ErrStale) {
		t.Errorf("of another namespace: %v", err)
	}
	forged := testSealer(t, 42, 2).append(nil, handle{1, 2, 3})
	if _, err := s.parse(forged); !errors.Is(err, ErrBadHandle) {
		t.Errorf("by who knows the namespace's ID alone: %v", err)
	}
	for version, n := range map[byte]int{1: handleBytesV1, 2: handleBytesV2} {
		old := append([]byte{version}, make([]byte, n-1)...)
		if _, err := s.parse(old); !errors.Is(err, ErrStale) {
			t.Errorf("of version %d: %v", version, err)
		}
	}
}

func TestCookiesAreStableAndDistinct(t *testing.T) {
	s, again := testSealer(t, 1, 1), testSealer(t, 1, 1)
	seen := make(map[uint64]string)
	for i := range 200_000 {
		pos := fmt.Sprintf("file%d", i)
		c := s.cookie(pos)
		if c != again.cookie(pos) {
			t.Fatal("differs after a restart")
		}
		if c < cookieFirst || c>>63 != 0 {
			t.Fatalf("cookie %x is reserved", c)
		}
		if o, ok := seen[c]; ok {
			t.Fatalf("%q and %q have one cookie", o, pos)
		}
		seen[c] = pos
	}
	if s.cookie("a") == s.cookie("a\x00") || s.cookie("") == s.cookie("\x00") {
		t.Error("padding makes positions equal")
	}
}

func FuzzHandle(f *testing.F) {
	s := testSealer(f, 5, 1)
	f.Add(s.append(nil, handle{1, 2, 3}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := s.parse(b)
		if err != nil {
			return
		}
		if again := s.append(nil, h); string(again) != string(b) {
			t.Fatal("accepts a handle that it would not make")
		}
	})
}

func TestCookieCache(t *testing.T) {
	c := newCookieCache()
	block := func(dir vfs.Ino, start uint64, n int) *cookieBlock {
		b := &cookieBlock{dir: dir, start: start}
		for i := range n {
			b.add(start+uint64(i)+1, fmt.Sprintf("pos%d", start+uint64(i)+1))
		}
		return b
	}
	c.put(block(1, 0, 100))
	c.put(block(1, 100, 100))
	c.put(block(2, 0, 1))
	for _, x := range []struct {
		dir    vfs.Ino
		cookie uint64
		want   string
	}{{1, 1, "pos1"}, {1, 100, "pos100"}, {1, 200, "pos200"}, {2, 1, "pos1"}, {2, 2, ""}, {3, 1, ""}} {
		if got, _ := c.get(x.dir, x.cookie); got != x.want {
			t.Errorf("directory %d, cookie %d: %q", x.dir, x.cookie, got)
		}
	}
	before := c.bytes
	c.put(block(1, 0, 100))
	if c.bytes != before || len(c.dirs[1]) != 2 {
		t.Errorf("the same listing again: %d bytes, were %d", c.bytes, before)
	}
	for i := range 3000 {
		c.put(block(vfs.Ino(10+i), 0, 1000))
	}
	sum := 0
	for e := c.lru.Front(); e != nil; e = e.Next() {
		sum += e.Value.(*cookieBlock).size()
	}
	if c.bytes > maxCookieBytes || sum != c.bytes {
		t.Errorf("%d bytes, sum %d", c.bytes, sum)
	}
	if _, ok := c.get(1, 1); ok {
		t.Error("the oldest listing is still there")
	}
}

// TestRememberedHandles: a handle that was found good makes no other good
// that differs from it in any bit.
func TestRememberedHandles(t *testing.T) {
	s := testSealer(t, 7, 1)
	h := handle{export: 3, ino: 1 << 40, gen: 9}
	good := s.append(nil, h)
	for range 2 { // checked, then remembered
		if got, err := s.parse(good); err != nil || got != h {
			t.Fatalf("%+v %v", got, err)
		}
	}
	for bit := range 8 * len(good) {
		bad := slices.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if got, err := s.parse(bad); err == nil {
			t.Errorf("bit %d: %+v", bit, got)
		}
	}
	// Another inode takes the slot, and the first one is found good again.
	next := handle{export: 3, ino: h.ino + validSlots, gen: 1}
	for _, want := range []handle{next, h, next} {
		if got, err := s.parse(s.append(nil, want)); err != nil || got != want {
			t.Errorf("%+v %v, want %+v", got, err, want)
		}
	}
}

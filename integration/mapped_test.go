package integration

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ogw/integration/doors"
	"ogw/integration/testenv"
)

// TestMappedBesideDoors maps a file and changes its size over NFS: the mapping
// follows, as it would if the change came through the mount. What is stored
// behind the old end is kept, and what is cut off is a fault, not a store that
// makes the file longer again. The program never asks for the size.
func TestMappedBesideDoors(t *testing.T) {
	s := newServer(t, options{})
	s.makeBucket("mapped")
	nfs, err := doors.DialNFS(s.NFS, "/mapped")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nfs.Close)
	rest := doors.NewREST(s.REST)
	const pages = 8
	page := unix.Getpagesize()
	model := bytes.Repeat([]byte("m"), 100)
	if err := rest.Write("mapped/f", string(model)); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(filepath.Join(s.Mount(), "mapped/f"), unix.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	m, err := unix.Mmap(fd, 0, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	resize := func(size int) {
		t.Helper()
		if err := nfs.Setattr("f", doors.TruncateTo(uint64(size))); err != nil {
			t.Fatal(err)
		}
		model = append(model, make([]byte, max(0, size-len(model)))...)[:size]
	}
	store := func(off int, text string) {
		t.Helper()
		if err := touching(func() { copy(m[off:], text) }); err != nil {
			t.Errorf("store at %d of %d: %v", off, len(model), err)
		}
		copy(model[off:], text)
	}
	same := func(when string) {
		t.Helper()
		if err := unix.Msync(m, unix.MS_SYNC); err != nil {
			t.Errorf("%s: msync: %v", when, err)
		}
		if got, err := rest.Read("mapped/f"); err != nil || got != string(model) {
			t.Errorf("%s: %d bytes, %v; want %d; they differ from %d on", when, len(got), err, len(model), firstOdd(got, string(model)))
		}
	}

	store(50, "first")
	same("at the start")
	resize(3000)
	store(2000, "behind the old end, in the same page")
	same("longer within a page")
	resize(5*page + 10)
	store(4*page+1, "in a page that was not there")
	store(5*page, "at the end")
	same("longer by pages")
	if err := touching(func() { m[6*page]++ }); err == nil {
		t.Error("a load behind the last page succeeds")
	}
	resize(page + 7)
	for _, off := range []int{2 * page, 5 * page} {
		if err := touching(func() { m[off] = 'x' }); err == nil {
			t.Errorf("a store at %d, which was cut off, succeeds", off)
		}
	}
	if err := touching(func() { m[page+100] = 'x' }); err != nil { // in the last page: it goes nowhere
		t.Error(err)
	}
	same("cut off")
	resize(3 * page)
	if err := touching(func() {
		if i := bytes.IndexFunc(m[page+7:3*page], func(r rune) bool { return r != 0 }); i >= 0 {
			t.Errorf("cut off and longer again, byte %d is not zero", page+7+i)
		}
	}); err != nil {
		t.Error(err)
	}
	store(2*page, "once more")
	same("longer again")
}

// TestMappedDiskFull stores through a mapping when the disk is full: msync reports
// ENOSPC, what was synced before stays, and with space again the file is as good
// as any.
func TestMappedDiskFull(t *testing.T) {
	const size = 256 << 20
	s := newServer(t, options{Data: filepath.Join(smallDisk(t, size), "data")})
	t.Cleanup(s.Stop) // before the unmount
	s.makeBucket("mapped")
	rest := doors.NewREST(s.REST)
	const length = 8 << 20
	fd, err := unix.Open(filepath.Join(s.Mount(), "mapped/f"), unix.O_CREAT|unix.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, length); err != nil {
		t.Fatal(err)
	}
	m, err := unix.Mmap(fd, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	const early = "stored with space"
	copy(m, early)
	if err := unix.Msync(m, unix.MS_SYNC); err != nil {
		t.Fatal(err)
	}
	fill := func() (n int) {
		for body := strings.Repeat("x", 4<<20); n < 2*size/len(body); n++ {
			if rest.Write(fmt.Sprintf("mapped/fill/%d", n), body) != nil {
				return n
			}
		}
		t.Fatal("wrote twice the size of the disk without an error")
		return n
	}
	filled := fill()
	late := bytes.Repeat([]byte("stored without space. "), length/2/22)
	copy(m[length/2:], late)
	if err := unix.Msync(m, unix.MS_SYNC); err != unix.ENOSPC {
		t.Errorf("msync on a full disk: %v, want ENOSPC", err)
	}
	got := make([]byte, len(early))
	if _, err := unix.Pread(fd, got, 0); err != nil || string(got) != early {
		t.Errorf("on the full disk the file begins with %q, %v", got, err)
	}
	if _, err := rest.Read("mapped/f"); err == nil || !strings.Contains(err.Error(), "507") {
		t.Errorf("GET of what cannot be stored: %v, want 507", err)
	}
	for i := range filled {
		if err := rest.Delete(fmt.Sprintf("mapped/fill/%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, "a store through the mapping", func() error {
		copy(m[length/2:], late)
		return unix.Msync(m, unix.MS_SYNC)
	})
	if got, err := rest.Read("mapped/f"); err != nil || got != string(m) {
		t.Errorf("with space again: %d bytes, %v; they differ from %d on", len(got), err, firstOdd(got, string(m)))
	}
	checkClean(t, s)
}

// errFault is SIGBUS.
var errFault = errors.New("fault")

// touching runs fn, which touches a mapping.
func touching(fn func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = errFault
		}
	}()
	fn()
	return nil
}

func firstOdd(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

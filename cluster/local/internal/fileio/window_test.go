package fileio

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// windowFile is a file of a few windows, whose last is short, and what is known of it.
type windowFile struct {
	t    *testing.T
	path string
	data []byte // that is right
	*Windows
	f     *Handle
	right func() // is called after something was verified; nil is nothing
}

// tricky is a file that others meddle with.
type tricky struct {
	osFile
	spliced func()        // before and after a splice
	stamped func() *stamp // replaces what stamp says
}

func (f *tricky) splice(w int, off, n int64) (int64, error) {
	if f.spliced != nil {
		f.spliced()
	}
	return f.osFile.splice(w, off, n)
}

func (f *tricky) stamp() (stamp, error) {
	s, err := f.osFile.stamp()
	if f.stamped != nil {
		return *f.stamped(), nil
	}
	return s, err
}

const windowFileBytes = 2*WindowBytes + 5000

func newWindowFile(t *testing.T) *windowFile {
	t.Helper()
	dir := t.TempDir()
	p := NewPresence(NewOS(dir), dir)
	if p == nil {
		t.Skip("which pages are present is not known here")
	}
	w := &windowFile{t: t, path: filepath.Join(dir, "f"), data: make([]byte, windowFileBytes), Windows: NewWindows(2*WindowBytes, p)}
	_, _ = rand.NewChaCha8([32]byte{1}).Read(w.data)
	if err := os.WriteFile(w.path, w.data, 0o600); err != nil {
		t.Fatal(err)
	}
	w.f = w.open(nil)
	t.Cleanup(func() {
		_ = w.f.Close()
		if n := w.Bytes(); n != 0 {
			t.Errorf("%d bytes are mapped of a closed file", n)
		}
		w.Close()
	})
	return w
}

// open opens the file, for those who meddle.
func (w *windowFile) open(f *tricky) *Handle {
	w.t.Helper()
	file, err := os.Open(w.path)
	if err != nil {
		w.t.Fatal(err)
	}
	if f == nil {
		return &Handle{File: osFile{file}}
	}
	f.osFile = osFile{file}
	return &Handle{File: f}
}

// splice returns what a Splice from off to end brings, and how often that was verified.
func (w *windowFile) splice(f *Handle, off, end int64) (got []byte, verified int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, 0, err
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	if _, err := unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, WindowBytes); err != nil {
		return nil, 0, err
	}
	n, err := w.Splice(p[1], f, Part{Off: off, End: end, Size: windowFileBytes, Right: func(off, end int64) bool {
		verified++
		b := make([]byte, end-off)
		_, err := f.ReadAt(b, off)
		if w.right != nil {
			w.right()
		}
		return err == nil && bytes.Equal(b, w.data[off:end])
	}})
	if err != nil {
		return nil, verified, err
	}
	got = make([]byte, n)
	k, err := unix.Read(p[0], got)
	return got[:max(k, 0)], verified, err
}

// known splices a part three times: then it is known.
func (w *windowFile) known(f *Handle, off, end int64) {
	w.t.Helper()
	for i := range 3 {
		got, verified, err := w.splice(f, off, end)
		if err != nil || !bytes.Equal(got, w.data[off:end]) {
			w.t.Fatal(err, "or other bytes")
		}
		if i == 0 && verified != 1 || i == 2 && verified != 0 {
			w.t.Fatalf("time %d: verified %d times", i, verified)
		}
	}
}

// rewrite changes a byte past the page cache, which loses its pages.
func (w *windowFile) rewrite(off int64) {
	w.t.Helper()
	f, err := os.OpenFile(w.path, os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		w.t.Skip("no O_DIRECT here:", err)
	}
	defer f.Close()
	page := NewPages(PageBytes)
	off -= off % PageBytes
	copy(page, w.data[off:])
	page[17] ^= 4
	if _, err := f.WriteAt(page, off); err != nil {
		w.t.Fatal(err)
	}
}

// window returns that at off, and evict takes its pages out of the page table.
func (w *windowFile) window(f *Handle, off int64) *window {
	w.Windows.mu.Lock()
	defer w.Windows.mu.Unlock()
	return w.Windows.open[f][off]
}

func (v *window) evict() error { return unix.Madvise(v.data, unix.MADV_DONTNEED) }

// TestWindowKnown: what is spliced again and again is verified twice, any part of it.
func TestWindowKnown(t *testing.T) {
	w := newWindowFile(t)
	for _, part := range [][2]int64{{WindowBytes, 2 * WindowBytes}, {2 * WindowBytes, windowFileBytes}} {
		w.known(w.f, part[0], part[1])
		for _, in := range [][2]int64{{0, 1}, {1, 4999}, {4095, 4097}, {4999, 5000}} {
			got, verified, err := w.splice(w.f, part[0]+in[0], part[0]+in[1])
			if err != nil || verified != 0 || !bytes.Equal(got, w.data[part[0]+in[0]:part[0]+in[1]]) {
				t.Error(part, in, verified, err)
			}
		}
	}
	// There is room for two.
	for range 3 {
		if _, verified, err := w.splice(w.f, 0, WindowBytes); err != nil || verified != 1 {
			t.Error(verified, err)
		}
	}
}

// TestWindowEvicted: of a window that lost a page, what has it is verified again, and then
// is known anew.
func TestWindowEvicted(t *testing.T) {
	w := newWindowFile(t)
	w.known(w.f, 0, WindowBytes)
	if err := unix.Madvise(w.window(w.f, 0).data[WindowBytes/2:][:PageBytes], unix.MADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	if _, verified, err := w.splice(w.f, 0, WindowBytes/2); err != nil || verified != 0 {
		t.Error("what is there:", verified, err)
	}
	if _, verified, err := w.splice(w.f, WindowBytes/2-1, WindowBytes/2+1); err != nil || verified != 1 {
		t.Error("what is not:", verified, err)
	}
	if n := w.Bytes(); n != 0 {
		t.Errorf("%d bytes are mapped", n)
	}
	w.known(w.f, 0, WindowBytes)
}

// TestWindowReplaced: a page that was replaced after it was verified is not sent, not even
// where the times of the file do not show it, and whoever else reads it meanwhile.
func TestWindowReplaced(t *testing.T) {
	for _, others := range []int{0, 1, 4} { // between the change and the splice
		w, meddle := newTimelessFile(t)
		w.known(w.f, 0, WindowBytes)
		meddle.spliced = func() {
			meddle.spliced = nil
			w.rewrite(70_000)
			for range others {
				_, _, _ = w.splice(w.f, 0, WindowBytes)
			}
		}
		w.refused(0, WindowBytes)
	}
}

// TestWindowReplacedEarly: the same of a page that is replaced while a window is made.
func TestWindowReplacedEarly(t *testing.T) {
	w, _ := newTimelessFile(t)
	if _, _, err := w.splice(w.f, 0, WindowBytes); err != nil {
		t.Fatal(err)
	}
	w.right = func() {
		w.right = nil
		w.rewrite(70_000)
	}
	w.refused(0, WindowBytes)
}

// newTimelessFile returns a file whose changes do not show in its times.
func newTimelessFile(t *testing.T) (*windowFile, *tricky) {
	t.Helper()
	w, f := newWindowFile(t), &tricky{}
	_ = w.f.Close()
	w.f = w.open(f)
	same, err := f.osFile.stamp()
	if err != nil {
		t.Fatal(err)
	}
	f.stamped = func() *stamp { return &same }
	return w, f
}

// refused reads what is damaged by now, or soon, again and again.
func (w *windowFile) refused(off, end int64) {
	w.t.Helper()
	for range 4 {
		if got, _, err := w.splice(w.f, off, end); err == nil {
			w.t.Errorf("%d bytes of a damaged file", len(got))
		}
	}
}

// TestWindowChanged: a change shows in the times of the file, though its pages are there:
// who changes it does so through the page cache.
func TestWindowChanged(t *testing.T) {
	w := newWindowFile(t)
	w.known(w.f, 0, WindowBytes)
	g, err := os.OpenFile(w.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	before, err := (osFile{g}).stamp()
	for now := before; now == before && err == nil; now, err = (osFile{g}).stamp() { // a coarse clock
		if _, err := g.WriteAt([]byte{w.data[9] ^ 1}, 9); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		if _, _, err := w.splice(w.f, 0, WindowBytes); !errors.Is(err, errWrong) {
			t.Error(err)
		}
	}
	if n := w.Bytes(); n != 0 {
		t.Errorf("%d bytes are mapped", n)
	}
	if _, err := g.WriteAt(w.data[9:10], 9); err != nil {
		t.Fatal(err)
	}
	w.known(w.f, 0, WindowBytes)
	if err := g.Truncate(WindowBytes / 2); err != nil {
		t.Fatal(err)
	}
	for off := int64(0); off < WindowBytes; off += 64 << 10 {
		got, _, err := w.splice(w.f, off, off+64<<10)
		if (err == nil) != (off < WindowBytes/2) || !bytes.Equal(got, w.data[off:][:len(got)]) {
			t.Errorf("at %d: %d bytes, %v", off, len(got), err)
		}
	}
}

// TestWindowMeanwhile: a file that changes while it is verified for the pipe.
func TestWindowMeanwhile(t *testing.T) {
	w := newWindowFile(t)
	f := &tricky{}
	_ = w.f.Close()
	w.f = w.open(f)
	stamps := 0
	f.stamped = func() *stamp { stamps++; return &stamp{mtime: int64(stamps)} }
	if _, _, err := w.splice(w.f, 0, WindowBytes); !errors.Is(err, errChanged) {
		t.Error(err)
	}
}

// TestWindowRest: what nobody uses is given back after a while, and what is used is not.
func TestWindowRest(t *testing.T) {
	w := newWindowFile(t)
	w.known(w.f, 0, WindowBytes)
	w.known(w.f, WindowBytes, 2*WindowBytes)
	v := w.get(w.f, w.window(w.f, 0).stamp, Part{Off: 5, End: 6, Size: windowFileBytes})
	if v == nil {
		t.Fatal("no window")
	}
	w.release(time.Now().Add(-time.Hour))
	if n := w.Bytes(); n != 2*WindowBytes {
		t.Errorf("%d bytes are mapped", n)
	}
	w.release(time.Now())
	if n := w.Bytes(); n != WindowBytes {
		t.Errorf("%d bytes are mapped", n)
	}
	w.put(v)
	if !w.sweeps {
		t.Error("nobody will look")
	}
	w.release(time.Now())
	w.sweep()
	if n := w.Bytes(); n != 0 || w.sweeps {
		t.Errorf("%d bytes are mapped, or somebody looks for nothing", n)
	}
}

// TestWindowMany: many readers of more than there is room for, while pages are taken out
// of page tables and page cache.
func TestWindowMany(t *testing.T) {
	w := newWindowFile(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for k := range 30 {
				off := int64((i + k) % 3 * WindowBytes)
				end := min(off+WindowBytes, windowFileBytes)
				off += int64(k * 17)
				got, _, err := w.splice(w.f, off, end)
				if err != nil || len(got) == 0 || !bytes.Equal(got, w.data[off:][:len(got)]) {
					t.Errorf("at %d: %v, or other bytes", off, err)
					return
				}
				if k%7 == i%7 {
					w.pressure()
				}
			}
		})
	}
	wg.Wait()
	if n := w.Bytes(); n > 2*WindowBytes {
		t.Errorf("%d bytes are mapped", n)
	}
}

// TestWindowWrong: a file that is not right is so for all who want it at a time, also while
// one of them verifies it for a window.
func TestWindowWrong(t *testing.T) {
	w := newWindowFile(t)
	w.data[WindowBytes-1] ^= 1
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				if _, _, err := w.splice(w.f, WindowBytes-PageBytes, WindowBytes); !errors.Is(err, errWrong) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// pressure takes what is mapped out of the page tables, and the file out of the page cache.
func (w *windowFile) pressure() {
	w.Windows.mu.Lock()
	for _, v := range w.Windows.open[w.f] {
		if v.data != nil {
			_ = v.evict()
		}
	}
	w.Windows.mu.Unlock()
	_ = unix.Fadvise(int(w.f.File.(osFile).Fd()), 0, 0, unix.FADV_DONTNEED)
}

// TestPresence: both ways to ask say the same, of any pages, and a mapping is not joined
// with its neighbours.
func TestPresence(t *testing.T) {
	w := newWindowFile(t)
	f := w.f.File.(osFile)
	var maps [][]byte
	for i := range int64(2) {
		mem, err := f.mapped(i*WindowBytes, WindowBytes)
		if err != nil {
			t.Fatal(err)
		}
		defer unmap(mem)
		maps = append(maps, mem)
	}
	if !populate(maps[0][:5*PageBytes]) {
		t.Fatal("nothing is populated")
	}
	if err := unix.Madvise(maps[0][2*os.Getpagesize():][:os.Getpagesize()], unix.MADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	scans := *w.presence
	scans.scans = true
	reads := *w.presence
	reads.scans = false
	for _, p := range []*Presence{&scans, &reads} {
		if !w.presence.scans && p.scans {
			continue // not here
		}
		for _, test := range []struct {
			from, to int
			want     bool
		}{{0, 1, true}, {0, 2 * page, true}, {0, 2*page + 1, false}, {3*page - 1, 3 * page, false}, {3 * page, 5 * page, true},
			{3*page - 1, 3*page + 1, false}, {0, WindowBytes, false}} {
			if got := p.all(maps[0][test.from:test.to]); got != test.want {
				t.Errorf("scans %v, %d to %d: %v", p.scans, test.from, test.to, got)
			}
		}
		if p.all(maps[1][:1]) || p.all(maps[1][WindowBytes-1:]) {
			t.Error("what was populated next to it is present")
		}
	}
}

// TestNoPresence: a simulated disk, a folder that is not there, a file of another file
// system: nothing is known then, and all is verified each time.
func TestNoPresence(t *testing.T) {
	if NewPresence(nil, t.TempDir()) != nil || NewPresence(&OS{}, filepath.Join(t.TempDir(), "no")) != nil {
		t.Error("something is known of nothing")
	}
	w := newWindowFile(t)
	for _, p := range []*Presence{nil, {pagemap: w.presence.pagemap, dev: w.presence.dev + 1}} {
		other := &windowFile{t: t, path: w.path, data: w.data, Windows: NewWindows(2*WindowBytes, p)}
		for range 4 {
			got, verified, err := other.splice(w.f, 0, WindowBytes)
			if err != nil || verified != 1 || !bytes.Equal(got, w.data[:WindowBytes]) {
				t.Error(verified, err)
			}
		}
	}
}

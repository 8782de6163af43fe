package fusemount

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/fusemount/ledger"
	"ogw/vfs"
	"ogw/vfs/lock"
)

// listHolder is a Holder that knows what it holds.
type listHolder struct {
	mu   sync.Mutex
	held []string
	err  error
}

func (h *listHolder) Hold(name string, _, _ int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.held = append(h.held, name)
	}
	return h.err
}

func (h *listHolder) Drop(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = slices.DeleteFunc(h.held, func(s string) bool { return s == name })
}

func (h *listHolder) has(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.held, name)
}

// What is not served is held again like the rest, under the name that it has, also
// if its memory cannot be read; and who cannot is named.
func TestRefusedIsHeldAgain(t *testing.T) {
	m := NewMounts(openFS(t))
	h := &listHolder{}
	book, err := ledger.New()
	must(t, err)
	other, err := unix.MemfdCreate("other", unix.MFD_CLOEXEC)
	must(t, err)
	var left []Left
	for name, memory := range map[string]int{"no INIT": book.FD(), "not a ledger": other} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		defer unix.Close(pair[1])
		left = append(left, Left{Name: name, Device: pair[0], Memory: memory, Options: Options{Holder: h, Logger: testLogger(t)}})
	}
	taken, err := m.TakeOver(left)
	must(t, err)
	must(t, m.HoldAgain())
	for i, l := range left {
		if taken[i].Refused == nil || !h.has(l.Name) {
			t.Errorf("%s: refused %v, held %v", l.Name, taken[i].Refused, h.has(l.Name))
		}
	}
	h.err = errors.New("no room")
	if err := m.HoldAgain(); !errors.Is(err, h.err) {
		t.Errorf("held by nobody: %v", err)
	}
	for i, l := range left {
		taken[i].Refused.End()
		if h.has(l.Name) {
			t.Errorf("%s is held behind its end", l.Name)
		}
	}
	must(t, m.HoldAgain())
}

// What programs have open and locked is on the books for the next server, where the store
// fails at a take-over; what is gone is not.
func TestRefusedForAnErrorThatPasses(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		refused bool
		want    fuse.Status
	}{
		"away":    {cluster.ErrUnavailable, true, fuse.OK},
		"late":    {context.DeadlineExceeded, true, fuse.OK},
		"corrupt": {cluster.ErrCorrupt, false, fuse.EBADF},
	} {
		t.Run(name, func(t *testing.T) {
			k := begin(t, "before")
			fh := k.open(2, unix.O_RDWR)
			lk := fuse.LkIn{InHeader: header(4, k.file), Fh: fh, Owner: 7, Lk: fuse.FileLock{End: lock.EOF, Typ: unix.F_WRLCK}}
			if st := k.SetLk(nil, &lk); !st.Ok() {
				t.Fatal(st)
			}
			if err := k.take(c.err, mem.OpView); (err != nil) != c.refused || err != nil && !errors.Is(err, c.err) {
				t.Errorf("refused with %v", err)
			}
			k.next(nil)
			if st := k.flush(fh); st != c.want {
				t.Errorf("flush: %v, want %v", st, c.want)
			}
			locks := 0
			k.book.Locks.Each(func(uint64, uint8, ledger.Lock) { locks++ })
			if held := locks > 0; held != c.refused {
				t.Errorf("locked %v", held)
			}
		})
	}
}

// Nothing is taken up where the store does not tell what has lost its last name: the collector
// of a server that goes on would remove it.
func TestTakeOverWithoutOrphans(t *testing.T) {
	faults := &mem.Faults{}
	fs, err := vfs.Open(bg, mem.New(mem.Options{Faults: faults}), vfs.Config{NoBackground: true})
	must(t, err)
	book, err := ledger.New()
	must(t, err)
	device, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	must(t, err)
	faults.FailFrom(1, cluster.ErrUnavailable, mem.OpView)
	h := &listHolder{}
	taken, err := NewMounts(fs).TakeOver([]Left{{Name: "m", Device: device, Memory: book.FD(), Options: Options{Holder: h}}})
	if !errors.Is(err, cluster.ErrUnavailable) || taken != nil {
		t.Errorf("taken over: %v, %v", taken, err)
	}
	for _, fd := range []int{device, book.FD()} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
			t.Errorf("a descriptor is left: %v", err)
		}
	}
}

package fusemount

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"ogw/fusemount/ledger"
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
	taken := m.TakeOver(left)
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

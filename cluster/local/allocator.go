package local

import (
	"log/slog"
	"path/filepath"
	"sync"
)

const (
	// readyMax is how many prewritten segments wait for use.
	readyMax = 2
	// prewriteBytes is the unit of prewriting.
	prewriteBytes = 1 << 20
	// freshSuffix ends the names of segments in the making.
	freshSuffix = ".new"
)

// allocator makes segments ahead. A prewritten file takes durable writes
// without changes to the file system's own metadata; when none is ready, a
// reserved but unwritten one serves, which is slower but at once.
type allocator struct {
	disk  disk
	dir   string
	bytes int64
	log   *slog.Logger

	mu     sync.Mutex
	next   uint64
	ready  []*segment
	making bool
	ended  bool
	idle   *sync.Cond // making became false
}

func newAllocator(d disk, dir string, bytes int64, next uint64, log *slog.Logger) *allocator {
	a := &allocator{disk: d, dir: dir, bytes: bytes, next: next, log: log}
	a.idle = sync.NewCond(&a.mu)
	return a
}

// take returns a segment, and starts to make the next.
func (a *allocator) take() (*segment, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil, errStopped
	}
	if !a.making {
		a.making = true
		go a.makeAhead()
	}
	if n := len(a.ready); n > 0 {
		g := a.ready[0]
		a.ready = a.ready[1:]
		return g, nil
	}
	number := a.next
	a.next++
	return a.make(number, false)
}

func (a *allocator) makeAhead() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.ended && len(a.ready) < readyMax {
		number := a.next
		a.next++
		a.mu.Unlock()
		g, err := a.make(number, true)
		a.mu.Lock()
		if err != nil {
			a.log.Warn("cannot make a data segment ahead", "err", err)
			break
		}
		if g != nil {
			a.ready = append(a.ready, g)
		}
	}
	a.making = false
	a.idle.Broadcast()
}

// make creates a segment whose entry, length and space are durable.
func (a *allocator) make(number uint64, prewrite bool) (g *segment, err error) {
	path := filepath.Join(a.dir, segmentName(number))
	temp := path + freshSuffix
	f, err := a.disk.create(temp)
	if err != nil {
		return nil, err
	}
	err = f.allocate(a.bytes)
	if err == nil && prewrite {
		err = a.prewrite(f)
	}
	if err == nil {
		err = f.sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = a.disk.rename(temp, path)
	}
	if err == nil {
		err = a.disk.syncDir(a.dir)
	}
	if err == nil {
		f, err = a.disk.openSegment(path)
	}
	if err != nil {
		a.disk.remove(temp)
		return nil, err
	}
	return &segment{number: number, total: a.bytes, file: f}, nil
}

// adopt takes a segment that nobody reads any more as one made ahead. It
// returns false when there are enough of them.
func (a *allocator) adopt(number uint64) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || len(a.ready) >= readyMax {
		return false, nil
	}
	// A new number, so that its old records cannot be taken for new ones.
	fresh := a.next
	path := filepath.Join(a.dir, segmentName(fresh))
	if err := a.disk.rename(filepath.Join(a.dir, segmentName(number)), path); err != nil {
		return false, err
	}
	a.next++
	if err := a.disk.syncDir(a.dir); err != nil {
		return true, err
	}
	f, err := a.disk.openSegment(path)
	if err != nil {
		return true, err
	}
	a.ready = append(a.ready, &segment{number: fresh, total: a.bytes, file: f})
	return true, nil
}

func (a *allocator) prewrite(f diskFile) error {
	zeros := newPages(prewriteBytes)
	for off := int64(0); off < a.bytes; off += prewriteBytes {
		if a.stopping() {
			return errStopped
		}
		if err := f.writePages(off, zeros[:min(prewriteBytes, a.bytes-off)]); err != nil {
			return err
		}
	}
	return nil
}

func (a *allocator) stopping() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// stop ends the making, and removes what nobody took.
func (a *allocator) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	for a.making {
		a.idle.Wait()
	}
	for _, g := range a.ready {
		g.file.Close()
		a.disk.remove(filepath.Join(a.dir, segmentName(g.number)))
	}
	a.ready = nil
}

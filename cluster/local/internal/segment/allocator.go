package segment

import (
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster/local/internal/diskspace"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"
)

const (
	// readyMax is how many segments wait for use.
	readyMax = 2
	// spareMax is how many emptied ones do besides, at the most as many as
	// were taken lately: what a second or two of overwriting goes through.
	spareMax = 8
	// prewriteBytes is the unit of prewriting: what a writer who needs the
	// segment may have to wait for.
	prewriteBytes = 1 << 20
	// idleTime without an append counts as idle, and idlePoll is how often
	// that is looked at.
	idleTime = 50 * time.Millisecond
	idlePoll = 20 * time.Millisecond
	// freshSuffix ends the names of segments in the making.
	freshSuffix = ".new"
)

// allocator makes segments ahead. Their space is reserved at once. While
// nobody writes, it is written as well, since durable writes to space that was
// written before need no change of the file system's own metadata: half of the
// processor time in the system. Under load, writing everything twice would cost
// more than it gains; but segments that were emptied are taken again then.
type allocator struct {
	disk  fileio.Disk
	dir   string
	bytes int64
	log   *slog.Logger
	space *diskspace.Guard // nil: not looked at
	zeros []byte

	mu     sync.Mutex
	next   uint64
	ready  []*segment
	spare  []*segment // emptied ones, the newest last
	takes  [2]int     // segments taken since the last trim, and before that
	coming int        // segments in the making that will be ready
	making bool
	// adopting: an emptied segment is about to be a spare one.
	adopting bool
	ended    bool
	idle     *sync.Cond // making or adopting became false

	began      time.Time    // any, for a clock that does not jump
	lastAppend atomic.Int64 // nanoseconds since began
}

func newAllocator(d fileio.Disk, dir string, bytes int64, next uint64, log *slog.Logger) *allocator {
	a := &allocator{disk: d, dir: dir, bytes: bytes, next: next, log: log, began: time.Now(), zeros: fileio.NewPages(prewriteBytes)}
	a.idle = sync.NewCond(&a.mu)
	return a
}

// noteAppend records that there are appends.
func (a *allocator) noteAppend() { a.lastAppend.Store(int64(time.Since(a.began))) }

// take returns a segment, and starts to make the next.
func (a *allocator) take() (*segment, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil, ErrStopped
	}
	if !a.making {
		a.making = true
		go a.makeAhead()
	}
	a.takes[0]++
	if n := len(a.spare); n > 0 {
		g := a.spare[n-1]
		a.spare = a.spare[:n-1]
		return g, nil
	}
	if n := len(a.ready); n > 0 {
		g := a.ready[0]
		a.ready = a.ready[1:]
		return g, nil
	}
	if a.space != nil && !a.space.Roomy(a.bytes, diskspace.ForLast) {
		// Trying would take, for a moment, what is given up for deletes.
		return nil, a.space.Full("deletes")
	}
	number := a.next
	a.next++
	return a.make(number)
}

// makeAhead keeps segments ready, then writes them while nobody else writes.
func (a *allocator) makeAhead() {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() {
		a.making = false
		a.idle.Broadcast()
	}()
	for !a.ended {
		if len(a.ready) < readyMax {
			if a.space != nil && !a.space.Roomy(a.bytes, diskspace.ForMetadata) {
				return // what is left is for who needs it now
			}
			if err := a.makeOne(); err != nil {
				a.log.Warn("cannot make a data segment ahead", "err", err)
				return
			}
			continue
		}
		done, err := a.prewriteSome()
		if err != nil {
			a.log.Warn("cannot write a data segment ahead", "err", err)
			return
		}
		if done {
			return
		}
	}
}

// makeOne is called with mu held and releases it while it works.
func (a *allocator) makeOne() error {
	number := a.next
	a.next++
	a.coming++
	a.mu.Unlock()
	g, err := a.make(number)
	a.mu.Lock()
	a.coming--
	if err == nil {
		a.ready = append(a.ready, g)
	}
	return err
}

// prewriteSome waits a moment, or writes a part of a ready segment. It is
// called with mu held, and holds it while it writes: nobody else may take the
// segment then.
func (a *allocator) prewriteSome() (done bool, err error) {
	for _, g := range a.ready {
		if g.prewritten >= a.bytes {
			continue
		}
		if int64(time.Since(a.began))-a.lastAppend.Load() < int64(idleTime) {
			a.mu.Unlock()
			time.Sleep(idlePoll)
			a.mu.Lock()
			return false, nil
		}
		n := min(prewriteBytes, a.bytes-g.prewritten)
		err := g.files[0].WritePages(g.prewritten, a.zeros[:n])
		g.prewritten += n
		return false, err
	}
	return true, nil
}

// make creates a segment whose entry, length and space are durable.
func (a *allocator) make(number uint64) (g *segment, err error) {
	path := filepath.Join(a.dir, record.SegmentName(number))
	temp := path + freshSuffix
	f, err := a.disk.Create(temp)
	if err != nil {
		return nil, err
	}
	err = f.Allocate(a.bytes)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = a.disk.Rename(temp, path)
	}
	if err == nil {
		err = a.disk.SyncDir(a.dir)
	}
	if err == nil {
		f, err = a.disk.OpenSegment(path)
	}
	if err != nil {
		_ = a.disk.Remove(temp)
		return nil, err
	}
	return &segment{number: number, total: a.bytes, files: []fileio.File{f}}, nil
}

// spareRoom is how many emptied segments are worth their space. It is called
// with mu held.
func (a *allocator) spareRoom() int {
	if a.space != nil && !a.space.Roomy(0, diskspace.ForMetadata) {
		return 0
	}
	return min(a.takes[0]+a.takes[1], spareMax)
}

// trim gives back the emptied segments that nobody will need soon. It is called
// again and again, after a time that is long beside that between two segments
// under load.
func (a *allocator) trim() {
	a.mu.Lock()
	a.takes = [2]int{0, a.takes[0]}
	n := max(0, len(a.spare)-a.spareRoom())
	extra := slices.Clone(a.spare[:n])
	a.spare = slices.Delete(a.spare, 0, n)
	a.mu.Unlock()
	for _, g := range extra {
		a.drop(g)
	}
}

// drop removes a segment that nobody took.
func (a *allocator) drop(g *segment) bool {
	_ = g.close()
	return a.disk.Remove(filepath.Join(a.dir, record.SegmentName(g.number))) == nil
}

// adopt takes a segment that nobody reads any more as a spare one, one at a
// time. It returns false when there are enough of them.
func (a *allocator) adopt(number uint64) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || a.adopting || len(a.spare) >= a.spareRoom() {
		return false, nil
	}
	fresh := a.next
	a.next++
	a.adopting = true
	a.mu.Unlock() // writers take segments concurrently
	g, adopted, err := a.renumber(number, fresh)
	a.mu.Lock()
	a.adopting = false
	a.idle.Broadcast()
	if g != nil {
		a.spare = append(a.spare, g)
	}
	return adopted, err
}

// renumber gives a segment a new number, so that its old records cannot be
// taken for new ones. It returns true if the old number is gone.
func (a *allocator) renumber(number, fresh uint64) (*segment, bool, error) {
	old, path := filepath.Join(a.dir, record.SegmentName(number)), filepath.Join(a.dir, record.SegmentName(fresh))
	if n, err := a.disk.Length(old); err != nil || n != a.bytes {
		return nil, false, err // of an earlier run with other lengths
	}
	if err := a.disk.Rename(old, path); err != nil {
		return nil, false, err
	}
	if err := a.disk.SyncDir(a.dir); err != nil {
		return nil, true, err
	}
	f, err := a.disk.OpenSegment(path)
	if err != nil {
		return nil, true, err
	}
	return &segment{number: fresh, total: a.bytes, prewritten: a.bytes, files: []fileio.File{f}}, true, nil
}

// idleSegments returns how many were made ahead, and how many were emptied.
func (a *allocator) idleSegments() (ready, spare int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ready), len(a.spare)
}

// shed removes a segment that nobody took yet; false if there is none.
func (a *allocator) shed() bool {
	g := a.giveUp()
	return g != nil && a.drop(g)
}

func (a *allocator) giveUp() *segment {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, list := range []*[]*segment{&a.spare, &a.ready} {
		if n := len(*list); n > 0 {
			g := (*list)[n-1]
			*list = (*list)[:n-1]
			return g
		}
	}
	return nil
}

// stop ends the making, and removes what nobody took.
func (a *allocator) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	for a.making || a.adopting {
		a.idle.Wait()
	}
	for _, g := range append(a.ready, a.spare...) {
		a.drop(g)
	}
	a.ready, a.spare = nil, nil
}

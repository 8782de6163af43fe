package segment

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"ogw/cluster"
	"ogw/cluster/local/internal/diskspace"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"
)

const (
	// lanesMax is how many writes to segments are under way at a time; who
	// comes meanwhile shares the next. Where more come than that, lanesCrowded
	// are enough to keep the disk busy, and fewer, longer writes take a third
	// less of the system's time: much of the file system's work is by the write.
	lanesMax     = 4
	lanesCrowded = 2
	// batchMax bounds one write.
	batchMax = 4 << 20
)

// Store appends records to files of a fixed length. Places are given out in
// order; the writes of up to lanesMax batches run at the same time, and every
// record is durable when its append returns.
type Store struct {
	disk  fileio.Disk
	dir   string
	store record.StoreID
	bytes int64 // length of new segments
	log   *slog.Logger
	alloc *allocator

	mu         sync.Mutex
	known      map[uint64]*segment
	current    *segment // nil: none yet
	queue      []*appendRequest
	flying     int // requests that are queued or being written
	crowd      int // the most of them lately
	lanes      int
	lanesEnded *sync.Cond // lanes became 0
}

// segment is one file. The fields are guarded by Store.mu.
type segment struct {
	number     uint64
	total      int64 // length of the file; 0: of an earlier run, not yet known
	used       int64 // next free offset
	live       int64 // bytes of records in the index
	pending    int   // records appended, not yet in the index or given up
	sealed     bool  // takes no more records
	prewritten int64 // guarded by allocator.mu, while it is ready
	doubtful   bool  // damage was found in it: emptied, and never written again
	damaged    bool  // holds what cannot be moved: collected when that is deleted
	// files are open, and no write is under way through them: each is of one write at a time. Where
	// the page cache is written through, Linux tells of a page that it could not write once to each
	// open file, and whichever write through that asks first is told of the other's page.
	files []fileio.File
}

// close closes the files.
func (g *segment) close() error {
	var err error
	for _, f := range g.files {
		if e := f.Close(); err == nil {
			err = e
		}
	}
	g.files = nil
	return err
}

type appendRequest struct {
	segment *segment
	offset  int64
	pages   []byte
	done    chan error
}

// Config is where segments are, and what they are like.
type Config struct {
	Disk  fileio.Disk
	Dir   string
	Store record.StoreID
	Bytes int64 // length of new ones
	Space *diskspace.Guard
	Log   *slog.Logger
}

// Open finds the segments that are there. Their live bytes are counted
// by who knows the index; see AddLive and Measure.
func Open(c Config) (*Store, error) {
	s := &Store{disk: c.Disk, dir: c.Dir, store: c.Store, bytes: c.Bytes, log: c.Log, known: make(map[uint64]*segment)}
	s.lanesEnded = sync.NewCond(&s.mu)
	names, err := s.disk.List(s.dir)
	if err != nil {
		return nil, ioerr.Map(err)
	}
	next := uint64(1)
	for _, name := range names {
		number, ok := record.ParseSegmentName(name)
		if !ok {
			if strings.HasSuffix(name, freshSuffix) {
				_ = s.disk.Remove(filepath.Join(s.dir, name)) // half made when the process ended
			}
			continue
		}
		s.known[number] = &segment{number: number, sealed: true}
		next = max(next, number+1)
	}
	s.alloc = newAllocator(s.disk, s.dir, s.bytes, next, s.log)
	s.alloc.space = c.Space
	return s, nil
}

// Path returns where a segment is.
func (s *Store) Path(number uint64) string {
	return filepath.Join(s.dir, record.SegmentName(number))
}

// Append writes a record, whose data is in pages, and sets its segment and
// offset. The caller indexes it and calls Indexed.
func (s *Store) Append(r *record.Record, pages []byte) error {
	q := &appendRequest{pages: pages, done: make(chan error, 1)}
	s.alloc.noteAppend()
	s.mu.Lock()
	if err := s.place(q); err != nil {
		s.mu.Unlock()
		return err
	}
	r.Segment, r.Offset = q.segment.number, q.offset
	r.PutFooter(pages)
	s.queue = append(s.queue, q)
	s.flying++
	s.crowd = max(s.crowd, s.flying)
	if s.lanes < s.lanesWanted() {
		s.lanes++
		go s.lane()
	}
	s.mu.Unlock()
	if err := <-q.done; err != nil {
		s.Indexed(r.Segment)
		return ioerr.Map(err)
	}
	return nil
}

// place gives q the next free place. It is called with mu held.
func (s *Store) place(q *appendRequest) error {
	need := int64(len(q.pages))
	if s.current != nil && s.current.used+need > s.current.total {
		s.seal(s.current)
	}
	if s.current == nil {
		fresh, err := s.alloc.take()
		if err != nil {
			return ioerr.Map(err)
		}
		s.known[fresh.number] = fresh
		s.current = fresh
	}
	q.segment, q.offset = s.current, s.current.used
	s.current.used += need
	s.current.pending++
	return nil
}

// seal ends a segment. It is called with mu held.
func (s *Store) seal(g *segment) {
	g.sealed = true
	if s.current == g {
		s.current = nil
	}
	s.closeIfDone(g)
}

func (s *Store) closeIfDone(g *segment) {
	if g.sealed && g.pending == 0 {
		_ = g.close()
	}
}

// lanesWanted is how many writes there should be at this moment. It is called
// with mu held.
func (s *Store) lanesWanted() int {
	if s.crowd > lanesMax {
		return lanesCrowded
	}
	return lanesMax
}

// lane writes batches until the queue is empty, or is left to other lanes.
func (s *Store) lane() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 && s.lanes <= s.lanesWanted() {
		s.crowd = max(s.flying, s.crowd-1) // forgotten after as many writes
		batch := s.takeBatch()
		g := batch[0].segment
		file := g.takeFile()
		s.mu.Unlock()
		file, err := s.writeBatch(file, batch)
		s.mu.Lock()
		if file != nil {
			g.files = append(g.files, file)
		}
		s.flying -= len(batch)
		if err != nil {
			s.log.Error("cannot write to a data segment", "segment", g.number, "err", err)
			s.seal(g)
		}
		for _, q := range batch {
			q.done <- err
		}
	}
	s.lanes--
	if s.lanes == 0 {
		s.lanesEnded.Broadcast()
	}
}

// takeBatch takes neighbours from the front of the queue: places are given
// out in its order.
func (s *Store) takeBatch() []*appendRequest {
	n, bytes := 0, 0
	for _, q := range s.queue {
		if n > 0 && (q.segment != s.queue[0].segment || bytes+len(q.pages) > batchMax) {
			break
		}
		bytes += len(q.pages)
		n++
	}
	batch := s.queue[:n:n]
	s.queue = s.queue[n:]
	return batch
}

// takeFile returns a file that no write goes through; nil if there is none. It is called with
// Store.mu held.
func (g *segment) takeFile() fileio.File {
	n := len(g.files)
	if n == 0 {
		return nil
	}
	f := g.files[n-1]
	g.files = g.files[:n-1]
	return f
}

// writeBatch writes through file, or one that it opens if that is nil, and returns it.
func (s *Store) writeBatch(file fileio.File, batch []*appendRequest) (fileio.File, error) {
	if file == nil {
		opened, err := s.disk.OpenSegment(s.Path(batch[0].segment.number))
		if err != nil {
			return nil, err
		}
		file = opened
	}
	pages := make([][]byte, len(batch))
	for i, q := range batch {
		pages[i] = q.pages
	}
	return file, file.WritePages(batch[0].offset, pages...)
}

// AddLive changes the live bytes of a segment; false if there is none.
func (s *Store) AddLive(number uint64, bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.known[number]
	if g == nil {
		return false
	}
	g.live += bytes
	return true
}

// ResetLive has the counting of live bytes begin again.
func (s *Store) ResetLive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.known {
		g.live = 0
	}
}

// Measure finds the lengths of the segments of earlier runs.
func (s *Store) Measure() error {
	s.mu.Lock()
	var unknown []*segment
	for _, g := range s.known {
		if g.total == 0 {
			unknown = append(unknown, g)
		}
	}
	s.mu.Unlock()
	for _, g := range unknown {
		bytes, err := s.disk.Length(s.Path(g.number))
		unreadable := ioerr.Unreadable(err)
		if err != nil && !unreadable && !errors.Is(err, os.ErrNotExist) {
			return ioerr.Map(err)
		}
		s.mu.Lock()
		g.total, g.damaged = bytes, g.damaged || unreadable
		s.mu.Unlock()
	}
	return nil
}

// Indexed records that an appended record is in the index, or given up.
func (s *Store) Indexed(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.known[number]; g != nil {
		g.pending--
		s.closeIfDone(g)
	}
}

// Close waits for writes under way and releases the files.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.lanes > 0 {
		s.lanesEnded.Wait()
	}
	var err error
	for _, g := range s.known {
		if e := g.close(); err == nil {
			err = e
		}
	}
	return err
}

// Stop ends background work.
func (s *Store) Stop() { s.alloc.stop() }

// Trim gives back the emptied segments that nobody will need soon; see
// allocator.trim.
func (s *Store) Trim() { s.alloc.trim() }

// Adopt takes a segment that was forgotten, and that nobody reads any more, to
// be used again. It returns false when it is to be removed.
func (s *Store) Adopt(number uint64) (bool, error) { return s.alloc.adopt(number) }

// Idle returns how many segments were made ahead, and how many were emptied and
// kept for use.
func (s *Store) Idle() (ready, spare int) { return s.alloc.idleSegments() }

// IdleBytes is the length of the segments that nobody took yet.
func (s *Store) IdleBytes() int64 {
	ready, spare := s.Idle()
	return int64(ready+spare) * s.bytes
}

// Shed removes a segment that nobody took yet; false if there is none.
func (s *Store) Shed() bool { return s.alloc.shed() }

// ErrStopped means that the segments are closed, or that their collector ends.
var ErrStopped = fmt.Errorf("%w: segments", cluster.ErrClosed)

package readcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/minio/crc64nvme"

	"ogw/cluster"
)

const (
	recordBytes = 64
	// maxWrites bounds the chunks that wait to be written; what comes beyond is not kept.
	maxWrites = 32
)

// file is what a disk needs of an os.File.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
	Stat() (os.FileInfo, error)
	Truncate(size int64) error
}

// disk keeps chunks in slots of a file.
type disk struct {
	chunks file
	index  *os.File
	log    *slog.Logger
	writes chan *chunk
	done   chan struct{}

	mu      sync.Mutex
	found   []byte // of the index, until begin
	begun   bool
	store   uint64 // that may use it, once begun
	slots   []slot
	where   map[cluster.BlobID]map[int]int // slots
	used    int
	waiting map[*chunk]bool // chunks that are not written yet, and are not to be forgotten
	hand    int
	failing bool // of who writes
	closed  bool
}

// slot is what the disk has in one place.
type slot struct {
	key
	there bool
	read  bool   // since the hand passed
	bytes int    // of the chunk
	last  bool   // of its blob
	store uint64 // whose blob it is
	crc   uint64 // of the whole blob, as the metadata had it
	sum   uint64 // of bytes and place
}

// openDisk opens or makes the files, for up to size bytes.
func openDisk(dir string, size int64, log *slog.Logger) (*disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	d := &disk{log: log, writes: make(chan *chunk, maxWrites), done: make(chan struct{}),
		slots: make([]slot, size/chunkBytes), where: make(map[cluster.BlobID]map[int]int), waiting: make(map[*chunk]bool)}
	var err error
	if d.chunks, err = os.OpenFile(filepath.Join(dir, "chunks"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if d.index, err = os.OpenFile(filepath.Join(dir, "index"), os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		err = d.load()
	}
	if err == nil { // a smaller one than before
		err = errors.Join(shorten(d.chunks, int64(len(d.slots))*chunkBytes), shorten(d.index, int64(len(d.slots))*recordBytes))
	}
	if err != nil {
		d.chunks.Close()
		if d.index != nil {
			d.index.Close()
		}
		return nil, fmt.Errorf("cache in %s: %w", dir, err)
	}
	go d.run()
	return d, nil
}

func shorten(f file, size int64) error {
	info, err := f.Stat()
	if err != nil || info.Size() <= size {
		return err
	}
	return f.Truncate(size)
}

// load reads the index.
func (d *disk) load() error {
	d.found = make([]byte, len(d.slots)*recordBytes)
	n, err := d.index.ReadAt(d.found, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	d.found = d.found[:n/recordBytes*recordBytes]
	return nil
}

// begin has the disk used, for a store. What does not fit, or is of another one, is an empty
// slot. A later claim is of the same store, since the engine refuses others.
func (d *disk) begin(store uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun {
		return
	}
	for i := range len(d.found) / recordBytes {
		if s, ok := decodeSlot(d.found[i*recordBytes:][:recordBytes]); ok && s.store == store && d.find(s.key) < 0 {
			d.set(i, s)
		}
	}
	d.begun, d.store, d.found = true, store, nil
}

func (s *slot) place() []byte {
	b := make([]byte, 0, recordBytes)
	b = s.id.Append(b)
	b = binary.BigEndian.AppendUint32(b, uint32(s.n))
	b = binary.BigEndian.AppendUint32(b, uint32(s.bytes))
	if s.last {
		b = append(b, 1)
	}
	b = append(b, make([]byte, 32-len(b))...)
	b = binary.BigEndian.AppendUint64(b, s.store)
	return binary.BigEndian.AppendUint64(b, s.crc)
}

func (s *slot) encode() []byte {
	b := binary.BigEndian.AppendUint64(s.place(), s.sum)
	return binary.BigEndian.AppendUint64(b, crc64nvme.Checksum(b))
}

func decodeSlot(b []byte) (s slot, ok bool) {
	id, err := cluster.ParseBlobID(b[:cluster.BlobIDBytes])
	s = slot{key: key{id, int(binary.BigEndian.Uint32(b[16:]))}, there: true, bytes: int(binary.BigEndian.Uint32(b[20:])),
		last: b[24] == 1, store: binary.BigEndian.Uint64(b[32:]), crc: binary.BigEndian.Uint64(b[40:]), sum: binary.BigEndian.Uint64(b[48:])}
	return s, err == nil && bytes.Equal(s.encode(), b) && s.bytes <= chunkBytes && (s.last || s.bytes == chunkBytes)
}

// sumOf is the checksum of a chunk's bytes and of where they belong.
func (s *slot) sumOf(data []byte) uint64 {
	h := crc64nvme.New()
	h.Write(data)
	h.Write(s.place())
	return h.Sum64()
}

func (d *disk) kept() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return int64(d.used) * chunkBytes
}

// find returns the slot of a chunk, or -1. Under mu.
func (d *disk) find(k key) int {
	if i, ok := d.where[k.id][k.n]; ok {
		return i
	}
	return -1
}

// set says what a slot has. Under mu.
func (d *disk) set(i int, s slot) {
	d.clear(i)
	if d.where[s.id] == nil {
		d.where[s.id] = make(map[int]int)
	}
	d.where[s.id][s.n] = i
	d.slots[i] = s
	d.used++
}

// clear empties a slot. Under mu.
func (d *disk) clear(i int) {
	s := &d.slots[i]
	if !s.there {
		return
	}
	of := d.where[s.id]
	if delete(of, s.n); len(of) == 0 {
		delete(d.where, s.id)
	}
	d.slots[i] = slot{}
	d.used--
}

// read reads a chunk of the blob with a checksum into buf, verified.
func (d *disk) read(k key, of blobSum, buf []byte) (n int, last, ok bool) {
	d.mu.Lock()
	i := d.find(k)
	if i < 0 || d.closed || !of.known || d.slots[i].crc != of.crc {
		d.mu.Unlock()
		return 0, false, false
	}
	d.slots[i].read = true
	s := d.slots[i]
	d.mu.Unlock()
	data := buf[:s.bytes]
	_, err := d.chunks.ReadAt(data, int64(i)*chunkBytes)
	if err == nil && s.sumOf(data) == s.sum {
		return s.bytes, s.last, true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.slots[i].key == k && d.slots[i].there { // and was not taken over meanwhile
		d.clear(i)
	}
	return 0, false, false
}

// write keeps a chunk, whose bytes are then the disk's, and returns false if it does not.
// drops is what the memory counts now: who dropped something since it let go of the chunk
// did not find it there, and may have been here already.
func (d *disk) write(c *chunk, drops *atomic.Uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || !d.begun || c.drops != drops.Load() {
		return false
	}
	select {
	case d.writes <- c:
		d.waiting[c] = true
		return true
	default:
		return false
	}
}

// run writes chunks until close.
func (d *disk) run() {
	defer close(d.done)
	for c := range d.writes {
		d.keep(c)
		freeBuffer(c.data)
	}
}

// keep writes a chunk that waits. What is dropped meanwhile is not there in the end.
func (d *disk) keep(c *chunk) {
	s := slot{key: c.key, there: true, bytes: len(c.data), last: c.last, crc: c.of.crc}
	d.mu.Lock()
	s.store = d.store
	i := d.find(c.key)
	if i >= 0 && d.slots[i].crc == s.crc || !d.waiting[c] {
		delete(d.waiting, c)
		d.mu.Unlock()
		return
	}
	if i < 0 { // else its ID meant another blob
		i = d.victim()
	}
	d.clear(i)
	d.mu.Unlock()
	s.sum = s.sumOf(c.data)
	_, err := d.chunks.WriteAt(c.data, int64(i)*chunkBytes)
	if err == nil {
		_, err = d.index.WriteAt(s.encode(), int64(i)*recordBytes)
	}
	d.mu.Lock()
	stays := d.waiting[c]
	if err == nil && stays {
		d.set(i, s)
	}
	delete(d.waiting, c)
	d.mu.Unlock()
	if !stays {
		d.erase(i)
	}
	if err != nil && !d.failing {
		d.log.Warn("the read cache on disk cannot be written to, it is tried again", "file", d.chunks.Name(), "err", err)
	}
	d.failing = err != nil
}

// victim returns the slot to take next: an empty one, or one that was not read since the
// hand passed it. Under mu.
func (d *disk) victim() int {
	for {
		i := d.hand
		d.hand = (d.hand + 1) % len(d.slots)
		if s := &d.slots[i]; !s.there || !s.read {
			return i
		}
		d.slots[i].read = false
	}
}

// of returns the blobs of contents of which something is kept.
func (d *disk) of(contents map[uint64]bool) []cluster.BlobID {
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := ofContents(d.where, contents)
	for c := range d.waiting {
		if contents[c.id.Content] {
			ids = append(ids, c.id)
		}
	}
	return ids
}

// erase has the index say that there is nothing in a slot, or a start would find it again.
func (d *disk) erase(i int) {
	_, _ = d.index.WriteAt(make([]byte, recordBytes), int64(i)*recordBytes)
}

// drop forgets chunks of blobs.
func (d *disk) drop(ids []cluster.BlobID) {
	d.mu.Lock()
	var list []int
	for _, id := range ids {
		for _, i := range d.where[id] {
			list = append(list, i)
			d.clear(i)
		}
	}
	maps.DeleteFunc(d.waiting, func(c *chunk, _ bool) bool { return slices.Contains(ids, c.id) })
	d.mu.Unlock()
	for _, i := range list {
		d.erase(i)
	}
}

// close writes what is to be there at the next start, as much as there are slots, and closes
// the files.
func (d *disk) close(rest []*chunk) {
	rest = rest[:min(len(rest), len(d.slots))]
	d.mu.Lock()
	d.closed = true
	close(d.writes)
	for i := 0; i < len(rest) && d.begun; i++ {
		d.waiting[rest[i]] = true
	}
	d.mu.Unlock()
	<-d.done
	for _, c := range rest {
		d.keep(c)
	}
	if err := errors.Join(d.chunks.Close(), d.index.Close()); err != nil {
		d.log.Warn("the read cache on disk is not closed", "err", err)
	}
}

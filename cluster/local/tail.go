package local

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"ogw/cluster"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/minio/crc64nvme"
)

// The file tail holds what relaxed commits wrote a moment ago: Pebble keeps
// them in the memory of the process until a block of its log is full or somebody
// asks for a sync, and the file is in the system's memory, which the end of the
// process does not take. It is never synced.
//
// It has two halves, which are used in turns. All numbers are little-endian:
//
//	 0  magic "ogwtail2"
//	 8  epoch (8): a random number of the process's
//	16  generation (8): counts the uses of halves
//	24  number of Pebble's OPTIONS file (8), see optionsFiles
//	32  length of a half (8)
//	40  CRC64NVME of all before
//	48  each: length of the batch (4), version (8), CRC64NVME (8) of epoch,
//	    generation, version and batch; Pebble's batch
const (
	tailFile        = "tail"
	tailMagic       = "ogwtail2"
	tailHeaderBytes = 48
	tailRecordBytes = 20
	// tailHalfBytes is what half a second of the busiest door writes: a half
	// is used again when what it holds is durable.
	tailHalfBytes = 8 << 20
	// tailShare bounds both halves on a small disk to one part in so many.
	tailShare = 512
	// tailHalfMin holds a header and a record.
	tailHalfMin = tailHeaderBytes + tailRecordBytes + 1
	// tailBatchMax is the longest batch that is written there; one that is
	// longer waits for the disk.
	tailBatchMax = 1 << 20
)

// versionKey holds epoch (8) and version (8) of the newest commit that Pebble
// has. Every commit sets it, so that a start knows which of the tail's are
// missing.
var versionKey = []byte{0xff, 't'}

const versionBytes = 16

// tail writes the file. KV.commit guards it.
//
// It is active from the first relaxed commit that somebody is answered, until a
// half went by without one. While it is, it has every commit in turn, since a
// later one may build on any of them; a start replays from the one that Pebble
// has to the end, or up to a gap. What came before it became active, up to
// base, must be durable before anybody is answered.
type tail struct {
	fs    vfs.FS
	path  string
	log   *slog.Logger
	half  int64  // length in bytes
	epoch uint64 // of this process
	files uint64 // number of the OPTIONS file

	file       vfs.File // nil until the first use
	buf        []byte
	active     bool
	paused     bool // Erase is at work
	answered   bool // somebody was answered because of what the current half holds
	cur        int  // half in use
	off        int64
	generation uint64
	base       uint64
	last       [2]uint64 // newest version in each half
	complained bool
	stamped    [versionBytes]byte
}

func newTail(o *Options, diskBytes int64) *tail {
	// cur is the second half, so that the first is used first: a start finds the
	// length of the halves there.
	t := &tail{fs: o.fs, path: o.fs.PathJoin(o.Dir, tailFile), log: o.Logger, half: tailHalfBytes, cur: 1}
	if diskBytes > 0 {
		t.half = max(tailHalfMin, min(t.half, diskBytes/tailShare/2))
	}
	if o.tailHalf > 0 {
		t.half = o.tailHalf
	}
	return t
}

// begin makes a new epoch. Pebble is open.
func (t *tail) begin(meta string) (err error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return err
	}
	t.epoch = binary.LittleEndian.Uint64(b[:])
	files, err := findOptions(t.fs, meta)
	t.files = files.newest()
	return err
}

// optionsTrace begins the OPTIONS files that are made by an ogw that knows the
// tail; to Pebble it is a comment.
const optionsTrace = "# ogw replays the tail\n"

// optionsFiles are the numbers of Pebble's OPTIONS files, and whether they begin
// with optionsTrace. Every Open makes a new one, and the older ones are removed
// when the store was accepted, which is when the tail was replayed. So a start
// that did not get that far leaves the one that the tail names, and one with the
// trace; an ogw that knows no tail leaves one without the trace until it has
// removed the one that the tail names.
type optionsFiles map[uint64]bool

func findOptions(fs vfs.FS, meta string) (optionsFiles, error) {
	names, err := fs.List(meta)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, mapError(err)
	}
	files := optionsFiles{}
	for _, name := range names {
		text, ok := strings.CutPrefix(path.Base(name), "OPTIONS-")
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			continue
		}
		if files[n], err = traced(fs, fs.PathJoin(meta, name)); err != nil {
			return nil, mapError(err)
		}
	}
	return files, nil
}

// traced tells whether a file begins with optionsTrace.
func traced(fs vfs.FS, name string) (bool, error) {
	f, err := fs.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	b := make([]byte, len(optionsTrace))
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return string(b[:n]) == optionsTrace, err
}

// newest returns the highest number; 0 if there is none.
func (o optionsFiles) newest() (newest uint64) {
	for n := range o {
		newest = max(newest, n)
	}
	return newest
}

// current tells whether nobody changed the store since the process that made
// file n but starts that came to nothing.
func (o optionsFiles) current(n uint64) bool {
	if _, ok := o[n]; !ok {
		return false
	}
	for other, known := range o {
		if other > n && !known {
			return false
		}
	}
	return true
}

// stamp returns the value of versionKey, good until the next.
func (t *tail) stamp(version uint64) []byte {
	binary.LittleEndian.PutUint64(t.stamped[:], t.epoch)
	binary.LittleEndian.PutUint64(t.stamped[8:], version)
	return t.stamped[:]
}

// append is told of every commit before Pebble has it; answer: somebody is to
// be answered before it is durable; synced: the newest durable version. If it
// returns true, the end of the process does not lose the commit as long as base
// is durable. switched tells that a half is full, and waits for a sync.
func (t *tail) append(version uint64, batch []byte, answer bool, synced uint64) (kept, switched bool) {
	length := int64(tailRecordBytes + len(batch))
	if !t.active && (!answer || t.paused) {
		return false, false
	}
	if len(batch) > tailBatchMax || tailHeaderBytes+length > t.half {
		t.active = false
		return false, false
	}
	switch {
	case !t.active:
		// The process's first commit tells Pebble of the epoch.
		if version < 2 || !t.turn(synced) {
			return false, false
		}
		t.active, t.base = true, version-1
	case t.off+length > t.half:
		idle := !t.answered && !answer
		if idle || !t.turn(synced) {
			t.active = false
			return false, false
		}
		switched = true
	}
	b := t.buf[:0]
	b = binary.LittleEndian.AppendUint32(b, uint32(len(batch)))
	b = binary.LittleEndian.AppendUint64(b, version)
	b = binary.LittleEndian.AppendUint64(b, tailSum(t.epoch, t.generation, version, batch))
	b = append(b, batch...)
	t.buf = b
	if !t.write(b, int64(t.cur)*t.half+t.off) {
		return false, switched
	}
	t.off += length
	t.last[t.cur] = version
	t.answered = t.answered || answer
	return true, switched
}

// turn goes to the other half, if nobody needs what it holds.
func (t *tail) turn(synced uint64) bool {
	next := 1 - t.cur
	if t.last[next] > synced {
		return false
	}
	if t.file == nil {
		f, err := t.fs.Create(t.path, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.fail(err)
			return false
		}
		t.file = f
	}
	t.generation++
	b := make([]byte, 0, tailHeaderBytes)
	b = append(b, tailMagic...)
	b = binary.LittleEndian.AppendUint64(b, t.epoch)
	b = binary.LittleEndian.AppendUint64(b, t.generation)
	b = binary.LittleEndian.AppendUint64(b, t.files)
	b = binary.LittleEndian.AppendUint64(b, uint64(t.half))
	b = binary.LittleEndian.AppendUint64(b, crc64nvme.Checksum(b))
	if !t.write(b, int64(next)*t.half) {
		return false
	}
	t.cur, t.off, t.answered = next, tailHeaderBytes, false
	return true
}

// write returns false when the file cannot be written: what is relaxed waits
// for the disk then.
func (t *tail) write(b []byte, off int64) bool {
	if _, err := t.file.WriteAt(b, off); err != nil {
		t.fail(err)
		return false
	}
	return true
}

func (t *tail) fail(err error) {
	t.active = false
	if !t.complained {
		t.complained = true
		t.log.Warn("metadata store: changes wait for the disk", "file", t.path, "err", err)
	}
}

func tailSum(epoch, generation, version uint64, batch []byte) uint64 {
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], epoch)
	binary.LittleEndian.PutUint64(b[8:], generation)
	binary.LittleEndian.PutUint64(b[16:], version)
	return crc64nvme.Checksum(batch) ^ crc64nvme.Checksum(b[:])
}

// close forgets the file, which nothing needs any more if clean.
func (t *tail) close(clean bool) {
	if t.file == nil {
		return
	}
	_ = t.file.Close()
	t.file = nil
	if clean {
		_ = t.fs.Remove(t.path) // what it holds is old
	}
}

// wipe overwrites the file; it is not active, and what it holds is durable.
func (t *tail) wipe() error {
	if t.file == nil {
		return nil
	}
	zeros := make([]byte, eraseChunk)
	for at := int64(0); at < 2*t.half; at += eraseChunk {
		if _, err := t.file.WriteAt(zeros[:min(eraseChunk, 2*t.half-at)], at); err != nil {
			return err
		}
	}
	return t.file.Sync()
}

// tailRecord is a commit in the file.
type tailRecord struct {
	version uint64
	batch   []byte
}

// readTail returns the records of an epoch, the oldest first; none if others
// changed the store since.
func readTail(fs vfs.FS, path string, epoch uint64, options optionsFiles) ([]tailRecord, error) {
	f, err := fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, mapError(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 2*tailHalfBytes))
	if err != nil {
		return nil, mapError(err)
	}
	h, ok := parseTailHeader(data)
	if !ok {
		return nil, nil // the power went before the first half was on the medium
	}
	half := h.half
	var records []tailRecord
	for start := int64(0); start < min(int64(len(data)), 2*half); start += half {
		records = append(records, parseTail(data[start:min(start+half, int64(len(data)))], epoch, options)...)
	}
	slices.SortFunc(records, func(a, b tailRecord) int {
		if a.version < b.version {
			return -1
		}
		return 1
	})
	return records, nil
}

// tailHeader begins a half.
type tailHeader struct {
	epoch, generation, files uint64
	half                     int64
}

func parseTailHeader(b []byte) (h tailHeader, ok bool) {
	if len(b) < tailHeaderBytes || string(b[:8]) != tailMagic ||
		crc64nvme.Checksum(b[:tailHeaderBytes-8]) != binary.LittleEndian.Uint64(b[tailHeaderBytes-8:]) {
		return h, false
	}
	h.epoch, h.generation = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	h.files, h.half = binary.LittleEndian.Uint64(b[24:]), int64(binary.LittleEndian.Uint64(b[32:]))
	return h, h.half >= tailHalfMin && h.half <= tailHalfBytes
}

// parseTail returns the records of one half.
func parseTail(b []byte, epoch uint64, options optionsFiles) (records []tailRecord) {
	h, ok := parseTailHeader(b)
	if !ok || h.epoch != epoch || !options.current(h.files) {
		return nil
	}
	for b = b[tailHeaderBytes:]; len(b) >= tailRecordBytes; {
		n := int64(binary.LittleEndian.Uint32(b))
		if n > tailBatchMax || n > int64(len(b)-tailRecordBytes) {
			break
		}
		version := binary.LittleEndian.Uint64(b[4:])
		batch := b[tailRecordBytes : tailRecordBytes+n]
		if binary.LittleEndian.Uint64(b[12:]) != tailSum(epoch, h.generation, version, batch) {
			break
		}
		records = append(records, tailRecord{version, batch})
		b = b[tailRecordBytes+n:]
	}
	return records
}

// replay gives Pebble the commits that it lacks, durably. options are those from
// before Pebble was opened. It may have been interrupted before: a batch says
// which commit it is, so that Pebble knows how far it came.
func (t *tail) replay(kv *KV, options optionsFiles) error {
	value, closer, err := kv.db.Get(versionKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return mapError(err)
	}
	epoch, have := uint64(0), uint64(math.MaxUint64)
	if len(value) == versionBytes {
		epoch, have = binary.LittleEndian.Uint64(value), binary.LittleEndian.Uint64(value[8:])
	}
	if err := closer.Close(); err != nil {
		return mapError(err)
	}
	records, err := readTail(t.fs, t.path, epoch, options)
	if err != nil {
		return err
	}
	begin := have
	for _, r := range records {
		if have == math.MaxUint64 || r.version <= have {
			continue
		}
		if r.version != have+1 {
			break
		}
		if err := kv.reapply(r.batch); err != nil {
			return fmt.Errorf("replay %s: %w", t.path, err)
		}
		have++
	}
	if have == begin {
		return nil
	}
	// Before the file is used again, or what it relies on is removed.
	if err := kv.durability.sync(); err != nil {
		return err
	}
	t.log.Info("metadata store: changes that had not reached the log are back", "changes", have-begin)
	return nil
}

// reapply commits a batch of the tail, not durably.
func (kv *KV) reapply(repr []byte) error {
	b := kv.db.NewBatch()
	if err := b.SetRepr(slices.Clone(repr)); err != nil {
		return fmt.Errorf("%w: %w", cluster.ErrCorrupt, err)
	}
	if err := kv.applyBatch(b, true); err != nil {
		return err
	}
	return b.Close()
}

package local

import (
	"crypto/rand"
	"encoding/binary"
	"log/slog"

	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// tailShare bounds both halves on a small disk to one part in so many.
	tailShare = 512
	// tailQuiet commits without a relaxed one that somebody is answered have the
	// tail rest: an object door pays for few commits after one by a background
	// task. A mount beside a door so busy that as many come between two of its
	// own waits for a sync that is under way in any case.
	tailQuiet = 64
)

// tail writes the file. KV.commit guards it.
//
// It is active from the first relaxed commit that somebody is answered, until
// some time went by without one. While it is, it has every commit in turn, since
// a later one may build on any of them; a start replays from the one that Pebble
// has to the end, or up to a gap. base is the commit with which it became
// active: it sets record.VersionKey, and must be durable before anybody is answered, so
// that there is no gap between what Pebble has then and what the tail has. What
// the tail has stays there when it rests, until it is durable.
type tail struct {
	fs    vfs.FS
	path  string
	log   *slog.Logger
	half  int64  // length in bytes
	rest  int    // tailQuiet, except in tests
	epoch uint64 // of this process
	files uint64 // number of the OPTIONS file

	file       vfs.File // nil until the first use
	buf        []byte
	active     bool
	paused     bool // Erase is at work
	quiet      int  // commits since somebody was answered because of what is there
	cur        int  // half in use
	off        int64
	generation uint64
	base       uint64
	last       [2]uint64 // newest version in each half
	complained bool
	stamped    [record.StampBytes]byte
}

// newTail returns the tail in the file path, on a disk of DiskBytes (0:
// unknown).
func newTail(fs vfs.FS, path string, diskBytes int64, log *slog.Logger) *tail {
	// cur is the second half, so that the first is used first: a start finds the
	// length of the halves there.
	t := &tail{fs: fs, path: path, log: log, half: record.TailHalfMax, rest: tailQuiet, cur: 1}
	if diskBytes > 0 {
		t.half = max(record.TailHalfMin, min(t.half, diskBytes/tailShare/2))
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

// stamps tells whether a commit must set record.VersionKey; see append for answer.
func (t *tail) stamps(version uint64, answer bool) bool {
	return version == 1 || t.active || answer
}

// stamp returns the value of record.VersionKey, good until the next.
func (t *tail) stamp(version uint64) []byte {
	return record.PutStamp(&t.stamped, t.epoch, version)
}

// append is told of every commit before Pebble has it; answer: somebody is to
// be answered before it is durable; synced: the newest durable version. If it
// returns true, the end of the process does not lose the commit as long as base
// is durable. switched tells that a half is full, and waits for a sync.
func (t *tail) append(version uint64, batch []byte, answer bool, synced uint64) (kept, switched bool) {
	length := int64(record.TailRecordBytes + len(batch))
	if !t.active && (!answer || t.paused) {
		return false, false
	}
	if len(batch) > record.TailBatchMax || record.TailHeaderBytes+length > t.half {
		t.active = false
		return false, false
	}
	if !t.active {
		if t.turn(synced) {
			t.active, t.base, t.quiet = true, version, 0
		}
		return false, false // who is answered waits for base
	}
	if t.quiet++; answer {
		t.quiet = 0
	}
	if t.quiet > t.rest {
		t.active = false
		return false, false
	}
	if t.off+length > t.half {
		if !t.turn(synced) {
			t.active = false
			return false, false
		}
		switched = true
	}
	t.buf = record.TailRecord{Version: version, Batch: batch}.Append(t.buf[:0], t.header())
	if !t.write(t.buf, int64(t.cur)*t.half+t.off) {
		return false, switched
	}
	t.off += length
	t.last[t.cur] = version
	return true, switched
}

// header is that of the half in use.
func (t *tail) header() record.TailHeader {
	return record.TailHeader{Epoch: t.epoch, Generation: t.generation, Files: t.files, Half: t.half}
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
	if !t.write(t.header().Encode(), int64(next)*t.half) {
		return false
	}
	t.cur, t.off = next, record.TailHeaderBytes
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
	return fileio.ZeroOut(t.file, 2*t.half)
}

package tail

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"

	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// diskShare bounds both halves on a small disk to one part in so many.
	diskShare = 512
	// restAfter commits of which nobody is answered because of the tail have it
	// rest: an object door pays for few commits after one by a background
	// task. A mount beside a door so busy that as many come between two of its
	// own waits for a sync that is under way in any case.
	restAfter = 64
	// growBytes are written ahead of the records that somebody waits for: a sync of
	// bytes within a file's length needs nothing of the file system's journal.
	growBytes = 512 << 10
)

var errBroken = errors.New("the tail of the log could not be synced")

// File is the tail of a store, as one process writes it. It is not safe for
// concurrent use, but for Sync: the engine's commit lock guards it.
//
// It is active from the first commit that somebody is answered because of what is
// there, until some time went by without one. While it is, it has every commit in turn, since
// a later one may build on any of them; a start replays from the one that Pebble
// has to the end, or up to a gap. base is the commit with which it became
// active: it sets record.VersionKey, and must be in Pebble's log, durably, before anybody
// is answered, so that there is no gap between what Pebble has then and what the tail has. What
// the tail has stays there when it rests, until Pebble's log has it.
type File struct {
	fs    vfs.FS
	path  string
	log   *slog.Logger
	half  int64  // length in bytes
	rest  int    // restAfter, except in tests
	epoch uint64 // of this process
	files uint64 // see begin

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
	grown      [2]int64  // bytes of each half that the file has
	complained bool
	stamped    [record.StampBytes]byte

	named  bool        // the folder with the file's name is durable; of Sync
	broken atomic.Bool // a sync failed
}

// Use is what a commit wants of the tail.
type Use int

const (
	// None: it is written there only while the tail is active.
	None Use = iota
	// Answer: somebody is answered once the end of the process does not take it.
	Answer
	// Durable: somebody is answered once the tail was synced.
	Durable
)

// Config is where the file is, and how long.
type Config struct {
	FS        vfs.FS
	Path      string
	DiskBytes int64 // 0: unknown
	Log       *slog.Logger
	// Half is the length of a half in bytes, and Rest how many commits there are
	// until the tail rests; 0: the constants. For tests.
	Half int64
	Rest int
}

// New returns the tail of a process, which has not begun.
func New(c Config) *File {
	// cur is the second half, so that the first is used first: a start finds the
	// length of the halves there.
	t := &File{fs: c.FS, path: c.Path, log: c.Log, half: record.TailHalfMax, rest: restAfter, cur: 1}
	if c.DiskBytes > 0 {
		t.half = max(record.TailHalfMin, min(t.half, c.DiskBytes/diskShare/2&^(fileio.PageBytes-1)))
	}
	if c.Half > 0 {
		t.half, t.rest = c.Half, c.Rest
	}
	return t
}

// Begin makes a new epoch. Pebble is open, and files the number of its OPTIONS
// file: Missing asks of it whether others changed the store since.
func (t *File) Begin(files uint64) error {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return err
	}
	t.epoch, t.files = binary.LittleEndian.Uint64(b[:]), files
	return nil
}

// Pause has all commits go to Pebble's log alone, or ends that. What the tail has
// is needed until that log has it.
func (t *File) Pause(on bool) {
	t.active, t.paused = false, on
	t.cur = 1 // the first half is the next, see New
}

// Stamps reports whether a commit must set record.VersionKey.
func (t *File) Stamps(version uint64, use Use) bool {
	return version == 1 || t.active || use != None
}

// Stamp returns the value of record.VersionKey, good until the next.
func (t *File) Stamp(version uint64) []byte {
	return record.PutStamp(&t.stamped, t.epoch, version)
}

// Append is called for every commit before Pebble has it; logged: the newest version
// that is durable in Pebble's log. The tail has the commit, and the end of the process does not take it, once the
// version due is; due is version itself if the commit is not there.
// switched reports that a half is full, and waits for Pebble's log.
func (t *File) Append(version uint64, batch []byte, use Use, logged uint64) (due uint64, switched bool) {
	if t.broken.Load() {
		t.active = false
		return version, false
	}
	length := int64(record.TailRecordBytes + len(batch))
	if !t.active && (use == None || t.paused) {
		return version, false
	}
	if len(batch) > record.TailBatchMax || record.TailHeaderBytes+length > t.half {
		t.active = false
		return version, false
	}
	if !t.active {
		if t.turn(logged) {
			t.active, t.base, t.quiet = true, version, 0
		}
		return version, false // who is answered waits for base
	}
	if t.quiet++; use != None {
		t.quiet = 0
	}
	if t.quiet > t.rest {
		t.active = false
		return version, false
	}
	if t.off+length > t.half {
		if !t.turn(logged) {
			t.active = false
			return version, false
		}
		switched = true
	}
	t.buf = record.TailRecord{Version: version, Batch: batch}.Append(t.buf[:0], t.header())
	if use == Durable {
		t.pad()
		if !t.grow(t.off + int64(len(t.buf))) {
			return version, switched
		}
	}
	if !t.write(t.buf, int64(t.cur)*t.half+t.off) {
		return version, switched
	}
	t.off += int64(len(t.buf))
	t.last[t.cur] = version
	return t.base, switched
}

// pad fills the last page of what is to be written, if the half has it: the next sync would have to
// write that page again, and to wait until this one has.
func (t *File) pad() {
	end := t.off + int64(len(t.buf))
	rest := fileio.Align(end) - end
	if rest > 0 && rest < record.TailRecordBytes {
		rest += fileio.PageBytes
	}
	if rest > 0 && end+rest <= t.half {
		t.buf = record.AppendFiller(t.buf, int(rest), t.header())
	}
}

// grow makes the file longer if the half in use does not have end bytes.
func (t *File) grow(end int64) bool {
	grown := &t.grown[t.cur]
	if end <= *grown {
		return true
	}
	from := max(*grown, t.off)
	to := min(max(end, from+growBytes), t.half)
	if !t.write(make([]byte, to-from), int64(t.cur)*t.half+from) {
		return false
	}
	*grown = to
	return true
}

// Sync makes durable what was there when it was called. There is one call at a time. After one
// that failed the tail is not used any more: the next could succeed, although what failed
// is not on the medium.
func (t *File) Sync() error {
	if t.broken.Load() {
		return errBroken
	}
	err := t.file.SyncData()
	if err == nil && !t.named {
		err = fileio.SyncDir(t.fs, t.fs.PathDir(t.path))
		t.named = err == nil
	}
	if err != nil && !ioerr.OutOfFiles(err) { // of the folder: nothing was tried yet
		t.broken.Store(true)
		t.log.Warn("metadata store: the tail of the log cannot be synced", "file", t.path, "err", err)
	}
	return ioerr.Map(err)
}

// header is that of the half in use.
func (t *File) header() record.TailHeader {
	return record.TailHeader{Epoch: t.epoch, Generation: t.generation, Files: t.files, Half: t.half}
}

// turn goes to the other half, if nobody needs what it holds.
func (t *File) turn(logged uint64) bool {
	next := 1 - t.cur
	if t.last[next] > logged {
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

// write returns false when the file cannot be written: commits wait for Pebble's log
// then.
func (t *File) write(b []byte, off int64) bool {
	if _, err := t.file.WriteAt(b, off); err != nil {
		t.fail(err)
		return false
	}
	return true
}

func (t *File) fail(err error) {
	t.active = false
	if !t.complained {
		t.complained = true
		t.log.Warn("metadata store: changes wait for the disk", "file", t.path, "err", err)
	}
}

// Remove removes the file of another process, which nothing needs any more.
func (t *File) Remove() error {
	if err := t.fs.Remove(t.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return ioerr.Map(err)
	}
	return nil
}

// Close forgets the file, which nothing needs any more if clean.
func (t *File) Close(clean bool) {
	if t.file == nil {
		return
	}
	_ = t.file.Close()
	t.file = nil
	if clean {
		_ = t.fs.Remove(t.path) // what it holds is old
	}
}

// Wipe overwrites the file; it is paused, and Pebble's log has what it holds.
func (t *File) Wipe() error {
	if t.file == nil {
		return nil
	}
	return fileio.ZeroOut(t.file, 2*t.half)
}

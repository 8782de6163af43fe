package mounts

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ogw/cmd/ogw/privatefile"
	"ogw/httpapi/admin"
)

const (
	// RecordName is the file in the data folder that lists the mounts of the
	// process, for the next one.
	RecordName = "mounts.json"
	// LockName is the file whose lock belongs to who may change the record: the
	// process that serves the folder, from before it reads the record until it
	// ends, or else a command, for a moment.
	LockName = "mounts.lock"
)

// entry is one mount of the record.
type entry struct {
	admin.Mount
	// Stopped reports whether its process unmounted it when it ended in order.
	Stopped bool `json:"stopped,omitempty"`
	// Place is where it was made (see place).
	Place string `json:"place,omitempty"`

	why error // it is not served
}

// record is the file and its lock.
type record struct {
	path string
	log  *slog.Logger
	lock *os.File // nil: it could not be taken
	open bool
}

const (
	// lockWait bounds how long a start waits for a command that changes the
	// record, which takes milliseconds.
	lockWait = 10 * time.Second
	lockPoll = 10 * time.Millisecond
)

// openRecord takes the record for the process that serves dir.
func openRecord(dir string, log *slog.Logger) *record {
	r := &record{path: filepath.Join(dir, RecordName), log: log, open: true}
	var err error
	for begin := time.Now(); ; time.Sleep(lockPoll) {
		r.lock, err = lockRecord(dir)
		if !errors.Is(err, ErrServed) || time.Since(begin) > lockWait {
			break
		}
	}
	if err != nil {
		log.Warn("the record of mounts is used without its lock", "error", err)
	}
	return r
}

// ErrServed is returned by Forget while a process serves the folder, or is about to.
var ErrServed = errors.New("another process has the record of mounts")

// lockRecord takes the lock until the file is closed; ErrServed.
func lockRecord(dir string) (*os.File, error) {
	f, err := privatefile.Open(filepath.Join(dir, LockName), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrServed
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// read returns the mounts of the process before: nil if it left no record.
func (r *record) read() []entry {
	list, err := readEntries(r.path)
	if err != nil {
		r.log.Warn("the record of mounts cannot be read", "file", r.path, "error", err)
	}
	return list
}

func readEntries(path string) (list []entry, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the usual case: there were none
	}
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	return list, err
}

// write replaces the record.
func (r *record) write(list []entry) {
	if !r.open {
		return
	}
	var err error
	if len(list) > 0 {
		err = writeEntries(r.path, list)
	} else {
		err = os.Remove(r.path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Warn("mounts are not recorded: they would not come back", "error", err)
	}
}

func writeEntries(path string, list []entry) error {
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return privatefile.Replace(path, b, true)
}

// close gives the record to others.
func (r *record) close() {
	r.open = false
	if r.lock != nil {
		_ = r.lock.Close()
	}
}

// Forget takes a mount out of the record of a folder that no process serves, so
// that none makes it again. found reports whether it was there. ErrServed.
func Forget(folder, dir string) (found bool, err error) {
	path := filepath.Join(folder, RecordName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock, err := lockRecord(folder)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	list, err := readEntries(path)
	if err != nil {
		return false, err
	}
	rest := slices.DeleteFunc(slices.Clone(list), func(e entry) bool { return e.Dir == dir })
	if len(rest) == len(list) {
		return false, nil
	}
	// An empty one stays: it shows the next server that what it finds held is in
	// no place that was asked for.
	return true, writeEntries(path, rest)
}

// place identifies this mount namespace of this start of the machine:
// what was mounted in another one is not to be seen here.
func place() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, err2 := os.Readlink("/proc/self/ns/mnt")
	if err != nil || err2 != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + namespace
}

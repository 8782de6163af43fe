package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// fileMode of the files: they show who does what.
	fileMode = 0o600
	// openFlags append, follow no link, and do not wait for the reader of a
	// pipe that somebody put in the place.
	openFlags = os.O_WRONLY | os.O_APPEND | os.O_CREATE | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	// tryEvery is how often an open or a rename that failed is tried again.
	tryEvery = time.Second
)

// errPlace tells that what stands in the file's place cannot be it.
var errPlace = errors.New("refused as audit log")

// file is a sink that appends to a file and renames it when it is large.
type file struct {
	path  string
	limit int64
	keep  int

	f     *os.File // nil: it could not be opened, and is tried again
	size  int64
	torn  bool      // the last write ended within a line
	tried time.Time // the last open or rename that failed
}

// openFile opens path. It fails where something else stands in its place, and
// succeeds where only the medium is at fault.
func openFile(path string, limit int64, keep int) (*file, error) {
	s := &file{path: path, limit: limit, keep: keep}
	_ = s.settle() // else the next rotation does it, or tells
	err := s.open()
	if medium(err) {
		s.tried = time.Now()
		return s, nil
	}
	return s, err
}

// medium reports whether err is one that goes away with room or a repair.
func medium(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (s *file) open() error {
	f, err := os.OpenFile(s.path, openFlags, fileMode)
	if errors.Is(err, syscall.ELOOP) {
		return fmt.Errorf("%w: %s is a symbolic link", errPlace, s.path)
	}
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		err = s.fit(info)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.f, s.size, s.torn = f, info.Size(), false
	return nil
}

// fit reports why an open file cannot be the log: others could read what is
// written, or change it.
func (s *file) fit(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file", errPlace, s.path)
	case ok && st.Nlink != 1:
		return fmt.Errorf("%w: %s has %d links", errPlace, s.path, st.Nlink)
	case ok && st.Uid != uint32(os.Geteuid()):
		return fmt.Errorf("%w: %s belongs to uid %d", errPlace, s.path, st.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%w: others may write %s (mode %04o)", errPlace, s.path, info.Mode().Perm())
	}
	return nil
}

// write implements sink. A line goes out in one call, so that those of two
// processes do not mix.
func (s *file) write(_ Class, line []byte) error {
	if err := s.ready(int64(len(line))); err != nil {
		return err
	}
	if s.torn { // what a full medium left of a line ends here
		line = append([]byte{'\n'}, line...)
	}
	n, err := s.f.Write(line)
	s.size += int64(n)
	if n > 0 {
		s.torn = n < len(line)
	}
	return err
}

// ready opens what is not open, and begins a new file for more bytes.
func (s *file) ready(more int64) error {
	wait := time.Since(s.tried) < tryEvery
	if s.f != nil && s.size > 0 && s.size+more > s.limit && !wait {
		if err := s.rotate(); err != nil {
			s.tried = time.Now()
			if s.f == nil {
				return err
			}
			// What cannot be renamed is written on: acts are not lost for it.
		}
		return nil
	}
	if s.f != nil {
		return nil
	}
	if wait {
		return fmt.Errorf("audit log: %s could not be opened", s.path)
	}
	err := s.open()
	if err != nil {
		s.tried = time.Now()
	}
	return err
}

// rotate renames FILE to FILE.1, FILE.1 to FILE.2 and so on. The last goes, but
// not before FILE could be renamed: where that fails, it fails with every try.
func (s *file) rotate() error {
	if err := s.settle(); err != nil {
		return err
	}
	if err := os.Rename(s.path, s.aside()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("audit log: %w", err)
	}
	if err := s.settle(); err != nil {
		return errors.Join(err, os.Rename(s.aside(), s.path))
	}
	return s.reopen()
}

// settle makes the file that a rotation put aside FILE.1, be it one that did not
// end. The old files move up to the first free number alone: a rotation that
// begins again drops no second one.
func (s *file) settle() error {
	info, err := os.Lstat(s.aside())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("audit log: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file", errPlace, s.aside())
	}
	free := 1
	for free < s.keep {
		if _, err := os.Lstat(s.numbered(free)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		free++
	}
	for i := free; i > 1; i-- {
		if err := os.Rename(s.numbered(i-1), s.numbered(i)); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
	}
	if err := os.Rename(s.aside(), s.numbered(1)); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// aside returns the name of FILE during a rotation.
func (s *file) aside() string { return s.path + ".rotating" }

// numbered returns the name of the i-th old file; 0 is the one in use.
func (s *file) numbered(i int) string { return Numbered(s.path, i) }

// Numbered returns the name of the i-th old file of a log; 0 is the one in use.
func Numbered(path string, i int) string {
	if i == 0 {
		return path
	}
	return path + "." + strconv.Itoa(i)
}

// reopen implements sink.
func (s *file) reopen() error {
	old := s.f
	s.f = nil
	err := s.open()
	if err != nil {
		s.tried = time.Now()
	}
	if old != nil {
		err = errors.Join(err, old.Close())
	}
	return err
}

// close implements sink.
func (s *file) close() error {
	if s.f == nil {
		return nil
	}
	return errors.Join(s.f.Sync(), s.f.Close())
}

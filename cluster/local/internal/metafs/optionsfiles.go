package metafs

import (
	"errors"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"ogw/cluster/local/internal/ioerr"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// optionsTrace begins the OPTIONS files that are made by an ogw that knows the
// tail; to Pebble it is a comment.
const optionsTrace = "# ogw replays the tail\n"

// OptionsFiles are the numbers of Pebble's OPTIONS files, and whether they begin
// with optionsTrace. Every Open makes a new one, and the older ones are removed
// when the store was accepted, which is when the tail was replayed. So a start
// that did not get that far leaves the one that the tail names, and one with the
// trace; an ogw that knows no tail leaves one without the trace until it has
// removed the one that the tail names.
type OptionsFiles map[uint64]bool

// FindOptions returns those in the folder meta; none if it is not there.
func FindOptions(fs vfs.FS, meta string) (OptionsFiles, error) {
	names, err := fs.List(meta)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, ioerr.Map(err)
	}
	files := OptionsFiles{}
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
			return nil, ioerr.Map(err)
		}
	}
	return files, nil
}

// traced reports whether a file begins with optionsTrace.
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

// Newest returns the highest number; 0 if there is none.
func (o OptionsFiles) Newest() (newest uint64) {
	for n := range o {
		newest = max(newest, n)
	}
	return newest
}

// Current reports whether nobody changed the store since the process that made
// file n but starts that came to nothing.
func (o OptionsFiles) Current(n uint64) bool {
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

// optionsTemp begins the name of an OPTIONS file that is being made.
const optionsTemp = "temporary."

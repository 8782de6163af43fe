package tail

import (
	"errors"
	"io"
	"os"
	"slices"

	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readRecords returns the records of an epoch, the oldest first; none if others
// changed the store since; see missing for current.
func readRecords(fs vfs.FS, path string, epoch uint64, current func(files uint64) bool) ([]record.TailRecord, error) {
	f, err := fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, ioerr.Map(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 2*record.TailHalfMax))
	if err != nil {
		return nil, ioerr.Map(err)
	}
	h, ok := record.ParseTailHeader(data)
	if !ok {
		return nil, nil // the power went before the first half was on the medium
	}
	half := h.Half
	var records []record.TailRecord
	for start := int64(0); start < min(int64(len(data)), 2*half); start += half {
		records = append(records, parseHalf(data[start:min(start+half, int64(len(data)))], epoch, current)...)
	}
	slices.SortFunc(records, func(a, b record.TailRecord) int {
		if a.Version < b.Version {
			return -1
		}
		return 1
	})
	return records, nil
}

// Missing returns the commits that Pebble lacks, in order and up to the first
// gap. stamp is its value of record.VersionKey; current reports whether nobody
// else changed the store since a process began with files.
func (t *File) Missing(stamp []byte, current func(files uint64) bool) (found []record.TailRecord, err error) {
	epoch, have, ok := record.ParseStamp(stamp)
	if !ok {
		return nil, nil
	}
	records, err := readRecords(t.fs, t.path, epoch, current)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.Version <= have {
			continue
		}
		if r.Version != have+1 {
			break
		}
		found = append(found, r)
		have++
	}
	return found, nil
}

// parseHalf returns the records of one half.
func parseHalf(b []byte, epoch uint64, current func(files uint64) bool) []record.TailRecord {
	h, ok := record.ParseTailHeader(b)
	if !ok || h.Epoch != epoch || !current(h.Files) {
		return nil
	}
	return record.ParseTailRecords(b[record.TailHeaderBytes:], h)
}

package local

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"

	"ogw/cluster/local/internal/ioerr"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/minio/crc64nvme"
)

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
		return nil, ioerr.Map(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 2*tailHalfBytes))
	if err != nil {
		return nil, ioerr.Map(err)
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

// missing returns the commits that Pebble lacks, in order and up to the first
// gap. stamp is its value of versionKey.
func (t *tail) missing(stamp []byte, options optionsFiles) (found []tailRecord, err error) {
	if len(stamp) != versionBytes {
		return nil, nil
	}
	epoch, have := binary.LittleEndian.Uint64(stamp), binary.LittleEndian.Uint64(stamp[8:])
	records, err := readTail(t.fs, t.path, epoch, options)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.version <= have {
			continue
		}
		if r.version != have+1 {
			break
		}
		found = append(found, r)
		have++
	}
	return found, nil
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

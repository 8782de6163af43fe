package metafs

import (
	"errors"
	"fmt"
	"io"
	"os"

	"ogw/cluster"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/minio/crc64nvme"
)

const (
	// markMaxBytes bounds what is read of it: some 200,000 files.
	markMaxBytes = 8 << 20
	// printBytes is how much is read at each end of a file to distinguish it from
	// others: the first keys and values, and the footer.
	printBytes = 4 << 10
)

// readMark returns nil when there is none.
func readMark(fs vfs.FS, dir string) (*record.Mark, error) {
	f, err := fs.Open(fs.PathJoin(dir, record.MarkFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, ioerr.Map(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, markMaxBytes))
	if err != nil {
		return nil, ioerr.Map(err)
	}
	return record.ParseMark(data)
}

// compare compares the files that are there with those that were, and reports
// whether some are gone: merged with others since, or Pebble notices.
func compare(m *record.Mark, fs vfs.FS, meta string) (gone bool, err error) {
	for name, want := range m.Files {
		path := fs.PathJoin(meta, name)
		got, err := printOf(fs, path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			gone = true
		case err != nil:
			return gone, ioerr.Map(err)
		case got.Bytes < want.Bytes:
			return gone, fmt.Errorf("%w: file %s is cut short: %d bytes of %d", cluster.ErrCorrupt, path, got.Bytes, want.Bytes)
		case got != want:
			return gone, fmt.Errorf("%w: file %s is damaged, or another was put in its place", cluster.ErrCorrupt, path)
		}
	}
	return gone, nil
}

func printOf(fs vfs.FS, path string) (p record.Print, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return p, err
	}
	p.Bytes = info.Size()
	n := min(p.Bytes, printBytes)
	ends := make([]byte, 2*n)
	if _, err := f.ReadAt(ends[:n], 0); err != nil && !errors.Is(err, io.EOF) {
		return p, err
	}
	if _, err := f.ReadAt(ends[n:], p.Bytes-n); err != nil && !errors.Is(err, io.EOF) {
		return p, err
	}
	p.CRC = crc64nvme.Checksum(ends)
	return p, nil
}

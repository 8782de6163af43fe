package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"ogw/cluster"
	"ogw/cluster/local/internal/ioerr"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/minio/crc64nvme"
)

// The file MARK tells what the metadata were like a short while ago, so that a
// start notices when they are older, or not the same files: Pebble's own
// checksums hold within each file, and it takes a log or manifest that ends
// early for one that a crash cut. All numbers are little-endian:
//
//	 0  magic "ogwmark1"
//	 8  store ID
//	24  state (8): the metadata hold this number, or a higher one, at FF 'm'
//	32  number of files (4)
//	36  each: length of the name (1), name, length of the file (8), CRC64NVME
//	    of its first and last bytes (8)
//	..  CRC64NVME of all before
const (
	markMagic = "ogwmark1"
	// markMaxBytes bounds what is read of it: some 200,000 files.
	markMaxBytes = 8 << 20
	// printBytes is how much is read at each end of a file to tell it from
	// others: the first keys and values, and the footer.
	printBytes = 4 << 10
)

// filePrint tells a file of tables or values from another. They are written
// once.
type filePrint struct {
	bytes int64
	crc   uint64
}

type mark struct {
	store storeID
	state uint64
	files map[string]filePrint // by name in the folder of metadata
}

func (m *mark) encode() []byte {
	b := append([]byte(markMagic), m.store[:]...)
	b = binary.LittleEndian.AppendUint64(b, m.state)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.files)))
	for name, p := range m.files {
		b = append(append(b, byte(len(name))), name...)
		b = binary.LittleEndian.AppendUint64(b, uint64(p.bytes))
		b = binary.LittleEndian.AppendUint64(b, p.crc)
	}
	return binary.LittleEndian.AppendUint64(b, crc64nvme.Checksum(b))
}

var errMark = fmt.Errorf("%w: damaged %s file", cluster.ErrCorrupt, markFile)

func parseMark(b []byte) (*mark, error) {
	const head = len(markMagic) + storeIDBytes + 8 + 4
	if len(b) < head+crcBytes || string(b[:len(markMagic)]) != markMagic {
		return nil, errMark
	}
	body := b[:len(b)-crcBytes]
	if crc64nvme.Checksum(body) != binary.LittleEndian.Uint64(b[len(body):]) {
		return nil, errMark
	}
	m := &mark{state: binary.LittleEndian.Uint64(b[24:]), files: map[string]filePrint{}}
	copy(m.store[:], b[8:])
	n := binary.LittleEndian.Uint32(b[32:])
	rest := body[head:]
	for range n {
		if len(rest) < 1 || len(rest) < 1+int(rest[0])+16 {
			return nil, errMark
		}
		name := string(rest[1 : 1+rest[0]])
		rest = rest[1+len(name):]
		m.files[name] = filePrint{int64(binary.LittleEndian.Uint64(rest)), binary.LittleEndian.Uint64(rest[8:])}
		rest = rest[16:]
	}
	if len(rest) > 0 || len(m.files) != int(n) {
		return nil, errMark
	}
	return m, nil
}

// readMark returns nil when there is none.
func readMark(fs vfs.FS, dir string) (*mark, error) {
	f, err := fs.Open(fs.PathJoin(dir, markFile))
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
	return parseMark(data)
}

// check compares the files that are there with those that were, and tells
// whether some are gone: merged with others since, or Pebble notices.
func (m *mark) check(fs vfs.FS, meta string) (gone bool, err error) {
	for name, want := range m.files {
		path := fs.PathJoin(meta, name)
		got, err := printOf(fs, path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			gone = true
		case err != nil:
			return gone, ioerr.Map(err)
		case got.bytes < want.bytes:
			return gone, fmt.Errorf("%w: file %s is cut short: %d bytes of %d", cluster.ErrCorrupt, path, got.bytes, want.bytes)
		case got != want:
			return gone, fmt.Errorf("%w: file %s is damaged, or another was put in its place", cluster.ErrCorrupt, path)
		}
	}
	return gone, nil
}

func printOf(fs vfs.FS, path string) (p filePrint, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return p, err
	}
	p.bytes = info.Size()
	n := min(p.bytes, printBytes)
	ends := make([]byte, 2*n)
	if _, err := f.ReadAt(ends[:n], 0); err != nil && !errors.Is(err, io.EOF) {
		return p, err
	}
	if _, err := f.ReadAt(ends[n:], p.bytes-n); err != nil && !errors.Is(err, io.EOF) {
		return p, err
	}
	p.crc = crc64nvme.Checksum(ends)
	return p, nil
}

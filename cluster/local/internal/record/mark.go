package record

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"

	"github.com/minio/crc64nvme"
)

// The file MARK records what the metadata were like a short while ago, so that a
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
const markMagic = "ogwmark1"

// Print distinguishes one file of tables or values from another. They are written
// once.
type Print struct {
	Bytes int64
	CRC   uint64
}

// Mark is what the file holds.
type Mark struct {
	Store StoreID
	State uint64
	Files map[string]Print // by name in the folder of metadata
}

// Encode returns the file.
func (m *Mark) Encode() []byte {
	b := append([]byte(markMagic), m.Store[:]...)
	b = binary.LittleEndian.AppendUint64(b, m.State)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Files)))
	for name, p := range m.Files {
		b = append(append(b, byte(len(name))), name...)
		b = binary.LittleEndian.AppendUint64(b, uint64(p.Bytes))
		b = binary.LittleEndian.AppendUint64(b, p.CRC)
	}
	return binary.LittleEndian.AppendUint64(b, crc64nvme.Checksum(b))
}

var errMark = fmt.Errorf("%w: damaged %s file", cluster.ErrCorrupt, MarkFile)

// ParseMark decodes the file; cluster.ErrCorrupt for anything else.
func ParseMark(b []byte) (*Mark, error) {
	const head = len(markMagic) + StoreIDBytes + 8 + 4
	if len(b) < head+CRCBytes || string(b[:len(markMagic)]) != markMagic {
		return nil, errMark
	}
	body := b[:len(b)-CRCBytes]
	if crc64nvme.Checksum(body) != binary.LittleEndian.Uint64(b[len(body):]) {
		return nil, errMark
	}
	m := &Mark{State: binary.LittleEndian.Uint64(b[24:]), Files: map[string]Print{}}
	copy(m.Store[:], b[8:])
	n := binary.LittleEndian.Uint32(b[32:])
	rest := body[head:]
	for range n {
		if len(rest) < 1 || len(rest) < 1+int(rest[0])+16 {
			return nil, errMark
		}
		name := string(rest[1 : 1+rest[0]])
		rest = rest[1+len(name):]
		m.Files[name] = Print{int64(binary.LittleEndian.Uint64(rest)), binary.LittleEndian.Uint64(rest[8:])}
		rest = rest[16:]
	}
	if len(rest) > 0 || len(m.Files) != int(n) {
		return nil, errMark
	}
	return m, nil
}

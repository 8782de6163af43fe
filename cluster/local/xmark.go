package local

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"

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
const markMagic = "ogwmark1"

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

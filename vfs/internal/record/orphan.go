package record

import (
	"encoding/binary"
	"fmt"

	"ogw/vfs/internal/fserr"
)

// EncodeOrphan returns the value of key 'o': the process that has the inode open
// (8 bytes, random), and when it said so last (8, Unix nanoseconds).
func EncodeOrphan(process uint64, timeNS int64) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, orphanBytes), process)
	return binary.BigEndian.AppendUint64(b, uint64(timeNS))
}

const orphanBytes = 16

func DecodeOrphan(b []byte) (process uint64, timeNS int64, err error) {
	if len(b) != orphanBytes {
		return 0, 0, fmt.Errorf("%w: orphan record", fserr.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(b), int64(binary.BigEndian.Uint64(b[8:])), nil
}

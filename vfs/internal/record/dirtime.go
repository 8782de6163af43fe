package record

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
)

// PutDirTime records a change of a directory's entries. It is written
// blindly, so that many may create in one directory at the same time.
func PutDirTime(t cluster.Txn, dir Ino, mtimeNS, ctimeNS int64) error {
	return t.Set(DirTimeKey(dir), EncodeDirTime(TimeNS(mtimeNS), ctimeNS))
}

// A far time follows as seconds (8) and nanoseconds (4).
func EncodeDirTime(mtime Time, ctimeNS int64) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, dirTimeFarBytes), uint64(mtime.UnixNS()))
	b = binary.BigEndian.AppendUint64(b, uint64(ctimeNS))
	if mtime.far() {
		b = binary.BigEndian.AppendUint64(b, uint64(mtime.Sec))
		b = binary.BigEndian.AppendUint32(b, mtime.Nsec)
	}
	return b
}

const (
	dirTimeBytes    = 16
	dirTimeFarBytes = 28
)

func ParseDirTime(b []byte) (mtime Time, ctimeNS int64, err error) {
	if len(b) != dirTimeBytes && len(b) != dirTimeFarBytes {
		return mtime, 0, fmt.Errorf("%w: directory times", fserr.ErrCorrupt)
	}
	mtime = TimeNS(int64(binary.BigEndian.Uint64(b)))
	if len(b) == dirTimeFarBytes {
		mtime = Time{int64(binary.BigEndian.Uint64(b[16:])), binary.BigEndian.Uint32(b[24:])}
	}
	return mtime, int64(binary.BigEndian.Uint64(b[8:])), nil
}

package local

import (
	"encoding/binary"

	"github.com/minio/crc64nvme"
)

// The file tail holds what relaxed commits wrote a moment ago: Pebble keeps
// them in the memory of the process until a block of its log is full or somebody
// asks for a sync, and the file is in the system's memory, which the end of the
// process does not take. It is never synced.
//
// It has two halves, which are used in turns. All numbers are little-endian:
//
//	 0  magic "ogwtail2"
//	 8  epoch (8): a random number of the process's
//	16  generation (8): counts the uses of halves
//	24  number of Pebble's OPTIONS file (8), see optionsFiles
//	32  length of a half (8)
//	40  CRC64NVME of all before
//	48  each: length of the batch (4), version (8), CRC64NVME (8) of epoch,
//	    generation, version and batch; Pebble's batch
const (
	tailMagic       = "ogwtail2"
	tailHeaderBytes = 48
	tailRecordBytes = 20
	// tailHalfMax bounds a half: what half a second of the busiest door writes.
	// It is used again when what it holds is durable.
	tailHalfMax = 8 << 20
	// tailHalfMin holds a header and a record.
	tailHalfMin = tailHeaderBytes + tailRecordBytes + 1
	// tailBatchMax is the longest batch that is written there; one that is
	// longer waits for the disk.
	tailBatchMax = 1 << 20
)

// tailHeader begins a half.
type tailHeader struct {
	epoch, generation, files uint64
	half                     int64 // length in bytes
}

func (h tailHeader) encode() []byte {
	b := make([]byte, 0, tailHeaderBytes)
	b = append(b, tailMagic...)
	b = binary.LittleEndian.AppendUint64(b, h.epoch)
	b = binary.LittleEndian.AppendUint64(b, h.generation)
	b = binary.LittleEndian.AppendUint64(b, h.files)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.half))
	return binary.LittleEndian.AppendUint64(b, crc64nvme.Checksum(b))
}

// parseTailHeader decodes what encode wrote. It returns false for anything else.
func parseTailHeader(b []byte) (h tailHeader, ok bool) {
	if len(b) < tailHeaderBytes || string(b[:8]) != tailMagic ||
		crc64nvme.Checksum(b[:tailHeaderBytes-8]) != binary.LittleEndian.Uint64(b[tailHeaderBytes-8:]) {
		return h, false
	}
	h.epoch, h.generation = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	h.files, h.half = binary.LittleEndian.Uint64(b[24:]), int64(binary.LittleEndian.Uint64(b[32:]))
	return h, h.half >= tailHalfMin && h.half <= tailHalfMax
}

// tailRecord is a commit in the file.
type tailRecord struct {
	version uint64
	batch   []byte
}

// append appends r, as it stands in a half that begins with h.
func (r tailRecord) append(b []byte, h tailHeader) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.batch)))
	b = binary.LittleEndian.AppendUint64(b, r.version)
	b = binary.LittleEndian.AppendUint64(b, r.sum(h))
	return append(b, r.batch...)
}

func (r tailRecord) sum(h tailHeader) uint64 {
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], h.epoch)
	binary.LittleEndian.PutUint64(b[8:], h.generation)
	binary.LittleEndian.PutUint64(b[16:], r.version)
	return crc64nvme.Checksum(r.batch) ^ crc64nvme.Checksum(b[:])
}

// parseTailRecords decodes what follows the header of a half, up to what is
// damaged, not whole or of an earlier use. The records keep b.
func parseTailRecords(b []byte, h tailHeader) (records []tailRecord) {
	for len(b) >= tailRecordBytes {
		n := int64(binary.LittleEndian.Uint32(b))
		if n > tailBatchMax || n > int64(len(b)-tailRecordBytes) {
			break
		}
		r := tailRecord{binary.LittleEndian.Uint64(b[4:]), b[tailRecordBytes : tailRecordBytes+n]}
		if binary.LittleEndian.Uint64(b[12:]) != r.sum(h) {
			break
		}
		records = append(records, r)
		b = b[tailRecordBytes+n:]
	}
	return records
}

// stampBytes is the length of the value of versionKey.
const stampBytes = 16

// putStamp writes the value of versionKey to b.
func putStamp(b *[stampBytes]byte, epoch, version uint64) []byte {
	binary.LittleEndian.PutUint64(b[:], epoch)
	binary.LittleEndian.PutUint64(b[8:], version)
	return b[:]
}

// parseStamp decodes the value of versionKey; false if it is none.
func parseStamp(b []byte) (epoch, version uint64, ok bool) {
	if len(b) != stampBytes {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), true
}

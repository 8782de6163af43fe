package record

import (
	"encoding/binary"

	"github.com/minio/crc64nvme"
)

// The file tail holds what was committed a moment ago: Pebble keeps that in the memory of the
// process until a block of its log is full or somebody asks for a sync, and the file is in the
// system's memory, which the end of the process does not take. It is synced where that is
// sooner than to sync Pebble's log.
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
//	    generation, version and batch; Pebble's batch. Version 0: zeros up to the end of
//	    a page
const (
	TailMagic       = "ogwtail2"
	TailHeaderBytes = 48
	TailRecordBytes = 20
	// TailHalfMax bounds a half: what half a second of the busiest door writes.
	// It is used again when what it holds is durable in Pebble's log.
	TailHalfMax = 8 << 20
	// TailHalfMin holds a header and a record.
	TailHalfMin = TailHeaderBytes + TailRecordBytes + 1
	// TailBatchMax is the longest batch that is written there; one that is
	// longer waits for the disk.
	TailBatchMax = 1 << 20
)

// TailHeader begins a half.
type TailHeader struct {
	Epoch, Generation, Files uint64
	Half                     int64 // length in bytes
}

// Encode returns the header.
func (h TailHeader) Encode() []byte {
	b := make([]byte, 0, TailHeaderBytes)
	b = append(b, TailMagic...)
	b = binary.LittleEndian.AppendUint64(b, h.Epoch)
	b = binary.LittleEndian.AppendUint64(b, h.Generation)
	b = binary.LittleEndian.AppendUint64(b, h.Files)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.Half))
	return binary.LittleEndian.AppendUint64(b, crc64nvme.Checksum(b))
}

// ParseTailHeader decodes what encode wrote. It returns false for anything else.
func ParseTailHeader(b []byte) (h TailHeader, ok bool) {
	if len(b) < TailHeaderBytes || string(b[:8]) != TailMagic ||
		crc64nvme.Checksum(b[:TailHeaderBytes-8]) != binary.LittleEndian.Uint64(b[TailHeaderBytes-8:]) {
		return h, false
	}
	h.Epoch, h.Generation = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	h.Files, h.Half = binary.LittleEndian.Uint64(b[24:]), int64(binary.LittleEndian.Uint64(b[32:]))
	return h, h.Half >= TailHalfMin && h.Half <= TailHalfMax
}

// TailRecord is a commit in the file.
type TailRecord struct {
	Version uint64
	Batch   []byte
}

// Append appends r, as it stands in a half that begins with h.
func (r TailRecord) Append(b []byte, h TailHeader) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Batch)))
	b = binary.LittleEndian.AppendUint64(b, r.Version)
	b = binary.LittleEndian.AppendUint64(b, r.sum(h))
	return append(b, r.Batch...)
}

// AppendFiller appends a record of bytes in all that says nothing: no commit has version 0.
func AppendFiller(b []byte, bytes int, h TailHeader) []byte {
	return TailRecord{Batch: make([]byte, bytes-TailRecordBytes)}.Append(b, h)
}

func (r TailRecord) sum(h TailHeader) uint64 {
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], h.Epoch)
	binary.LittleEndian.PutUint64(b[8:], h.Generation)
	binary.LittleEndian.PutUint64(b[16:], r.Version)
	return crc64nvme.Checksum(r.Batch) ^ crc64nvme.Checksum(b[:])
}

// ParseTailRecords decodes what follows the header of a half, up to what is
// damaged, not whole or of an earlier use. The records keep b.
func ParseTailRecords(b []byte, h TailHeader) (records []TailRecord) {
	for len(b) >= TailRecordBytes {
		n := int64(binary.LittleEndian.Uint32(b))
		if n > TailBatchMax || n > int64(len(b)-TailRecordBytes) {
			break
		}
		r := TailRecord{binary.LittleEndian.Uint64(b[4:]), b[TailRecordBytes : TailRecordBytes+n]}
		if binary.LittleEndian.Uint64(b[12:]) != r.sum(h) {
			break
		}
		records = append(records, r)
		b = b[TailRecordBytes+n:]
	}
	return records
}

// StampBytes is the length of the value of VersionKey.
const StampBytes = 16

// PutStamp writes the value of VersionKey to b.
func PutStamp(b *[StampBytes]byte, epoch, version uint64) []byte {
	binary.LittleEndian.PutUint64(b[:], epoch)
	binary.LittleEndian.PutUint64(b[8:], version)
	return b[:]
}

// ParseStamp decodes the value of VersionKey; false if it is none.
func ParseStamp(b []byte) (epoch, version uint64, ok bool) {
	if len(b) != StampBytes {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), true
}

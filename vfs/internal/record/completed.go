package record

import (
	"crypto/sha256"
	"encoding/binary"

	"ogw/vfs/internal/checksum"
)

// Completed is what an upload became (key 'c'), for who asks again for it to be completed:
// the object may be gone by then, or not be readable by who asks.
//
// Value: version byte, digest of the upload (16 bytes), time of completion (8, Unix
// nanoseconds), uid (uvarint) and user (string) of who began it, size (uvarint), MD5 of the
// parts' MD5s (16), number of parts (uvarint), and checksums as in an inode.
//
// It has less than 200 bytes: what is variable in it is an ID and two checksums.
type Completed struct {
	Digest    [16]byte // of Upload.Digest
	TimeNS    int64
	UID       uint32
	User      UserID // as Initiator.User
	Size      int64
	Sum       [16]byte
	NParts    int
	Checksums []checksum.Sum // all that are known
}

const completedVersion = 1

// Digest stands for the upload with its key and its token: who knows it cannot tell them.
func (u *Upload) Digest() [16]byte {
	h := sha256.New()
	h.Write(u.StoreKey())
	h.Write(u.Token[:])
	return [16]byte(h.Sum(nil))
}

func (c *Completed) Encode() []byte {
	var e Encoder
	e.Byte(completedVersion)
	e.B = append(e.B, c.Digest[:]...)
	e.fixed64(uint64(c.TimeNS))
	e.Uint(uint64(c.UID))
	e.Str(string(c.User))
	e.Uint(uint64(c.Size))
	e.B = append(e.B, c.Sum[:]...)
	e.Uint(uint64(c.NParts))
	e.B = appendChecksums(e.B, c.Checksums)
	return e.B
}

// DecodeCompleted returns false for what is no record, or one of a later version: nothing
// is then known of an upload.
func DecodeCompleted(b []byte) (c Completed, ok bool) {
	d := Decoder{B: b, What: "completed upload"}
	if d.Byte() != completedVersion {
		return c, false
	}
	c.Digest = d.fixed128()
	c.TimeNS = int64(d.fixed64())
	c.UID, c.User = uint32(d.Uint()), UserID(d.Str())
	c.Size = int64(d.Uint())
	c.Sum = d.fixed128()
	c.NParts = int(d.Uint())
	c.Checksums = d.checksums()
	return c, d.End() == nil
}

// fixed128 reads 16 bytes.
func (d *Decoder) fixed128() (v [16]byte) {
	binary.BigEndian.PutUint64(v[:8], d.fixed64())
	binary.BigEndian.PutUint64(v[8:], d.fixed64())
	return v
}

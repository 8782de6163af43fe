package record

import (
	"encoding/binary"
	"fmt"

	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/fserr"
)

// Upload is what key 'm' holds.
//
// Value: version byte, token (8 bytes), time of creation (8, Unix
// nanoseconds), uvarints uid, gid, mode and stage, the checksum algorithm, a
// byte for composite, content type, headers, user metadata, and since version
// 2 grants, the ID of the user who began it ("": anonymous, or of version 1), and
// a byte that reports whether what it overwrites stays its owner's.
type Upload struct {
	ID     ContentID // part of the key
	Bucket Ino       // part of the key
	Key    string    // part of the key

	Token       [8]byte // random part of the upload ID
	InitiatedNS int64
	UID, GID    uint32
	By          Initiator
	Mode        uint32
	Stage       uint64 // counts attempts to complete in several transactions
	Alg         checksum.Algorithm
	Composite   bool
	Meta        ObjectMeta
}

const uploadVersion = 2

func (u *Upload) StoreKey() []byte { return UploadKey(u.Bucket, u.Key, u.ID) }

func (u *Upload) Encode() []byte {
	var e Encoder
	e.Byte(uploadVersion)
	e.B = append(e.B, u.Token[:]...)
	e.fixed64(uint64(u.InitiatedNS))
	e.Uint(uint64(u.UID))
	e.Uint(uint64(u.GID))
	e.Uint(uint64(u.Mode))
	e.Uint(u.Stage)
	e.Str(string(u.Alg))
	e.Bool(u.Composite)
	e.Str(u.Meta.ContentType)
	e.strMap(u.Meta.Headers)
	e.strMap(u.Meta.User)
	e.Bytes(EncodeGrants(u.Meta.Grants))
	e.Str(string(u.By.User))
	e.Bool(u.By.KeepsOwner)
	return e.B
}

func DecodeUpload(k, v []byte) (*Upload, error) {
	bucket, key, id, err := ParseUploadKey(k)
	if err != nil {
		return nil, err
	}
	d := Decoder{B: v, What: "upload"}
	version := d.Byte()
	if version < 1 || version > uploadVersion {
		return nil, fmt.Errorf("%w: upload %d has format %d", fserr.ErrCorrupt, id, version)
	}
	u := &Upload{ID: id, Bucket: bucket, Key: key}
	binary.BigEndian.PutUint64(u.Token[:], d.fixed64())
	u.InitiatedNS = int64(d.fixed64())
	u.UID, u.GID = uint32(d.Uint()), uint32(d.Uint())
	u.Mode, u.Stage = uint32(d.Uint()), d.Uint()
	u.Alg, u.Composite = checksum.Algorithm(d.Str()), d.Byte() != 0
	u.Meta = ObjectMeta{ContentType: d.Str(), Headers: d.strMap(), User: d.strMap()}
	if version >= 2 {
		if u.Meta.Grants, err = DecodeGrants(d.Bytes()); err != nil {
			return nil, err
		}
		u.By = Initiator{UserID(d.Str()), d.Byte() != 0}
	}
	return u, d.End()
}

// Initiator is who began an upload.
type Initiator struct {
	User       UserID // "": anonymous, or the program, or of an older record
	KeepsOwner bool   // what the upload overwrites stays its owner's
}

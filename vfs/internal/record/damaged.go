package record

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
)

// Damaged is what is stored of one, as JSON (key 'z').
type Damaged struct {
	Size   int64     `json:"size"`
	Path   string    `json:"path"`
	Error  string    `json:"error"`
	By     string    `json:"by"`
	Found  time.Time `json:"found"`
	Aside  bool      `json:"aside,omitempty"`
	Traced bool      `json:"traced,omitempty"` // Inodes are known
	Inodes []Ino     `json:"inodes,omitempty"`

	// Unsaved: the store does not have it.
	Unsaved bool `json:"-"`
}

func (r *Damaged) Encode() ([]byte, error) { return json.Marshal(r) }

// DecodeDamaged never fails: that a blob is in quarantine counts for more than
// what its record says.
func DecodeDamaged(v []byte) Damaged {
	var rec Damaged
	if err := json.Unmarshal(v, &rec); err != nil {
		return Damaged{Error: fmt.Sprintf("damaged; so is the note about it: %v", err)}
	}
	return rec
}

func DamagedKey(id cluster.BlobID) []byte { return key2(TabDamaged, id.Content, id.Seq) }

func ParseDamagedKey(k []byte) (id cluster.BlobID, err error) {
	if len(k) != 17 || k[0] != TabDamaged {
		return id, fmt.Errorf("%w: quarantine key %x", fserr.ErrCorrupt, k)
	}
	return cluster.BlobID{Content: binary.BigEndian.Uint64(k[1:]), Seq: binary.BigEndian.Uint64(k[9:])}, nil
}

// NextBlob returns the least number behind id, in the order of cluster.Blobs.List.
func NextBlob(id cluster.BlobID) cluster.BlobID {
	if id.Seq++; id.Seq == 0 {
		id.Content++
	}
	return id
}

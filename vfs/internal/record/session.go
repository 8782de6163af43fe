package record

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
)

// Gateway is a process that uses the store, as it stands under 'F'. The record is
// its fence: the process commits while it is there, unchanged.
type Gateway struct {
	ID      uint64    `json:"-"` // random, in the key
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"` // for people
}

// FenceKey is the key of a gateway's fence, BeatKey that of the number of its
// beats. They are apart so that a beat is no conflict of who compares the fence.
func FenceKey(id uint64) []byte { return key1(TabFence, id) }
func BeatKey(id uint64) []byte  { return key1(TabBeat, id) }

// Encode returns the value.
func (g *Gateway) Encode() ([]byte, error) { return json.Marshal(g) }

// Gateways returns those that use the store, in the order of their IDs.
func Gateways(r cluster.Reader) (list []Gateway, err error) {
	from, to := Table(TabFence)
	err = r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
		g := Gateway{}
		if len(k) != Key1Bytes || json.Unmarshal(v, &g) != nil {
			return fmt.Errorf("%w: record of a gateway", fserr.ErrCorrupt)
		}
		g.ID = binary.BigEndian.Uint64(k[1:])
		list = append(list, g)
		return nil
	})
	return list, err
}

// Beat returns the number of the last beat of a gateway.
func Beat(r cluster.Reader, id uint64) (n uint64, err error) {
	v, err := r.Get(BeatKey(id))
	if err == nil && len(v) == 8 {
		n = binary.BigEndian.Uint64(v)
	}
	return n, err
}

// SetBeat stores it.
func SetBeat(t cluster.Txn, id, n uint64) error {
	return t.Set(BeatKey(id), binary.BigEndian.AppendUint64(nil, n))
}

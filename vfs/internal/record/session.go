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
// its fence: a transaction of the process commits while it is there, unchanged.
type Gateway struct {
	ID      uint64    `json:"-"` // random, in the key; 0: none yet
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"` // for people, and for who leads
	// Serves reports whether it does background work, and may lead.
	Serves bool `json:"serves,omitempty"`
	// Beside reports whether it uses the store beside others that do, too.
	Beside bool `json:"beside,omitempty"`
	// Format is the FormatVersion that it speaks, Rules those by which it is beside
	// others; 0 is one of before several could use a store. Speaks are the latest rules
	// by which it can be, if these are not Rules.
	Format uint16 `json:"format,omitempty"`
	Rules  uint16 `json:"rules,omitempty"`
	Speaks uint16 `json:"speaks,omitempty"`
	// Address and Key are how the others reach it (cluster.Peer), empty if they cannot.
	Address string `json:"address,omitempty"`
	Key     []byte `json:"key,omitempty"`
	// Restores reports whether it may go on with what a process before it had in use: until
	// it knows that (vfs.Open), others remove nothing that may be.
	Restores bool `json:"-"`
	// Ended are gateways whose processes are known to have ended, whatever the store says.
	Ended []uint64 `json:"-"`
	// Renewed counts how often it wrote the record anew, so that transactions that were
	// under way before cannot commit any more.
	Renewed uint64 `json:"renewed,omitempty"`
}

// Rules are what gateways beside one another say and rely on (package session, and the
// collector of package content). One that comes goes by OldestRules, and by the latest that all
// that are there can go by (CommonRules), up to RulesVersion. Those of before OldestRules are
// not beside; nor does one come that cannot go by what somebody does: it finds other rules
// than its own.
//
//	4  OldestRules
//	5  each tells the others what it is about to change (cluster.Peers)
//	6  share reservations are among the locks of a file (FileLocks)
const (
	OldestRules  = 4
	RulesTelling = 5
	RulesShares  = 6
	RulesVersion = 6
)

// Latest returns the latest rules by which it can go.
func (g *Gateway) Latest() uint16 { return max(g.Rules, g.Speaks) }

// CommonRules returns the latest rules by which all of a list can go.
func CommonRules(list []Gateway) uint16 {
	common := uint16(RulesVersion)
	for i := range list {
		common = min(common, list[i].Latest())
	}
	return common
}

// FenceKey is the key of a gateway's fence, BeatKey that of the number of its
// beats. They are apart so that a beat is no conflict of who compares the fence.
func FenceKey(id uint64) []byte { return key1(TabFence, id) }
func BeatKey(id uint64) []byte  { return key1(TabBeat, id) }

// GatewayOf returns the ID of the gateway that a key of these tables is about, 0 for none.
func GatewayOf(key []byte) uint64 {
	if len(key) != Key1Bytes {
		return 0
	}
	return binary.BigEndian.Uint64(key[1:])
}

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
		g.ID = GatewayOf(k)
		list = append(list, g)
		return nil
	})
	return list, err
}

// Beat is what a gateway says with each beat.
//
// Value: number (8 bytes), flags: 1 is Unable.
type Beat struct {
	Number uint64 // of the beat; 0: there is none
	// Unable reports whether the blobs do not answer it, so that another one should
	// remove and verify them.
	Unable bool
}

// ReadBeat returns the last beat of a gateway.
func ReadBeat(r cluster.Reader, id uint64) (Beat, error) {
	v, err := r.Get(BeatKey(id))
	return DecodeBeat(v), err
}

// DecodeBeat is the inverse of Encode.
func DecodeBeat(v []byte) (b Beat) {
	if len(v) == 9 {
		b.Number, b.Unable = binary.BigEndian.Uint64(v), v[8]&1 != 0
	}
	return b
}

// Encode returns the value.
func (b Beat) Encode() []byte {
	v := append(binary.BigEndian.AppendUint64(nil, b.Number), 0)
	if b.Unable {
		v[8] = 1
	}
	return v
}

// ReadKey is the key of what a gateway says of its reads.
func ReadKey(id uint64) []byte { return key1(TabRead, id) }

// Reads are what a gateway beside others says of itself, so that they know what they
// may remove.
//
// Value: first, epoch, number of contents (8 bytes each), contents, inodes (8 each).
type Reads struct {
	// First is a number: what it stores of contents and blobs with smaller ones, and
	// nothing names yet, it will not name.
	First uint64
	// Epoch is one that it had read (CounterEpoch) before all its reads that are
	// under way began, but for those of Contents, and before all that it has open or
	// holds became so, but for Inodes.
	Epoch    uint64
	Contents []ContentID
	Inodes   []Ino
}

// Encode returns the value.
func (r *Reads) Encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, readsBytes+8*(len(r.Contents)+len(r.Inodes))), r.First)
	b = binary.BigEndian.AppendUint64(b, r.Epoch)
	b = binary.BigEndian.AppendUint64(b, uint64(len(r.Contents)))
	for _, c := range r.Contents {
		b = binary.BigEndian.AppendUint64(b, uint64(c))
	}
	for _, ino := range r.Inodes {
		b = binary.BigEndian.AppendUint64(b, uint64(ino))
	}
	return b
}

// readsBytes is the length of a record that names nothing.
const readsBytes = 24

// DecodeReads is the inverse of Encode.
func DecodeReads(b []byte) (r Reads, err error) {
	if len(b) < readsBytes || len(b)%8 != 0 {
		return r, fmt.Errorf("%w: record of a gateway's reads", fserr.ErrCorrupt)
	}
	r.First, r.Epoch = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	contents := binary.BigEndian.Uint64(b[16:])
	if b = b[readsBytes:]; contents > uint64(len(b)/8) {
		return r, fmt.Errorf("%w: record of a gateway's reads", fserr.ErrCorrupt)
	}
	for ; len(b) > 0; b = b[8:] {
		if n := binary.BigEndian.Uint64(b); uint64(len(r.Contents)) < contents {
			r.Contents = append(r.Contents, ContentID(n))
		} else {
			r.Inodes = append(r.Inodes, Ino(n))
		}
	}
	return r, nil
}

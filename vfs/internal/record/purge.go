package record

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"ogw/vfs/internal/fserr"
)

// PurgeRequest asks the gateways that use a store beside one another to drop a path from
// what they remember.
type PurgeRequest struct {
	Number uint64 `json:"-"`    // in the key, from CounterPurge
	By     uint64 `json:"by"`   // the gateway that asks, and removes it
	Path   string `json:"path"` // as stored; with a final slash, all below it
}

// PurgeAnswer is what one gateway says to that.
type PurgeAnswer struct {
	Inodes int    `json:"inodes"`
	Error  string `json:"error,omitempty"`
}

// PurgeKey is the key of a request, PurgeAnswerKey that of a gateway's answer.
func PurgeKey(number uint64) []byte                { return key1(TabPurge, number) }
func PurgeAnswerKey(number, gateway uint64) []byte { return key2(TabPurge, number, gateway) }

// Encode returns the value.
func (q *PurgeRequest) Encode() ([]byte, error) { return json.Marshal(q) }

// Encode returns the value.
func (a *PurgeAnswer) Encode() ([]byte, error) { return json.Marshal(a) }

// DecodePurgeRequest returns false for what is an answer.
func DecodePurgeRequest(k, v []byte) (q PurgeRequest, ok bool, err error) {
	if len(k) != Key1Bytes {
		return q, false, nil
	}
	if json.Unmarshal(v, &q) != nil {
		return q, false, fmt.Errorf("%w: request of a purge", fserr.ErrCorrupt)
	}
	q.Number = binary.BigEndian.Uint64(k[1:])
	return q, true, nil
}

// DecodePurgeAnswer is the inverse of Encode.
func DecodePurgeAnswer(v []byte) (a PurgeAnswer, err error) {
	if json.Unmarshal(v, &a) != nil {
		err = fmt.Errorf("%w: answer to a purge", fserr.ErrCorrupt)
	}
	return a, err
}

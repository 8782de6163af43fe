package rpc

import (
	"encoding/binary"

	"ogw/nfsserver/xdr"
	"ogw/vfs/clients/pipe"
)

// Fields of messages (RFC 5531 section 9).
const (
	msgCall     = 0
	msgReply    = 1
	msgAccepted = 0
	msgDenied   = 1

	rejectRPCMismatch = 0
	rejectAuthError   = 1
)

// headerBytes is what stands before the results: record mark, transaction
// ID, REPLY, MSG_ACCEPTED, an empty verifier, accept_stat.
const headerBytes = 7 * 4

// Reply is the answer being built. Handlers append results to the Writer.
type Reply struct {
	xdr.Writer
	// Status is what the program's own result code was, for statistics.
	Status uint32

	head    *Buffer
	payload *Buffer // sent behind the Writer's bytes, padded
	// pages are sent in the place of payload, and are of pool.
	pages *pipe.Pipe
	pool  *pipe.Pool
}

func (r *Reply) reset() {
	r.head = GetBuffer(headerBytes)
	r.B = r.head.B
	r.Status = 0
	r.payload = nil
}

// Reset drops the results written so far.
func (r *Reply) Reset() {
	r.Truncate(headerBytes)
	r.drop()
}

// drop gives back what is to be sent behind the Writer's bytes.
func (r *Reply) drop() {
	r.payload.Free()
	r.pool.Put(r.pages)
	r.payload, r.pages = nil, nil
}

// Results returns the results written so far, without the payload.
func (r *Reply) Results() []byte { return r.B[headerBytes:] }

// Payload makes b.B the last results, as they are and padded; the Reply
// frees b after it was sent. Nothing may be appended afterwards.
func (r *Reply) Payload(b *Buffer) { r.payload = b }

// trailing returns how many bytes are sent behind the Writer's, without padding.
func (r *Reply) trailing() int {
	switch {
	case r.payload != nil:
		return len(r.payload.B)
	case r.pages != nil:
		return r.pages.Len()
	}
	return 0
}

func (r *Reply) size() int {
	n := r.trailing()
	return len(r.B) + n + xdr.Pad(n)
}

// finish writes the header.
func (r *Reply) finish(xid uint32, accept uint32) {
	b := r.B[:headerBytes]
	binary.BigEndian.PutUint32(b, lastFragment|uint32(r.size()-4))
	binary.BigEndian.PutUint32(b[4:], xid)
	binary.BigEndian.PutUint32(b[8:], msgReply)
	binary.BigEndian.PutUint32(b[12:], msgAccepted)
	binary.BigEndian.PutUint64(b[16:], 0)
	binary.BigEndian.PutUint32(b[24:], accept)
}

func (r *Reply) free() {
	r.head.Free()
	r.drop()
	r.head, r.B = nil, nil
}

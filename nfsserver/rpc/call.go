package rpc

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"ogw/nfsserver/xdr"
	"ogw/vfs/clients/pipe"
	"ogw/vfs/clients/share"
)

// Version of the RPC protocol.
const Version = 2

// Accept states of a reply (accept_stat, RFC 5531 section 9).
const (
	Success      = 0
	ProgUnavail  = 1
	ProgMismatch = 2
	ProcUnavail  = 3
	GarbageArgs  = 4
	SystemErr    = 5
)

var (
	// ErrGarbageArgs, returned by a handler, answers GARBAGE_ARGS.
	ErrGarbageArgs = errors.New("rpc: arguments cannot be decoded")
	// ErrDrop, returned by a handler, sends no reply: the client asks again.
	ErrDrop = errors.New("rpc: call dropped")
)

// Call is one request. It and what it points to are valid until the handler
// returns.
type Call struct {
	XID    uint32
	Prog   uint32
	Vers   uint32
	Proc   uint32
	Cred   Cred
	Remote netip.AddrPort
	Local  netip.AddrPort // where the call came in
	Args   xdr.Reader     // over the arguments

	args  []byte // all of them, however far Args has read
	conn  transport
	proc  *Proc
	rec   *Buffer
	cost  int           // request bytes reserved
	extra int           // reply bytes reserved
	slot  *share.Holder // of a datagram
	start time.Time
	reply Reply
}

// transport takes the replies of calls that came by it. finish sends a reply
// (none if r is nil) and gives back all that the call held.
type transport interface {
	finish(c *Call, r *Reply)
	// pipes are what its replies may be sent through as pages; nil: none can.
	pipes() *pipe.Pool
}

// Conn returns an identity of the connection that the call came on.
func (c *Call) Conn() any { return c.conn }

// Datagram reports whether the call came in a datagram.
func (c *Call) Datagram() bool { _, ok := c.conn.(*packets); return ok }

// Start returns when the call arrived.
func (c *Call) Start() time.Time { return c.start }

// ArgBytes returns the arguments of the call as they came.
func (c *Call) ArgBytes() []byte { return c.args }

// Identity is a digest of what makes two calls the same request: the client's
// address, its transaction number, procedure, user and arguments. It is the
// same in every process.
func (c *Call) Identity() [16]byte {
	b := GetBuffer(0)
	defer b.Free()
	for _, v := range [...]uint32{c.XID, c.Prog, c.Vers, c.Proc, c.Cred.Flavor, c.Cred.UID, c.Cred.GID} {
		b.B = binary.BigEndian.AppendUint32(b.B, v)
	}
	addr := c.Remote.Addr().As16()
	b.B = append(b.B, addr[:]...)
	b.B = binary.BigEndian.AppendUint32(b.B, uint32(len(c.Cred.Machine)))
	b.B = append(b.B, c.Cred.Machine...)
	b.B = append(b.B, c.args...)
	sum := sha256.Sum256(b.B)
	return [16]byte(sum[:])
}

// parse decodes the header of a record up to the arguments. A denied call
// returns its reply instead; an undecodable one an error.
func (c *Call) parse(rec []byte) (denied []byte, err error) {
	r := xdr.NewReader(rec)
	c.XID = r.Uint32()
	if r.Uint32() != msgCall {
		r.Fail(xdr.ErrBadValue)
	}
	vers := r.Uint32()
	if r.Err() != nil {
		return nil, r.Err()
	}
	if vers != Version {
		return deniedReply(c.XID, rejectRPCMismatch, Version, Version), nil
	}
	c.Prog, c.Vers, c.Proc = r.Uint32(), r.Uint32(), r.Uint32()
	stat := c.Cred.parse(&r)
	if r.Err() != nil {
		return nil, r.Err()
	}
	if stat != 0 {
		return deniedReply(c.XID, rejectAuthError, stat), nil
	}
	c.Args, c.args = r, r.Rest()
	return nil, nil
}

func deniedReply(xid uint32, words ...uint32) []byte {
	var w xdr.Writer
	w.Uint32(lastFragment | uint32(12+4*len(words)))
	w.Uint32(xid)
	w.Uint32(msgReply)
	w.Uint32(msgDenied)
	for _, v := range words {
		w.Uint32(v)
	}
	return w.B
}

// Pages is Reply.Payload for what put puts into a pipe, whose end for writing it is given:
// at the most pipe.Bytes. It returns how many bytes these are; 0 if the connection takes no
// pages, there is no pipe, or put fails, and Payload is to be called instead.
func (c *Call) Pages(put func(w int) (int64, error)) int {
	pool := c.conn.pipes()
	p := pool.Get()
	if p == nil {
		return 0
	}
	n, err := p.Fill(put)
	if err != nil || n == 0 {
		pool.Put(p)
		return 0
	}
	c.reply.pages, c.reply.pool = p, pool
	return n
}

// Proc is one procedure of a program.
type Proc struct {
	Name   string
	Handle func(ctx context.Context, c *Call, r *Reply) error
	// Cached answers duplicates from the cache: set it for what must not be
	// done twice.
	Cached bool
	// ReplyBytes returns how many bytes the reply will hold in memory at the
	// most, when that is more than a few kilobytes. It sees a copy of the
	// arguments' reader.
	ReplyBytes func(args xdr.Reader) int
	// Inline runs the call on the connection's reader: only for what never
	// blocks.
	Inline bool
	// Quick, if set, is tried on the connection's reader first, for calls that
	// come in small records. It never blocks, and answers only what it can
	// answer at once and with success; it returns false, whatever it wrote,
	// to have Handle run. It gets a copy of the arguments' reader, and must
	// keep nothing of the call.
	Quick func(c *Call, args xdr.Reader, r *Reply) bool
}

// Program is one RPC program in a contiguous range of versions that share
// their procedures.
type Program struct {
	Number uint32
	Low    uint32 // lowest version served
	High   uint32 // highest version served
	Procs  []Proc // by number; without Handle: PROC_UNAVAIL
	// Datagrams reports whether the program is served by ServePacket, too.
	Datagrams bool
	// Trusts, if set, reports whether calls from there are taken, other than of
	// procedure 0, which does nothing by convention; others are denied
	// (AUTH_TOOWEAK). Procedures of such programs are not Quick.
	Trusts func(client netip.AddrPort) bool
}

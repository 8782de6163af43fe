// Package nfsclient speaks ONC RPC and NFS version 3 by hand, for tests that
// do what no kernel does: it sends any record and any handle, and believes
// nothing.
package nfsclient

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"ogw/integration/testenv/resvport"
	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
)

const (
	lastFragment = 1 << 31
	// maxReply is above every reply: a transfer of 1 MiB with its header.
	maxReply = 2 << 20
	// callTimeout bounds a call of who does not look at the time.
	callTimeout = 60 * time.Second
)

// Cred is who a call claims to be from (AUTH_SYS).
type Cred struct {
	Machine  string
	UID, GID uint32
	Groups   []uint32
}

// Record is one call as it goes over a stream, in one fragment.
func Record(xid, prog, vers, proc uint32, who *Cred, args []byte) []byte {
	var cred xdr.Writer
	cred.Uint32(0)
	cred.String(who.Machine)
	cred.Uint32(who.UID)
	cred.Uint32(who.GID)
	cred.Uint32(uint32(len(who.Groups)))
	for _, g := range who.Groups {
		cred.Uint32(g)
	}
	var w xdr.Writer
	w.Uint32(0)
	for _, v := range []uint32{xid, 0, rpc.Version, prog, vers, proc, rpc.AuthUnix} {
		w.Uint32(v)
	}
	w.Opaque(cred.B)
	w.Uint64(0) // verifier
	w.B = append(w.B, args...)
	w.PutUint32(0, lastFragment|uint32(w.Len()-4))
	return w.B
}

// ReadReply reads one reply in one fragment.
func ReadReply(r io.Reader) ([]byte, error) {
	var mark [4]byte
	if _, err := io.ReadFull(r, mark[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(mark[:]) &^ lastFragment
	if n > maxReply {
		return nil, fmt.Errorf("a reply of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}

// Results takes the header off a reply to call xid.
func Results(b []byte, xid uint32) (*xdr.Reader, error) {
	r := xdr.NewReader(b)
	for i, want := range []uint32{xid, 1, 0, 0, 0, rpc.Success} {
		if v := r.Uint32(); v != want || r.Err() != nil {
			return nil, fmt.Errorf("word %d of the reply is %d, not %d", i, v, want)
		}
	}
	return &r, nil
}

// Conn is a connection to a server.
type Conn struct {
	Net     net.Conn
	Cred    Cred
	Timeout time.Duration // of a call

	mu  sync.Mutex
	xid uint32
}

// Dial connects from a local address and a reserved port, if the process may.
func Dial(local, addr string) (*Conn, error) {
	c, err := resvport.Dial(local, addr)
	if err != nil {
		return nil, err
	}
	return NewConn(c), nil
}

// NewConn is a Conn over c, as the superuser.
func NewConn(c net.Conn) *Conn {
	// Transaction numbers must differ from those of connections before.
	return &Conn{Net: c, Timeout: callTimeout, Cred: Cred{Machine: "test"}, xid: uint32(time.Now().UnixNano() >> 10)}
}

// Send sends a call whose reply nobody waits for.
func (c *Conn) Send(prog, vers, proc uint32, args []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.xid++
	_, err := c.Net.Write(Record(c.xid, prog, vers, proc, &c.Cred, args))
	return err
}

// Call sends a call and returns its results.
func (c *Conn) Call(prog, vers, proc uint32, args []byte) (*xdr.Reader, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Net.SetDeadline(time.Now().Add(c.Timeout))
	c.xid++
	if _, err := c.Net.Write(Record(c.xid, prog, vers, proc, &c.Cred, args)); err != nil {
		return nil, err
	}
	b, err := ReadReply(c.Net)
	if err != nil {
		return nil, err
	}
	return Results(b, c.xid)
}

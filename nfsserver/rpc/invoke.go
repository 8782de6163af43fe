package rpc

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"ogw/nfsserver/xdr"
)

const (
	// FirstResend is when a datagram is sent again; the time doubles up to
	// maxResend. Local networks answer within milliseconds.
	FirstResend = 500 * time.Millisecond
	maxResend   = 4 * time.Second
	// maxInvokeReply bounds what a server may answer to Invoke.
	maxInvokeReply = 64 << 10
)

var (
	// ErrNoProgram: the other side serves no such program, version or
	// procedure.
	ErrNoProgram = errors.New("rpc: program, version or procedure is not served")
	// ErrRefused: the call was denied or failed on the other side.
	ErrRefused = errors.New("rpc: call refused")
)

// Dial opens a connection for Invoke. network is "tcp" or "udp"; from, if
// valid, is the source address.
func Dial(ctx context.Context, network string, from netip.Addr, to netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	if from.IsValid() && !from.IsUnspecified() {
		local := netip.AddrPortFrom(from, 0)
		if network == "udp" {
			d.LocalAddr = net.UDPAddrFromAddrPort(local)
		} else {
			d.LocalAddr = net.TCPAddrFromAddrPort(local)
		}
	}
	return d.DialContext(ctx, network, to.String())
}

// Procedure is what a call is of.
type Procedure struct{ Prog, Vers, Proc uint32 }

// Invoke makes one call on nc and returns its results. Datagrams are sent
// again until an answer comes or ctx ends; ctx must end. Errors of nc come as
// they are, those of the other side are ErrNoProgram and ErrRefused.
func Invoke(ctx context.Context, nc net.Conn, p Procedure, args []byte) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	xid, call := encodeCall(p, args)
	var reply []byte
	var err error
	if _, ok := nc.(*net.UDPConn); ok {
		reply, err = invokePacket(ctx, nc, xid, call)
	} else {
		reply, err = invokeStream(nc, xid, call)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("rpc: call of program %d at %s: %w", p.Prog, nc.RemoteAddr(), err)
	}
	return parseReply(reply)
}

// encodeCall returns a call message behind its record mark. Its credential
// is the superuser's of this machine, as servers of these programs expect.
func encodeCall(p Procedure, args []byte) (xid uint32, call []byte) {
	var id [4]byte
	rand.Read(id[:])
	xid = binary.BigEndian.Uint32(id[:])
	machine, _ := os.Hostname()
	var cred xdr.Writer
	cred.Uint32(0) // stamp
	cred.String(machine[:min(len(machine), maxMachineBytes)])
	cred.Uint32(0)
	cred.Uint32(0)
	cred.Uint32(0)
	var w xdr.Writer
	for _, v := range []uint32{0, xid, msgCall, Version, p.Prog, p.Vers, p.Proc, AuthUnix} {
		w.Uint32(v)
	}
	w.Opaque(cred.B)
	w.Uint64(0) // verifier
	w.B = append(w.B, args...)
	w.PutUint32(0, lastFragment|uint32(len(w.B)-4))
	return xid, w.B
}

func invokeStream(nc net.Conn, xid uint32, call []byte) ([]byte, error) {
	if _, err := nc.Write(call); err != nil {
		return nil, err
	}
	rr := recordReader{br: bufio.NewReader(nc), max: maxInvokeReply,
		reserve: func(int) error { return nil }, wait: func(bool, int) error { return nil }}
	for {
		rec, err := rr.next()
		if err != nil {
			return nil, err
		}
		reply := append([]byte(nil), rec.B...)
		rec.Free()
		if len(reply) >= 4 && binary.BigEndian.Uint32(reply) == xid {
			return reply, nil
		}
	}
}

func invokePacket(ctx context.Context, nc net.Conn, xid uint32, call []byte) ([]byte, error) {
	buf := make([]byte, maxInvokeReply)
	for pause := FirstResend; ; pause = min(2*pause, maxResend) {
		if _, err := nc.Write(call[4:]); err != nil {
			return nil, err
		}
		until := time.Now().Add(pause)
		for {
			_ = nc.SetReadDeadline(until)
			if ctx.Err() != nil { // its deadline was just overwritten
				return nil, ctx.Err()
			}
			n, err := nc.Read(buf)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return nil, err
			}
			if n >= 4 && binary.BigEndian.Uint32(buf) == xid {
				return buf[:n], nil
			}
		}
	}
}

// parseReply returns the results in a reply message.
func parseReply(reply []byte) ([]byte, error) {
	r := xdr.NewReader(reply)
	r.Uint32() // transaction ID, compared before
	if r.Uint32() != msgReply {
		return nil, fmt.Errorf("%w: not a reply", ErrRefused)
	}
	if stat := r.Uint32(); stat != msgAccepted {
		return nil, fmt.Errorf("%w: denied", ErrRefused)
	}
	r.Uint32()
	r.Opaque(maxAuthBytes)
	accept := r.Uint32()
	switch {
	case r.Err() != nil:
		return nil, r.Err()
	case accept == Success:
		return r.Rest(), nil
	case accept == ProgUnavail, accept == ProgMismatch, accept == ProcUnavail:
		return nil, ErrNoProgram
	}
	return nil, fmt.Errorf("%w: accept state %d", ErrRefused, accept)
}

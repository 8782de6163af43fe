package portmap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
)

// ErrNotRegistered means that the portmapper knows no such program.
var ErrNotRegistered = errors.New("portmap: program is not registered")

// Question is where a program listens.
type Question struct {
	Prog, Vers uint32
	Network    string         // "udp" or "tcp": where it listens
	By         string         // what the question travels by, if not by Network
	From       netip.Addr     // the source address of the question, if valid
	Host       netip.AddrPort // of the portmapper
}

// Lookup asks a portmapper. ctx must end.
func Lookup(ctx context.Context, q Question) (netip.AddrPort, error) {
	host := q.Host
	nc, err := rpc.Dial(ctx, cmp.Or(q.By, q.Network), q.From, host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	defer nc.Close()
	invoke := func(v uint32, args *xdr.Writer) (xdr.Reader, error) {
		b, err := rpc.Invoke(ctx, nc, rpc.Procedure{Prog: ProgramNumber, Vers: v, Proc: procGetPort}, args.B)
		return xdr.NewReader(b), err
	}
	if host.Addr().Unmap().Is4() {
		r, err := invoke(version2, encodePMAP(q.Prog, q.Vers, q.Network))
		if err != nil {
			return netip.AddrPort{}, err
		}
		return found(netip.AddrPortFrom(host.Addr(), uint16(r.Uint32())), r.Err())
	}
	args := encodeRPCB(Service{q.Prog, q.Vers, q.Network, host}, "", "")
	r, err := invoke(version4, args)
	if errors.Is(err, rpc.ErrNoProgram) {
		r, err = invoke(version3, args)
	}
	if err != nil {
		return netip.AddrPort{}, err
	}
	text := r.String(maxString)
	if r.Err() != nil || text == "" {
		return netip.AddrPort{}, errors.Join(ErrNotRegistered, r.Err())
	}
	a, err := ParseAddr(text)
	// The program is asked where its portmapper is, whatever that says.
	return found(netip.AddrPortFrom(host.Addr(), a.Port()), err)
}

func found(a netip.AddrPort, err error) (netip.AddrPort, error) {
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("portmap: %w", err)
	}
	if a.Port() == 0 {
		return netip.AddrPort{}, ErrNotRegistered
	}
	return a, nil
}

// encodePMAP encodes a mapping of version 2 without its port.
func encodePMAP(prog, vers uint32, network string) *xdr.Writer {
	w := &xdr.Writer{}
	w.Uint32(prog)
	w.Uint32(vers)
	w.Uint32(protoOf(network))
	w.Uint32(0)
	return w
}

func protoOf(network string) uint32 {
	if network == "udp" {
		return protoUDP
	}
	return protoTCP
}

// encodeRPCB encodes a struct rpcb (RFC 1833 section 2.1).
func encodeRPCB(s Service, addr, owner string) *xdr.Writer {
	w := &xdr.Writer{}
	w.Uint32(s.Prog)
	w.Uint32(s.Vers)
	w.String(netID(s.Network, s.Addr.Addr()))
	w.String(addr)
	w.String(owner)
	return w
}

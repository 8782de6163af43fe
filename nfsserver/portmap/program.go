package portmap

import (
	"context"
	"net/netip"
	"time"

	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
)

// Program returns a portmapper that knows services, and itself, for a server
// on port 111. It can be asked and cannot be told anything.
func Program(services []Service) rpc.Program {
	d := &directory{list: expandAll(services)}
	for _, network := range []string{"tcp", "udp"} {
		for v := uint32(version2); v <= version4; v++ {
			self := Service{ProgramNumber, v, network, netip.AddrPortFrom(netip.IPv6Unspecified(), Port)}
			d.list = append(d.list, self.expand()...)
		}
	}
	procs := make([]rpc.Proc, maxProc)
	for n, p := range map[int]rpc.Proc{
		procNull:    {Name: "NULL", Handle: func(context.Context, *rpc.Call, *rpc.Reply) error { return nil }},
		procSet:     {Name: "SET", Handle: refuse},
		procUnset:   {Name: "UNSET", Handle: refuse},
		procGetPort: {Name: "GETPORT", Handle: d.get},
		procDump:    {Name: "DUMP", Handle: d.dump},
		procGetTime: {Name: "GETTIME", Handle: getTime},
	} {
		p.Inline = true
		procs[n] = p
	}
	return rpc.Program{Number: ProgramNumber, Low: version2, High: version4, Procs: procs, Datagrams: true}
}

// directory answers from a fixed list.
type directory struct{ list []Service }

func refuse(_ context.Context, _ *rpc.Call, r *rpc.Reply) error {
	r.Bool(false)
	return nil
}

func getTime(_ context.Context, c *rpc.Call, r *rpc.Reply) error {
	if c.Vers == version2 { // number 6 is of rpcbind only
		return rpc.ErrGarbageArgs
	}
	r.Uint32(uint32(time.Now().Unix()))
	return nil
}

// get is PMAPPROC_GETPORT and RPCBPROC_GETADDR.
func (d *directory) get(_ context.Context, c *rpc.Call, r *rpc.Reply) error {
	a := &c.Args
	prog, vers := a.Uint32(), a.Uint32()
	network := "tcp"
	if c.Datagram() {
		network = "udp"
	}
	id := netID(network, c.Local.Addr()) // GETADDR is about the transport of the call
	if c.Vers == version2 {
		proto := a.Uint32()
		a.Uint32()
		id = map[uint32]string{protoTCP: "tcp", protoUDP: "udp"}[proto]
	} else if given := a.String(maxString); given != "" {
		id = given
		a.String(maxString)
		a.String(maxString)
	}
	if a.Err() != nil {
		return rpc.ErrGarbageArgs
	}
	s := d.find(prog, vers, id)
	switch {
	case c.Vers == version2 && s == nil:
		r.Uint32(0)
	case c.Vers == version2:
		r.Uint32(uint32(s.Addr.Port()))
	case s == nil:
		r.String("")
	default:
		r.String(FormatAddr(reachable(s.Addr, c.Local.Addr())))
	}
	return nil
}

// find returns a service; another version of the program if the wanted one
// is not there, as portmappers do: the program itself then says which it has.
func (d *directory) find(prog, vers uint32, id string) (found *Service) {
	for i := range d.list {
		s := &d.list[i]
		if s.Prog != prog || netID(s.Network, s.Addr.Addr()) != id {
			continue
		}
		if s.Vers == vers {
			return s
		}
		found = s
	}
	return found
}

// reachable puts the address that the client asked into one that means all.
func reachable(a netip.AddrPort, local netip.Addr) netip.AddrPort {
	if a.Addr().IsUnspecified() && local.IsValid() {
		return netip.AddrPortFrom(local, a.Port())
	}
	return a
}

// dump is PMAPPROC_DUMP and RPCBPROC_DUMP.
func (d *directory) dump(_ context.Context, c *rpc.Call, r *rpc.Reply) error {
	for _, s := range d.list {
		if c.Vers != version2 {
			r.Uint32(1)
			r.B = append(r.B, encodeRPCB(s, FormatAddr(s.Addr), "ogw").B...)
		} else if s.Addr.Addr().Is4() {
			r.Uint32(1)
			var w xdr.Writer
			w.Uint32(s.Prog)
			w.Uint32(s.Vers)
			w.Uint32(protoOf(s.Network))
			w.Uint32(uint32(s.Addr.Port()))
			r.B = append(r.B, w.B...)
		}
	}
	r.Uint32(0)
	return nil
}

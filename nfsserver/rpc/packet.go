package rpc

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"ogw/vfs/clients/pipe"
	"ogw/vfs/clients/share"
	"ogw/vfs/clients/subscriber"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

const (
	// maxDatagramCalls are in flight on one socket, and half of them of one
	// address. What comes beyond them is dropped: the client sends it again,
	// later.
	maxDatagramCalls = 256
	// maxDatagram bounds calls and replies over datagrams: the programs that
	// are served so have messages of some hundred bytes.
	maxDatagram = 8 << 10
)

// packets is one datagram socket.
type packets struct {
	srv      *Server
	pc       *net.UDPConn
	bound    netip.Addr // unspecified: the datagrams show it
	v4       *ipv4.PacketConn
	v6       *ipv6.PacketConn
	slots    *share.Pool // calls in flight
	inFlight sync.WaitGroup
}

// ServePacket answers the calls that come in datagrams, for the programs
// that allow it, until Shutdown, and then returns nil. Replies leave from the
// address that the call was sent to.
func (s *Server) ServePacket(pc *net.UDPConn) error {
	p := &packets{srv: s, pc: pc, slots: share.NewPool(maxDatagramCalls, floorCalls)}
	if err := p.setup(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		_ = pc.Close()
		return nil
	}
	s.packets[p] = struct{}{}
	s.wait.Add(1)
	s.mu.Unlock()
	defer func() {
		p.inFlight.Wait()
		_ = pc.Close()
		s.mu.Lock()
		delete(s.packets, p)
		s.mu.Unlock()
		s.wait.Done()
	}()
	return p.serve()
}

// setup asks for the local address of each datagram if the socket is bound
// to all of them.
func (p *packets) setup() error {
	p.bound = addrPort(p.pc.LocalAddr()).Addr()
	if p.bound.Is4() {
		p.v4 = ipv4.NewPacketConn(p.pc)
	} else {
		p.v6 = ipv6.NewPacketConn(p.pc)
	}
	switch {
	case !p.bound.IsUnspecified():
		return nil
	case p.v4 != nil:
		return p.v4.SetControlMessage(ipv4.FlagDst, true)
	default:
		return p.v6.SetControlMessage(ipv6.FlagDst, true)
	}
}

func (p *packets) stopReading() { _ = p.pc.SetReadDeadline(time.Unix(1, 0)) }

func (p *packets) serve() error {
	for {
		buf := GetBuffer(maxDatagram)
		n, from, to, err := p.read(buf.B)
		if err != nil {
			buf.Free()
			if p.srv.ctx.Err() != nil || p.srv.isClosing() {
				return nil //nolint:nilerr // told to stop
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			p.srv.log.Warn("rpc: receiving a datagram failed", "err", err)
			time.Sleep(acceptPause)
			continue
		}
		buf.B = buf.B[:n]
		p.accept(buf, from, to)
	}
}

// read returns a datagram with where it came from and was sent to.
func (p *packets) read(b []byte) (n int, from, to netip.AddrPort, err error) {
	var dst net.IP
	var src net.Addr
	if p.v4 != nil {
		var cm *ipv4.ControlMessage
		if n, cm, src, err = p.v4.ReadFrom(b); cm != nil {
			dst = cm.Dst
		}
	} else {
		var cm *ipv6.ControlMessage
		if n, cm, src, err = p.v6.ReadFrom(b); cm != nil {
			dst = cm.Dst
		}
	}
	if err != nil {
		return 0, from, to, err
	}
	local := addrPort(p.pc.LocalAddr())
	if a, ok := netip.AddrFromSlice(dst); ok && p.bound.IsUnspecified() {
		local = netip.AddrPortFrom(a.Unmap(), local.Port())
	}
	return n, addrPort(src), local, nil
}

func (p *packets) write(b []byte, from, to netip.AddrPort) error {
	var source []byte // as a control message
	switch src := from.Addr(); {
	case src.IsUnspecified() || src == p.bound:
	case src.Is4(): // on sockets of both families
		source = (&ipv4.ControlMessage{Src: src.AsSlice()}).Marshal()
	default:
		source = (&ipv6.ControlMessage{Src: src.AsSlice()}).Marshal()
	}
	_, _, err := p.pc.WriteMsgUDPAddrPort(b, source, to)
	return err
}

// accept starts the call in a datagram. It owns rec.
func (p *packets) accept(rec *Buffer, from, to netip.AddrPort) {
	s := p.srv
	if s.cfg.Allow != nil && !s.cfg.Allow(from.Addr()) {
		rec.Free()
		return
	}
	slot := p.slots.Join(subscriber.Of(from.Addr()))
	if !slot.TryAcquire(1) {
		slot.Leave()
		rec.Free()
		return
	}
	call := callPool.Get().(*Call)
	*call = Call{conn: p, rec: rec, slot: slot, Remote: from, Local: to, start: time.Now()}
	p.inFlight.Add(1)
	denied, err := call.parse(rec.B)
	switch {
	case err != nil:
		p.finish(call, nil) // no call at all
	case denied != nil:
		call.reply.B = denied
		p.finish(call, &call.reply)
	case s.resolve(call):
		s.start(call)
	}
}

// pipes implements transport: datagrams take no pages.
func (p *packets) pipes() *pipe.Pool { return nil }

// finish implements transport.
func (p *packets) finish(call *Call, r *Reply) {
	if r != nil {
		if n := r.size() - 4; r.trailing() > 0 || n > maxDatagram {
			p.srv.log.Warn("rpc: reply does not fit a datagram", "client", call.Remote, "bytes", n)
		} else if err := p.write(r.B[4:], call.Local, call.Remote); err != nil { // without record mark
			p.srv.log.Debug("rpc: reply not sent", "client", call.Remote, "err", err)
		}
	}
	call.reply.free()
	call.rec.Free()
	call.slot.Release(1)
	call.slot.Leave()
	callPool.Put(call)
	p.inFlight.Done()
}

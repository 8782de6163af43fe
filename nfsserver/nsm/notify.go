package nsm

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"ogw/nfsserver/portmap"
	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
)

const (
	// notifyWorkers notify peers at the same time: many may be gone, and each
	// of those costs a timeout.
	notifyWorkers = 32
	// notifyTimeout bounds one attempt.
	notifyTimeout = 4 * time.Second
	// notifyPause is between attempts for one peer.
	notifyPause = 2 * time.Second
	// notifyWindow is how long a peer is tried, as in Linux's sm-notify: one
	// that boots itself meanwhile still learns that its locks are gone.
	notifyWindow = 15 * time.Minute
)

// Notify notifies the peers of the process before that this one has started. It
// returns when all know, at the end of notifyWindow, or when ctx ends.
func (m *Monitor) Notify(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, notifyWindow)
	defer cancel()
	todo := m.Left()
	for round := 0; len(todo) > 0; round++ {
		todo = m.notifyAll(ctx, todo, round)
		select {
		case <-ctx.Done():
			for _, p := range todo {
				m.log.Warn("nsm: client was not told of the restart", "client", p.Addr, "name", p.Name)
			}
			return
		case <-time.After(notifyPause):
		}
	}
}

// notifyAll makes one attempt for each peer and returns those that it failed
// for.
func (m *Monitor) notifyAll(ctx context.Context, list []Peer, round int) (failed []Peer) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, notifyWorkers)
	for _, p := range list {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			err := m.notify(ctx, p)
			switch {
			case err == nil:
				m.log.Info("nsm: client was told of the restart", "client", p.Addr, "name", p.Name, "state", m.state)
				return
			case round == 0:
				m.log.Debug("nsm: client cannot be told of the restart yet", "client", p.Addr, "name", p.Name, "err", err)
			}
			mu.Lock()
			failed = append(failed, p)
			mu.Unlock()
		})
	}
	wait.Wait()
	return failed
}

// notify makes one attempt, over UDP as every status monitor has it, then
// over TCP. The peer may know this server by any of its names, or by its
// address.
func (m *Monitor) notify(ctx context.Context, p Peer) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	names := m.names
	if p.Local.IsValid() {
		names = append([]string{p.Local.String()}, names...)
	}
	half, cancelHalf := context.WithTimeout(ctx, notifyTimeout/2)
	defer cancelHalf()
	err := m.send(half, "udp", p, names)
	if err != nil {
		if e := m.send(ctx, "tcp", p, names); e != nil {
			return errors.Join(err, e)
		}
	}
	return nil
}

func (m *Monitor) send(ctx context.Context, network string, p Peer, names []string) error {
	mapper := netip.AddrPortFrom(p.Addr, m.cfg.PortmapPort)
	to, err := portmap.Lookup(ctx, portmap.Question{Prog: ProgramNumber, Vers: Version, Network: network, From: p.Local, Host: mapper})
	if err != nil {
		return err
	}
	nc, err := rpc.Dial(ctx, network, p.Local, to)
	if err != nil {
		return err
	}
	defer nc.Close()
	for _, name := range names {
		var w xdr.Writer
		w.String(name)
		w.Uint32(m.state)
		if _, err := rpc.Invoke(ctx, nc, rpc.Procedure{Prog: ProgramNumber, Vers: Version, Proc: procNotify}, w.B); err != nil {
			return err
		}
	}
	return nil
}

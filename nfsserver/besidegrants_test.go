package nfsserver

import (
	"testing"
	"time"
)

// The callback at a does not get through; the client asks b, gives up there, another takes it;
// the address comes back to a within the retries.
func TestBesideGrantIsOld(t *testing.T) {
	g, a, b := untaken(t)
	x, y := g.x, g.y
	x.at(b)
	x.want("asked at b", isGranted, ask{proc: nlmLock, svid: 2, block: true})
	x.want("given up at b", isGranted, ask{proc: nlmUnlock, svid: 2})
	y.want("y has it", isGranted, ask{proc: nlmLock, svid: 1})
	x.at(a)
	x.want("x again at a", isBlocked, ask{proc: nlmLock, svid: 2, block: true})
}

// The same, freed by the operator at b, and the callback is tried on.
func TestBesideGrantIsFreed(t *testing.T) {
	g, _, b := untaken(t)
	x, y := g.x, g.y
	b.freed(x.addr.String())
	y.want("y has it", isGranted, ask{proc: nlmLock, svid: 1})
	for len(x.grants) > 0 {
		<-x.grants
	}
	x.mu.Lock()
	x.answer = isGranted
	x.mu.Unlock()
	select {
	case <-x.grants:
		t.Error("x is told that it has what y holds")
	case <-time.After(4 * nextTry):
	}
}

// nextTry is about when the second callback would come.
const nextTry = 500 * time.Millisecond

// untaken has client x be granted at a what it waited for, and not learn it; y uses b.
func untaken(t *testing.T) (g *group, a, b *site) {
	g = newGroup(t)
	a, _ = g.open()
	b, _ = g.open()
	x, y := g.x, g.y
	x.at(a)
	y.at(b)
	y.want("first", isGranted, ask{proc: nlmLock, svid: 1})
	x.want("waits", isBlocked, ask{proc: nlmLock, svid: 2, block: true})
	x.mu.Lock()
	x.answer = isGrace // stands for one that does not get through
	x.mu.Unlock()
	y.want("given up", isGranted, ask{proc: nlmUnlock, svid: 1})
	x.wantGrant("first try", 2)
	return g, a, b
}

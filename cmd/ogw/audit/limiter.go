package audit

import (
	"net/netip"
	"strings"
	"time"
)

const (
	// window is the time for which refusals are counted together.
	window = time.Minute
	// clientLines are written of one client in a window: enough to see what
	// it tries, and a mistyped password is not left out.
	clientLines = 20
	// allLines are written of all clients in a window. Ten clients with all
	// of theirs; at 350 bytes a line that is 100 MiB a day, of which the
	// default of files holds a week.
	allLines = 200
	// ipv6Client is what one client has of IPv6: less than a /64 is nobody's.
	ipv6Client = 64
)

// limiter bounds the lines of what clients are refused. It holds at most
// allLines clients: one is remembered only with a line of its own.
type limiter struct {
	start   time.Time // of the window
	lines   int       // written in it
	clients map[string]*refusals
	others  uint64 // left out, of clients without a line
}

// refusals of one client in the window.
type refusals struct {
	lines int
	out   uint64 // left out
}

// admit reports whether a line about a client may be written now.
func (l *limiter) admit(from string) bool {
	if l.clients == nil {
		l.clients = map[string]*refusals{}
	}
	key := client(from)
	c := l.clients[key]
	switch {
	case l.lines >= allLines && c == nil:
		l.others++
		return false
	case c == nil:
		c = &refusals{}
		l.clients[key] = c
	}
	if c.lines >= clientLines || l.lines >= allLines {
		c.out++
		return false
	}
	c.lines++
	l.lines++
	return true
}

// turn begins a new window if it is time, or at once, and returns lines that
// report what was left out in the old one. There are at most allLines and one.
func (l *limiter) turn(now time.Time, atOnce bool) []Event {
	if !atOnce && now.Sub(l.start) < window && now.After(l.start) {
		return nil
	}
	var out []Event
	for from, c := range l.clients {
		if c.out > 0 {
			out = append(out, summary(now, from, c.out))
		}
	}
	if l.others > 0 {
		out = append(out, summary(now, "others", l.others))
	}
	*l = limiter{start: now}
	return out
}

func summary(now time.Time, from string, n uint64) Event {
	return Event{Time: now, Class: Access, Door: "process", Operation: "Suppressed", UID: NoUID, From: from, Result: Refused, Count: n}
}

// client is what counts as one client: an address without its port, of IPv6
// the network; of a local user, the user.
func client(from string) string {
	addr, err := netip.ParseAddr(from)
	if err != nil {
		port, err := netip.ParseAddrPort(from)
		if err != nil {
			user, _, _ := strings.Cut(from, ",") // unix:uid=1000,pid=4711
			return text(user, maxField)
		}
		addr = port.Addr()
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if net, err := addr.Prefix(ipv6Client); err == nil {
			return net.String()
		}
	}
	return addr.String()
}

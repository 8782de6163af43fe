package testenv

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

const (
	// Ports are taken from below those that Linux gives to clients
	// (ip_local_port_range), so that no connection of another test takes one
	// between its choice and the start of the server.
	portFirst, portEnd = 20_000, 32_000
	portAttempts       = 100
	// startLimit is how long a server may take until it accepts connections:
	// other work may keep the machine.
	startLimit = 30 * time.Second
	awaitPause = 5 * time.Millisecond
)

// given are the ports that FreePort returned: nobody may listen at them yet,
// but a server with several addresses must not get one twice.
var given sync.Map

// FreePort returns a TCP port of 127.0.0.1 that nobody listens at, another one
// each time.
func FreePort(t testing.TB) int {
	t.Helper()
	for range portAttempts {
		port := portFirst + rand.IntN(portEnd-portFirst)
		if _, twice := given.LoadOrStore(port, true); twice {
			continue
		}
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port found")
	return 0
}

// FreeAddr is FreePort as an address.
func FreeAddr(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", FreePort(t))
}

// Await waits until every address accepts connections. It returns an error
// when the server has ended, which ended reports (nil: nobody does), or
// when it takes too long.
func Await(ended <-chan error, addrs ...string) error {
	end := time.Now().Add(startLimit)
	for _, addr := range addrs {
		for {
			c, err := net.DialTimeout("tcp", addr, time.Second)
			if err == nil {
				c.Close()
				break
			}
			select {
			case err := <-ended:
				return fmt.Errorf("it ended at start: %w", err)
			case <-time.After(awaitPause):
			}
			if time.Now().After(end) {
				return fmt.Errorf("it does not listen at %s after %v", addr, startLimit)
			}
		}
	}
	return nil
}

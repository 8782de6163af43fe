package resvport

import (
	"net"
	"os"
	"testing"
)

// TestAfterOthers makes more connections to one server than there are ports and then one to
// another: those that ended a moment ago keep their ports from their own server alone.
func TestAfterOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("reserved ports are for root")
	}
	one, other := serve(t), serve(t)
	for range end - first {
		c, err := Dial("", one)
		if err != nil {
			break
		}
		c.Close()
	}
	c, err := Dial("", other)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// serve accepts connections until their clients end them.
func serve(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				c.Read(make([]byte, 1))
				c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

package iam

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// slowForm begins a form that nobody signed, from an address, and sends no byte of it.
func (d *door) slowForm(from string) net.Conn {
	d.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := dialer.DialContext(d.t.Context(), "tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { c.Close() })
	if _, err := fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\n"); err != nil {
		d.t.Fatal(err)
	}
	return c
}

// TestSlowStrangers: forms that nobody signed, and that do not come, hold up no signed
// request, however many addresses they are from.
func TestSlowStrangers(t *testing.T) {
	d := newDoor(t)
	for i := range maxBodies {
		d.slowForm(fmt.Sprintf("127.0.1.%d", i+1))
	}
	for end := time.Now().Add(30 * time.Second); d.server.strangers.InUse() < maxStrangers; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d forms are read", d.server.strangers.InUse())
		}
	}
	d.ok("ListUsers", "UserName")
}

// TestSlowStrangerIsEnded: who signs nothing has little time for a body.
func TestSlowStrangerIsEnded(t *testing.T) {
	d := newDoor(t)
	d.server.strangerTime = 50 * time.Millisecond
	c := d.slowForm("127.0.0.1")
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil { // before StallTime
		t.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if a.StatusCode != http.StatusRequestTimeout {
		t.Error(a.Status)
	}
	// The next one is another request's.
	for end := time.Now().Add(20 * time.Second); d.server.strangers.InUse() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("its place is not free")
		}
	}
}

package iam

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"ogw/vfs/clients/guess"
)

// slowBytes is the length of a form that does not come.
const slowBytes = 100

// slowForm begins a form that nobody signed, from an address, and sends no byte of it.
func (d *door) slowForm(from string) net.Conn {
	d.t.Helper()
	return d.beginBody(from, slowBytes, "")
}

// forgedForm is slowForm with a signature that somebody made up for an access key.
func (d *door) forgedForm(from, key string) net.Conn {
	d.t.Helper()
	return d.beginBody(from, slowBytes, forgery(key))
}

// forgery is the lines of a head with a signature that somebody made up for an access key.
func forgery(key string) string {
	now := time.Now().UTC()
	return fmt.Sprintf("X-Amz-Date: %s\r\nAuthorization: AWS4-HMAC-SHA256 Credential=%s/%s/us-east-1/iam/aws4_request, "+
		"SignedHeaders=host;x-amz-date, Signature=%064d\r\n", now.Format("20060102T150405Z"), key, now.Format("20060102"), 0)
}

// beginBody begins a form of n bytes with more lines in its head.
func (d *door) beginBody(from string, n int, lines string) net.Conn {
	d.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := dialer.DialContext(d.t.Context(), "tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { c.Close() })
	if _, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n%s\r\n", n, lines); err != nil {
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
	if got := d.answer(c); got != http.StatusRequestTimeout {
		t.Error(got)
	}
	// The next one is another request's.
	for end := time.Now().Add(20 * time.Second); d.server.strangers.InUse() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("its place is not free")
		}
	}
}

// ended sends the body.
func (d *door) ended(c net.Conn) net.Conn {
	d.t.Helper()
	if _, err := c.Write(make([]byte, slowBytes)); err != nil {
		d.t.Fatal(err)
	}
	return c
}

// answer returns the status that a connection gets before StallTime is over.
func (d *door) answer(c net.Conn) int {
	d.t.Helper()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		d.t.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	a.Body.Close()
	return a.StatusCode
}

// TestForgedForms: forms with a signature that was made up, and that do not come, hold up
// neither other access keys nor who had proved to have this one, however many addresses
// they are from.
func TestForgedForms(t *testing.T) {
	d := newDoor(t)
	d.server.cfg.Guesses, d.server.strangerTime = guess.New(), time.Minute
	d.ok("ListUsers", "UserName")
	for i := range maxBodies / 2 {
		d.forgedForm(fmt.Sprintf("127.0.1.%d", i+1), "KEYroot")
	}
	for end := time.Now().Add(30 * time.Second); d.server.bodies.InUse() < maxBodies/2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d forms are read", d.server.bodies.InUse())
		}
	}
	if got := d.answer(d.ended(d.forgedForm("127.0.2.1", "KEYroot"))); got != http.StatusBadRequest {
		t.Errorf("one more: %d", got)
	}
	if status, body := d.call("alice", "GetCallerIdentity"); status != http.StatusOK {
		t.Errorf("another access key: %d %s", status, body)
	}
	d.ok("ListUsers", "UserName")
}

// TestForgedFormIsEnded: a signed form that does not come has as little time as one that
// nobody signed, and counts as a wrong signature.
func TestForgedFormIsEnded(t *testing.T) {
	d := newDoor(t)
	d.server.cfg.Guesses, d.server.strangerTime = guess.New(), 10*time.Millisecond
	for i := range 21 {
		if got := d.answer(d.forgedForm("127.0.0.1", "KEYroot")); got != http.StatusRequestTimeout {
			t.Fatalf("form %d: %d", i, got)
		}
	}
	d.server.strangerTime = time.Minute
	if got := d.answer(d.ended(d.forgedForm("127.0.0.1", "KEYroot"))); got != http.StatusBadRequest {
		t.Errorf("after 21 that did not come: %d", got)
	}
}

// TestMistakesAreNoGuesses: who sends what its head says is not taken, or breaks off with a key
// that it has proved, is not shut out.
func TestMistakesAreNoGuesses(t *testing.T) {
	d := newDoor(t)
	d.server.cfg.Guesses = guess.New()
	for range 30 {
		r := d.signed("root", "secret-root", "iam", formOf("ListUsers"))
		r.Header.Set("Content-Type", "application/json")
		if status, body := d.send(r); status != http.StatusBadRequest || textOf(body, "Code") != "InvalidInput" {
			t.Fatalf("%d %s", status, body)
		}
	}
	for range 30 {
		if got := d.answer(d.beginBody("127.0.0.1", maxBody+1, forgery("KEYroot"))); got != http.StatusRequestEntityTooLarge {
			t.Fatal(got)
		}
	}
	d.ok("ListUsers", "UserName")
	for range 101 { // more than an address has free
		c := d.forgedForm("127.0.0.1", "KEYroot")
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := d.answer(c); got != http.StatusRequestTimeout {
			t.Fatal(got)
		}
		c.Close()
	}
	if status, body := d.call("alice", "GetCallerIdentity"); status != http.StatusOK {
		t.Errorf("another key of the address: %d %s", status, body)
	}
}

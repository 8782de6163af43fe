package adversary

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"ogw/httpapi"
)

// standstillEnd is by when what stands still has ended: its credit, and what the
// buffers of the kernel still take.
const standstillEnd = httpapi.StallTime + 15*time.Second

// TestTransfersThatStandStill: a body that comes by single bytes and an answer that is
// not taken end, and a client with little more than the least rate goes on beside them.
func TestTransfersThatStandStill(t *testing.T) {
	t.Parallel()
	s := newServer(t, restUsers)
	alice := newPerson(t, s, "alice")
	must(t, "object")(alice.rest(t, s, "PUT", "/hers/large", strings.Repeat("x", 64<<20)))
	as := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(alice.key+":"+alice.secret)) + "\r\n"
	dial := func(t *testing.T, head string) net.Conn {
		conns := connect(s.REST, 1, head+" HTTP/1.1\r\nHost: a\r\n"+as, "127.0.0.1")
		if len(conns) == 0 {
			t.Fatal("no connection")
		}
		t.Cleanup(func() { closeAll(conns) })
		return conns[0]
	}
	for name, attack := range map[string]func(t *testing.T) error{
		"a body by single bytes": func(t *testing.T) error {
			conn := dial(t, "PUT /hers/slow")
			if _, err := conn.Write([]byte("Content-Length: 1000000\r\n\r\n")); err != nil {
				return err
			}
			return ends(conn, func() (goesOn bool) {
				_, err := conn.Write([]byte("x"))
				time.Sleep(time.Second)
				return err == nil
			})
		},
		"an answer that nobody takes": func(t *testing.T) error {
			conn := dial(t, "GET /hers/large")
			if _, err := conn.Write([]byte("\r\n")); err != nil {
				return err
			}
			time.Sleep(standstillEnd)
			if n, _ := io.Copy(io.Discard, conn); n >= 64<<20 {
				return errors.New("it was kept whole")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := attack(t); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a slow client", func(t *testing.T) {
		t.Parallel()
		const step, steps = 2 * httpapi.MinRate, int(standstillEnd / time.Second)
		conn := dial(t, "PUT /hers/modem")
		if _, err := fmt.Fprintf(conn, "Content-Length: %d\r\n\r\n", step*steps); err != nil {
			t.Fatal(err)
		}
		for range steps {
			if _, err := conn.Write(make([]byte, step)); err != nil {
				t.Fatalf("it was ended: %v", err)
			}
			time.Sleep(time.Second)
		}
		answer := make([]byte, 12)
		if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "HTTP/1.1 201" {
			t.Errorf("answer %q, %v", answer, err)
		}
	})
}

// ends repeats something until the server ends the connection.
func ends(conn net.Conn, do func() (goesOn bool)) error {
	for begin := time.Now(); time.Since(begin) < standstillEnd; {
		if !do() {
			return nil
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			return err
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil // answered, or closed
		}
	}
	return fmt.Errorf("it goes on after %v", standstillEnd)
}

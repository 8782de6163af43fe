package fair

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestHeadWithoutShare: whose incomplete heads are too many loses one, others and
// complete heads go on.
func TestHeadWithoutShare(t *testing.T) {
	// Of these, one client may have all that it opens: 61.
	addr := web(t, Limits{Connections: 256})
	head := "GET / HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("a: b\r\n", 9000)
	lost := 0
	for range 20 {
		c := dial(t, addr, "127.0.0.2")
		if _, err := io.WriteString(c, head); err != nil {
			lost++
			continue
		}
		if _, err := io.WriteString(c, "\r\n"); err != nil {
			lost++
			continue
		}
		if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || res.StatusCode != 200 {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d heads of %d bytes, one after the other, were lost", lost, len(head))
	}
	for range 40 {
		c := dial(t, addr, "127.0.0.2")
		_, _ = io.WriteString(c, head)
	}
	for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
		if who, err := ask(dial(t, addr, from), ""); err != nil || who == "" {
			t.Errorf("%s: %q, %v", from, who, err)
		}
	}
}

// TestPipelined: what came with the request before is answered.
func TestPipelined(t *testing.T) {
	c := dial(t, web(t, Limits{Connections: 16}), "127.0.0.2")
	const n = 50
	if _, err := io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: h\r\n\r\n", n)); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(c)
	for i := range n {
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(i, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}

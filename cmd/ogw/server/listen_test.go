package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"ogw/cmd/ogw/config"
)

// TestUsualPortTaken: a gateway that nobody configured takes the next free port, and
// says so; one with an address of its own does not.
func TestUsualPortTaken(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	taken := busy.Addr().String()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	g := config.Gateway{Protocol: "rest", Name: "rest", Listen: taken}
	if _, err := listen(g, log); !errors.Is(err, syscall.EADDRINUSE) || out.Len() > 0 {
		t.Errorf("%v, logged: %s", err, &out)
	}
	g.Moves = true
	l, err := listen(g, log)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Addr().String() == taken || !strings.Contains(out.String(), "next free") {
		t.Errorf("listens at %s, logged: %s", l.Addr(), &out)
	}
}

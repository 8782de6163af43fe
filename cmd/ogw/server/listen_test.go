package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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

// TestNoHandlerAfterWait: a request whose head came as the server closed does not begin
// after the last handler was waited for, and does not keep that from ending.
func TestNoHandlerAfterWait(t *testing.T) {
	for range 200 {
		var over atomic.Bool
		flights := &inFlight{next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if over.Load() {
				t.Error("a handler runs")
			}
		})}
		var clients sync.WaitGroup
		serve := func() (served bool) {
			defer func() {
				if r := recover(); r != nil && r != any(http.ErrAbortHandler) {
					panic(r)
				}
			}()
			flights.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
			return true
		}
		for range 4 {
			clients.Go(func() {
				for i := 0; i < 1000 && serve(); i++ {
				}
			})
		}
		for range 2 { // the second time, too
			if !flights.wait(time.Minute) {
				t.Error("handlers run on")
			}
		}
		over.Store(true)
		if serve() {
			t.Error("a request is served")
		}
		clients.Wait()
	}
}

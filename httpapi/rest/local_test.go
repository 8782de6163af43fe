package rest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"ogw/httpapi/apierr"
)

// TestUnknownPeer: an open door is not for whom the kernel does not know.
func TestUnknownPeer(t *testing.T) {
	a := newAuthenticator(Config{})
	who, err := a.identifyLocal(context.Background())
	if !errors.Is(err, apierr.ErrUnauthorized) || who.subject.Admin {
		t.Errorf("%+v, %v", who, err)
	}
	g := newGateway(t, Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// The same door, behind a listener that asks nobody.
	server := httptest.NewUnstartedServer(New(Config{FS: g.fs, Logger: slog.New(slog.DiscardHandler)}))
	server.Listener.Close()
	server.Listener = l
	server.Start()
	defer server.Close()
	resp, err := http.Get(server.URL + "/x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
}

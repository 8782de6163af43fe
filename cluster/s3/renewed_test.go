package s3

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ogw/integration/testenv"
)

// TestTransportRenewed: each connection goes by what is trusted when it begins, and by the
// address that it is made to.
func TestTransportRenewed(t *testing.T) {
	certFile, keyFile, pool := testenv.Certificate(t, t.TempDir(), "one")
	_, _, other := testenv.Certificate(t, t.TempDir(), "two")
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	srv.StartTLS()
	defer srv.Close()
	trusted := other
	transport := newTransport(func() *tls.Config { return &tls.Config{RootCAs: trusted} })
	defer transport.CloseIdleConnections()
	asks := func(url string) error {
		transport.CloseIdleConnections()
		a, err := (&http.Client{Transport: transport}).Get(url)
		if err == nil {
			_ = a.Body.Close()
		}
		return err
	}
	if err := asks(srv.URL); err == nil {
		t.Error("a certificate of nobody is taken")
	}
	trusted = pool
	if err := asks(srv.URL); err != nil {
		t.Error(err)
	}
	if err := asks(strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)); err == nil {
		t.Error("a certificate for another address is taken")
	}
	trusted = other
	if err := asks(srv.URL); err == nil {
		t.Error("a certificate of whom is trusted no more is taken")
	}
}

package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/integration/testenv"
)

func TestCertificateRenewal(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, _ := testenv.Certificate(t, dir, "one")
	c, err := newCertificate(certFile, keyFile, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	name := func() string {
		t.Helper()
		c.checked = time.Time{} // as if certCheck had passed
		got, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(got.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.Subject.CommonName
	}
	later := time.Now().Add(time.Minute)
	if err := os.WriteFile(certFile, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(certFile, later, later); err != nil {
		t.Fatal(err)
	}
	if got := name(); got != "one" {
		t.Errorf("with a broken file: %s", got)
	}
	testenv.Certificate(t, dir, "two")
	later = later.Add(time.Minute)
	if err := os.Chtimes(certFile, later, later); err != nil {
		t.Fatal(err)
	}
	if got := name(); got != "two" {
		t.Errorf("after the renewal: %s", got)
	}
	if _, err := newCertificate(filepath.Join(dir, "none"), keyFile, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("no certificate is no error")
	}
}

// TestClientCertificateRenewal: a server of the store is shown the renewed certificate
// at the next connection.
func TestClientCertificateRenewal(t *testing.T) {
	shown := make(chan string, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		shown <- r.TLS.PeerCertificates[0].Subject.CommonName
	}))
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	srv.StartTLS()
	defer srv.Close()
	ca, dir := filepath.Join(t.TempDir(), "ca.pem"), t.TempDir()
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	certFile, keyFile, _ := testenv.Certificate(t, dir, "one")
	cert, err := newCertificate(certFile, keyFile, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	roots, err := newAuthorities(ca, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	config := tlsOf(roots, cert)()
	for i, want := range []string{"one", "two"} {
		if i > 0 {
			testenv.Certificate(t, dir, want)
			later := time.Now().Add(time.Minute)
			if err := os.Chtimes(certFile, later, later); err != nil {
				t.Fatal(err)
			}
			cert.checked = time.Time{} // as if certCheck had passed
		}
		client := http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		a, err := client.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if got := <-shown; got != want {
			t.Errorf("connection %d: %s", i, got)
		}
	}
}

// TestAuthorityRenewal: whom renewed authorities vouch for is a server of the store at the next
// connection, and whom only the old ones did is none.
func TestAuthorityRenewal(t *testing.T) {
	dir := t.TempDir()
	serve := func(name string) (url, ca string) {
		certFile, keyFile, _ := testenv.Certificate(t, t.TempDir(), name)
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
		srv.StartTLS()
		t.Cleanup(srv.Close)
		return srv.URL, certFile
	}
	first, firstCA := serve("one")
	second, secondCA := serve("two")
	file, at := filepath.Join(dir, "ca.pem"), time.Now()
	write := func(from string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Minute)
		if err := errors.Join(os.WriteFile(file, text, 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	write(firstCA)
	roots, err := newAuthorities(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	config := tlsOf(roots, nil)
	trusts := func(url string, want bool) {
		t.Helper()
		roots.checked = time.Time{} // as if certCheck had passed
		client := http.Client{Transport: &http.Transport{TLSClientConfig: config(), DisableKeepAlives: true}}
		a, err := client.Get(url)
		if err == nil {
			a.Body.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s: %v", url, err)
		}
	}
	trusts(first, true)
	trusts(second, false)
	write(secondCA)
	trusts(first, false)
	trusts(second, true)
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	write(empty) // while it is written anew
	trusts(second, true)
	if _, err := newAuthorities(empty, slog.New(slog.DiscardHandler)); !errors.Is(err, cluster.ErrInvalid) {
		t.Error(err)
	}
}

package server

import (
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

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

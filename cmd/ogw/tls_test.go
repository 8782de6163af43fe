package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate makes a self-signed certificate for 127.0.0.1.
func writeCertificate(t *testing.T, dir, name string) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool = x509.NewCertPool()
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool.AppendCertsFromPEM(certPEM)
	for file, text := range map[string][]byte{certFile: certPEM, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, pool
}

func TestTLS(t *testing.T) {
	w := newWorld(t)
	_, _, pool := writeCertificate(t, w.dir, "one")
	w.write("ogw.toml", "[[gateway]]\nprotocol = \"rest\"\nlisten = \"127.0.0.1:0\"\ntls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\ntokens = [\"0123456789abcdef\"]\n")
	d := w.serve("-c", "ogw.toml")
	if !d.said.Gateways[0].TLS {
		t.Errorf("%+v", d.said.Gateways)
	}
	for _, http2 := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: http2}
		c := &http.Client{Transport: transport}
		url := strings.Replace(d.url("rest"), "http:", "https:", 1) + "/b/x"
		r, _ := http.NewRequest("PUT", url, strings.NewReader("hello"))
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode/100 != 2 || http2 != (resp.ProtoMajor == 2) {
			t.Errorf("%s %s", resp.Proto, resp.Status)
		}
		r, _ = http.NewRequest("GET", url, nil)
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		resp, err = c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(b) != "hello" {
			t.Errorf("%q %v", b, err)
		}
		transport.CloseIdleConnections()
	}
}

func TestCertificateRenewal(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, _ := writeCertificate(t, dir, "one")
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
	writeCertificate(t, dir, "two")
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

// The admin address over TLS is for those who know whom they talk to.
func TestAdminTLS(t *testing.T) {
	w := newWorld(t)
	writeCertificate(t, w.dir, "admin")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	w.write("ogw.toml", "[admin]\nlisten = \""+address+"\"\ntoken = \"0123456789abcdef\"\ntls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n")
	w.serve("-c", "ogw.toml")
	url := "https://" + address
	w.write("client.toml", "[admin]\ntoken = \"0123456789abcdef\"\nca = \"cert.pem\"\n")
	w.ok("status", "-c", "client.toml", "--admin", url)
	for _, args := range [][]string{
		{"status", "-c", "client.toml", "--admin", url, "--set", "admin.ca="},
		{"status", "-c", "client.toml", "--admin", url, "--set", "admin.pin=sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
		{"status", "-c", "client.toml", "--admin", url, "--set", "admin.token=0123456789abcdeX"},
	} {
		if out, _, code := w.ogw(args...); code == 0 {
			t.Errorf("%v: %s", args, out)
		}
	}
	if _, errs, code := w.ogw("status", "-c", "client.toml", "--admin", "http://192.0.2.1:9090"); code != exitUsage || !strings.Contains(errs, "in clear") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

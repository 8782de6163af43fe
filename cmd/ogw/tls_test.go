package main

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"ogw/integration/testenv"
)

func TestTLS(t *testing.T) {
	w := newWorld(t)
	_, _, pool := testenv.Certificate(t, w.dir, "one")
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

// The admin address over TLS is for those who know whom they talk to.
func TestAdminTLS(t *testing.T) {
	w := newWorld(t)
	testenv.Certificate(t, w.dir, "admin")
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

package adversary

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ogw/integration/testenv"
)

const (
	// flood is a bit more than the default of gateway.max_requests, so that no slot
	// is left where one client may have them all.
	flood = 1024 + 128
	// streams of each of h2Conns connections: with them, over all slots.
	h2Conns, streams = 5, 240
	// fewConns is a server.connections that a test can use up.
	fewConns = 128
	// large is more than all buffers of a connection hold.
	large = 32 << 20
)

// webServer has one public bucket, with a small and a large public object.
func webServer(t *testing.T, o testenv.ServerOptions, scheme string) *testenv.Server {
	t.Helper()
	s := newServer(t, o)
	root := person{key: s.KeyID, secret: s.Secret}
	put := func(target, body string, headers ...string) {
		r := root.s3Request(t, s, "PUT", target, body, headers...)
		r.URL.Scheme = scheme
		c := clientFrom(victim)
		c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
		defer c.CloseIdleConnections()
		resp, err := c.Do(r)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(target, err, resp)
		}
		resp.Body.Close()
	}
	put("/open", "", "X-Amz-Acl", "public-read-write")
	put("/open/small", "hello", "X-Amz-Acl", "public-read")
	put("/open/large", strings.Repeat("0123456789abcdef", large/16), "X-Amz-Acl", "public-read")
	return s
}

// browser is a victim who reads a public object and writes another.
type browser struct {
	s            *testenv.Server
	tls          bool
	anew         bool   // over a new connection each time
	from         string // its address, victim if empty
	forwardedFor string // what a proxy says of it
}

// visits returns what it does, over connections of its own.
func (b browser) visits(*testing.T) func() error {
	c := clientFrom(cmp.Or(b.from, victim))
	c.Timeout = giveUp
	tr := c.Transport.(*http.Transport)
	tr.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	tr.DisableKeepAlives = b.anew
	return func() error {
		for _, method := range []string{"GET", "PUT"} {
			if err := b.visit(c, method); err != nil {
				return err
			}
		}
		return nil
	}
}

func (b browser) visit(c *http.Client, method string) error {
	scheme := map[bool]string{false: "http", true: "https"}[b.tls]
	r, err := http.NewRequest(method, scheme+"://"+b.s.S3+"/open/small", nil)
	if err != nil {
		return err
	}
	if b.forwardedFor != "" {
		r.Header.Set("X-Forwarded-For", b.forwardedFor)
	}
	if method == "PUT" {
		r.URL.Path = "/open/mine"
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("hello")), 5
	}
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 {
		return fmt.Errorf("%s: %s, %v", method, resp.Status, err)
	}
	return nil
}

// floodStill begins a request on each connection and does nothing more.
func floodStill(sc scene) ([]net.Conn, error) {
	conns := connect(sc.S3, sc.Conns, sc.Text, sc.Addresses...)
	time.Sleep(time.Second) // until all are answered as far as they take it, or idle
	return conns, nil
}

// floodTrickling sends a byte on each connection twice a second after that.
func floodTrickling(sc scene) ([]net.Conn, error) {
	conns := connect(sc.S3, sc.Conns, sc.Text, sc.Addresses...)
	go func() {
		for {
			for _, c := range conns {
				_, _ = io.WriteString(c, "x") // it may have been ended
			}
			time.Sleep(500 * time.Millisecond)
		}
	}()
	return conns, nil
}

// formHead begins a form that stays in its first field.
const formHead = "--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\n"

// slowBody is the head of a PUT that anybody may send.
func slowBody(s *testenv.Server, headers string) string {
	return "PUT /open/slow HTTP/1.1\r\nHost: " + s.S3 + "\r\n" + headers + "Content-Length: 60000\r\n\r\n"
}

// Forms, whose fields nobody has signed yet, trickle on more connections than
// there are slots.
func TestFloodOfForms(t *testing.T) {
	s := webServer(t, testenv.ServerOptions{}, "http")
	withstands(t, browser{s: s}.visits, scene{Flood: "trickling", S3: s.S3, Conns: flood, Addresses: []string{attacker},
		Text: "POST /open HTTP/1.1\r\nHost: " + s.S3 + "\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 60000\r\n\r\n" + formHead})
}

// Bodies that anybody may send trickle likewise.
func TestFloodOfBodies(t *testing.T) {
	s := webServer(t, testenv.ServerOptions{}, "http")
	withstands(t, browser{s: s}.visits, scene{Flood: "trickling", S3: s.S3, Conns: flood, Addresses: []string{attacker}, Text: slowBody(s, "")})
}

// Readers of one public object take nothing of it.
func TestFloodOfReaders(t *testing.T) {
	s := webServer(t, testenv.ServerOptions{}, "http")
	withstands(t, browser{s: s}.visits, scene{Flood: "still", S3: s.S3, Conns: flood, Addresses: []string{attacker},
		Text: "GET /open/large HTTP/1.1\r\nHost: " + s.S3 + "\r\n\r\n"})
}

// userAddresses are enough for the floors of each, where addresses counted, to
// be all slots.
const userAddresses = 72

// A user is one client, at however many addresses.
func TestFloodOfAUser(t *testing.T) {
	s := webServer(t, testenv.ServerOptions{}, "http")
	bob := newPerson(t, s, "bob")
	var text strings.Builder
	if err := bob.s3Request(t, s, "GET", "/open/large", "").Write(&text); err != nil {
		t.Fatal(err)
	}
	sc := scene{Flood: "still", S3: s.S3, Conns: flood, Text: text.String()}
	for i := range userAddresses {
		sc.Addresses = append(sc.Addresses, fmt.Sprintf("127.0.5.%d", i+1))
	}
	withstands(t, browser{s: s}.visits, sc)
}

// Behind a proxy that the configuration names, a client is whom that names.
func TestFloodBehindProxy(t *testing.T) {
	s := webServer(t, testenv.ServerOptions{S3: `trusted_proxies = ["127.0.0.1"]`}, "http")
	withstands(t, browser{s: s, from: attacker, forwardedFor: "192.0.2.2"}.visits, scene{Flood: "trickling", S3: s.S3, Conns: flood,
		Addresses: []string{attacker}, Text: slowBody(s, "X-Forwarded-For: 192.0.2.1\r\n")})
}

// Idle connections of one address: those that never asked, and those that
// wait for their next request.
func TestFloodOfIdleConnections(t *testing.T) {
	for name, text := range map[string]string{"silent": "", "kept alive": "GET / HTTP/1.1\r\nHost: h\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			s := webServer(t, testenv.ServerOptions{Extra: fmt.Sprintf("[server]\nconnections = %d\n", fewConns)}, "http")
			withstands(t, browser{s: s, anew: true}.visits, scene{Flood: "still", S3: s.S3, Conns: 2 * fewConns, Addresses: []string{attacker}, Text: text})
		})
	}
}

// Few HTTP/2 connections carry as many forms as there are slots.
func TestFloodOfStreams(t *testing.T) {
	cert, key := certificate(t)
	s := webServer(t, testenv.ServerOptions{S3: fmt.Sprintf("tls_cert = %q\ntls_key = %q", cert, key)}, "https")
	withstands(t, browser{s: s, tls: true}.visits, scene{Flood: "streams", S3: s.S3})
}

func floodOfStreams(sc scene) ([]net.Conn, error) {
	var begun sync.WaitGroup
	for range h2Conns {
		c := clientFrom(attacker)
		c.Timeout = 0
		tr := c.Transport.(*http.Transport)
		tr.TLSClientConfig, tr.ForceAttemptHTTP2 = &tls.Config{InsecureSkipVerify: true}, true
		for range streams {
			begun.Add(1)
			go stream(c, sc.S3, begun.Done)
		}
	}
	begun.Wait()
	return nil, nil
}

// stream posts a form that stays in its first field. It calls begun once the
// beginning is sent, or refused.
func stream(c *http.Client, to string, begun func()) {
	r, w := io.Pipe()
	req, err := http.NewRequest("POST", "https://"+to+"/open", r)
	if err != nil {
		begun()
		return
	}
	req.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	go func() {
		_, err := io.WriteString(w, formHead)
		begun()
		for err == nil {
			time.Sleep(time.Second)
			_, err = io.WriteString(w, "x")
		}
		w.CloseWithError(err)
	}()
	if resp, err := c.Do(req); err == nil {
		resp.Body.Close()
	}
	r.Close()
}

// certificate makes a self-signed certificate for loopback.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

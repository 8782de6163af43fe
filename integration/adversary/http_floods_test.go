package adversary

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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

// browser returns a victim who reads a public object and writes another,
// over one connection or, if anew is set, each time over a new one.
func browser(s *testenv.Server, scheme string, anew bool) func() func() error {
	return func() func() error {
		c := clientFrom(victim)
		c.Timeout = giveUp
		tr := c.Transport.(*http.Transport)
		tr.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
		tr.DisableKeepAlives = anew
		return func() error {
			for _, method := range []string{"GET", "PUT"} {
				r, err := http.NewRequest(method, scheme+"://"+s.S3+"/open/small", nil)
				if err != nil {
					return err
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
			}
			return nil
		}
	}
}

// connect opens n connections from the attacker's address and sends on each.
func connect(t *testing.T, s *testenv.Server, n int, text string) (conns []net.Conn) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attacker)}, Timeout: giveUp, Control: smallWindow}
	for range n {
		c, err := d.Dial("tcp", s.S3)
		if err != nil {
			break // all that the server takes
		}
		conns = append(conns, c)
		_, _ = io.WriteString(c, text) // it may have been refused
	}
	return conns
}

// smallWindow keeps the attacker's own receive buffers, which lie elsewhere in
// earnest, from taking all that this machine has for TCP.
func smallWindow(_, _ string, c syscall.RawConn) error {
	const receiveBytes = 64 << 10
	var set error
	err := c.Control(func(fd uintptr) {
		set = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, receiveBytes)
	})
	return errors.Join(err, set)
}

// trickle sends a byte on each connection twice a second, until ended.
func trickle(conns []net.Conn) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			for _, c := range conns {
				_, _ = io.WriteString(c, "x") // it may have been ended
			}
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
		closeAll(conns)()
	}
}

// formHead begins a form that stays in its first field.
const formHead = "--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\n"

// Forms, whose fields nobody has signed yet, trickle on more connections than
// there are slots.
func TestFloodOfForms(t *testing.T) {
	s := webServer(t, testenv.ServerOptions{}, "http")
	withstands(t, browser(s, "http", false), func() func() {
		return trickle(connect(t, s, flood, "POST /open HTTP/1.1\r\nHost: "+s.S3+
			"\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 60000\r\n\r\n"+formHead))
	})
}

// Bodies that anybody may send trickle likewise.
func TestFloodOfBodies(t *testing.T) {
	s := webServer(t, testenv.ServerOptions{}, "http")
	withstands(t, browser(s, "http", false), func() func() {
		return trickle(connect(t, s, flood, "PUT /open/slow HTTP/1.1\r\nHost: "+s.S3+"\r\nContent-Length: 60000\r\n\r\n"))
	})
}

// Readers of one public object take nothing of it.
func TestFloodOfReaders(t *testing.T) {
	s := webServer(t, testenv.ServerOptions{}, "http")
	withstands(t, browser(s, "http", false), func() func() {
		conns := connect(t, s, flood, "GET /open/large HTTP/1.1\r\nHost: "+s.S3+"\r\n\r\n")
		time.Sleep(time.Second) // until all are answered as far as they take it
		return closeAll(conns)
	})
}

// Idle connections of one address: those that never asked, and those that
// wait for their next request.
func TestFloodOfIdleConnections(t *testing.T) {
	for name, text := range map[string]string{"silent": "", "kept alive": "GET / HTTP/1.1\r\nHost: h\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			s := webServer(t, testenv.ServerOptions{Extra: fmt.Sprintf("[server]\nconnections = %d\n", fewConns)}, "http")
			withstands(t, browser(s, "http", true), func() func() {
				conns := connect(t, s, 2*fewConns, text)
				time.Sleep(time.Second) // until they are idle
				return closeAll(conns)
			})
		})
	}
}

// Few HTTP/2 connections carry as many forms as there are slots.
func TestFloodOfStreams(t *testing.T) {
	cert, key := certificate(t)
	s := webServer(t, testenv.ServerOptions{S3: fmt.Sprintf("tls_cert = %q\ntls_key = %q", cert, key)}, "https")
	withstands(t, browser(s, "https", false), func() func() {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for range h2Conns {
			c := clientFrom(attacker)
			tr := c.Transport.(*http.Transport)
			tr.TLSClientConfig, tr.ForceAttemptHTTP2 = &tls.Config{InsecureSkipVerify: true}, true
			for range streams {
				wg.Go(func() { stream(ctx, c, s) })
			}
		}
		time.Sleep(2 * time.Second) // until the streams are open
		return func() {
			cancel()
			wg.Wait()
		}
	})
}

// stream posts a form that stays in its first field, until ctx ends.
func stream(ctx context.Context, c *http.Client, s *testenv.Server) {
	r, w := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, "POST", "https://"+s.S3+"/open", r)
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	go func() {
		_, err := io.WriteString(w, formHead)
		for err == nil {
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(time.Second):
				_, err = io.WriteString(w, "x")
			}
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

package etcd

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"ogw/integration/testenv"
)

// TestRenewed: each connection goes by what is trusted when it begins, and by the name, or
// address, that it is made to.
func TestRenewed(t *testing.T) {
	certFile, keyFile, pool := testenv.Certificate(t, t.TempDir(), "one")
	_, _, other := testenv.Certificate(t, t.TempDir(), "two")
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = conn.(*tls.Conn).Handshake()
				_ = conn.Close()
			}()
		}
	}()
	trusted := other
	creds := renewed(func() *tls.Config { return &tls.Config{RootCAs: trusted} }).Clone()
	greets := func(name string) error {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _, err = creds.ClientHandshake(context.Background(), name, conn)
		return err
	}
	if err := greets("127.0.0.1:2379"); err == nil {
		t.Error("a certificate of nobody is taken")
	}
	trusted = pool
	for name, want := range map[string]bool{"127.0.0.1:2379": true, "one:2379": true, "two:2379": false, "127.0.0.2:2379": false} {
		if err := greets(name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

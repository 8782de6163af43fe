package engines

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"sync"
	"testing"

	"ogw/cluster"
	"ogw/cluster/etcd"
	"ogw/integration/testenv"
)

// tlsFront ends TLS before a server, with a certificate that can be replaced.
type tlsFront struct {
	addr string

	mu    sync.Mutex
	pair  tls.Certificate
	roots *x509.CertPool // that trust pair
	conns []net.Conn
}

func newTLSFront(t *testing.T, server string) *tlsFront {
	f := &tlsFront{}
	f.renew(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{NextProtos: []string{"h2"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		pair := f.pair
		return &pair, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	f.addr = l.Addr().String()
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", server)
			if err != nil {
				_ = conn.Close()
				continue
			}
			f.mu.Lock()
			f.conns = append(f.conns, conn, behind)
			f.mu.Unlock()
			for from, to := range map[net.Conn]net.Conn{conn: behind, behind: conn} {
				wait.Go(func() {
					_, _ = io.Copy(to, from)
					_ = to.Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		f.drop()
		wait.Wait()
	})
	return f
}

// renew gives the front another certificate, which other authorities vouch for.
func (f *tlsFront) renew(t *testing.T) {
	certFile, keyFile, roots := testenv.Certificate(t, t.TempDir(), "etcd")
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pair, f.roots = pair, roots
}

// drop ends all connections.
func (f *tlsFront) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range f.conns {
		_ = conn.Close()
	}
	f.conns = nil
}

func (f *tlsFront) config() *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &tls.Config{RootCAs: f.roots, MinVersion: tls.VersionTLS12}
}

// TestEtcdRenewedAuthorities: an open store finds its servers again when these have
// certificates of renewed authorities.
func TestEtcdRenewedAuthorities(t *testing.T) {
	front := newTLSFront(t, testenv.StartEtcd(t, 1).Endpoints()[0])
	kv := openEtcdOf(t, etcd.Options{Endpoints: []string{front.addr}, Prefix: newPrefix(), TLS: front.config})
	put := func(value string) error {
		return kv.Update(t.Context(), func(txn cluster.Txn) error { return txn.Set([]byte("k"), []byte(value)) })
	}
	if err := put("before"); err != nil {
		t.Fatal(err)
	}
	front.renew(t)
	front.drop()
	testenv.Eventually(t, "the store answers", func() error { return put("after") })
}

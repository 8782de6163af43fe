package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"ogw/cluster"
)

// certCheck is how often the files of certificates and authorities are looked at: renewed
// ones are taken over without a restart.
const certCheck = 10 * time.Second

// followed is what files hold.
type followed[T any] struct {
	files []string
	read  func() (T, error)
	log   *slog.Logger

	mu      sync.Mutex
	current T
	seen    []time.Time // modification times of the files that were read; nil: none were
	checked time.Time
}

// load reads the files if they changed. mu is held, or nobody else knows f.
func (f *followed[T]) load(now time.Time) error {
	f.checked = now
	seen := make([]time.Time, len(f.files))
	for i, name := range f.files {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		seen[i] = info.ModTime()
	}
	if f.seen != nil && slices.Equal(seen, f.seen) {
		return nil
	}
	current, err := f.read()
	if err != nil {
		return err
	}
	f.current, f.seen = current, seen
	return nil
}

// latest returns what the files hold. While they are wrong, such as between the
// writing of one and the other, it is what they held before.
func (f *followed[T]) latest() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.checked) > certCheck {
		if err := f.load(now); err != nil {
			f.log.Warn("TLS certificates cannot be read again, the old ones stay in use", "file", f.files[0], "error", err)
		}
	}
	return f.current
}

// certificate is a TLS certificate that follows its files.
type certificate struct{ followed[*tls.Certificate] }

func newCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{followed[*tls.Certificate]{files: []string{certFile, keyFile}, log: log, read: func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		return &pair, err
	}}}
	return c, c.load(time.Now())
}

// get implements tls.Config.GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.latest(), nil }

// getClient implements tls.Config.GetClientCertificate.
func (c *certificate) getClient(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return c.latest(), nil
}

// authorities are whose certificates are believed; they follow their file.
type authorities struct{ followed[*x509.CertPool] }

func newAuthorities(file string, log *slog.Logger) (*authorities, error) {
	a := &authorities{followed[*x509.CertPool]{files: []string{file}, log: log, read: func() (*x509.CertPool, error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%w: %s holds no certificates", cluster.ErrInvalid, file)
		}
		return pool, nil
	}}}
	return a, a.load(time.Now())
}

// tlsOf returns how a server is spoken to over a connection that begins now; without ca
// the system's authorities vouch for it, and without cert nobody for this process.
func tlsOf(ca *authorities, cert *certificate) func() *tls.Config {
	return func() *tls.Config {
		t := &tls.Config{MinVersion: tls.VersionTLS12}
		if ca != nil {
			t.RootCAs = ca.latest()
		}
		if cert != nil {
			t.GetClientCertificate = cert.getClient
		}
		return t
	}
}

package server

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certCheck is how often the files of a certificate are looked at: renewed
// ones are taken over without a restart.
const certCheck = 10 * time.Second

// certificate is a TLS certificate that follows its files.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	seen    [2]time.Time // modification times of the files that were read
	checked time.Time
}

func newCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	return c, c.load(time.Now())
}

// load reads the files if they changed. mu is held, or nobody else knows c.
func (c *certificate) load(now time.Time) error {
	c.checked = now
	certInfo, err1 := os.Stat(c.certFile)
	keyInfo, err2 := os.Stat(c.keyFile)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	seen := [2]time.Time{certInfo.ModTime(), keyInfo.ModTime()}
	if c.current != nil && seen == c.seen {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.current, c.seen = &pair, seen
	return nil
}

// get implements tls.Config.GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.latest(), nil }

// getClient implements tls.Config.GetClientCertificate.
func (c *certificate) getClient(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return c.latest(), nil
}

// latest returns what the files hold. While they are wrong, such as between the
// writing of one and the other, it is the old certificate.
func (c *certificate) latest() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.checked) > certCheck {
		if err := c.load(now); err != nil {
			c.log.Warn("the TLS certificate cannot be read again, the old one stays in use", "file", c.certFile, "error", err)
		}
	}
	return c.current
}

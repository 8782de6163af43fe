package oidc

import (
	"context"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"ogw/vfs/iam"
)

const (
	// fetchTime bounds one document that is fetched: who waits is a request.
	fetchTime = 5 * time.Second
	// maxDocument bounds a discovery document or a set of keys; the largest known
	// has 20 KiB.
	maxDocument = 256 << 10
	// fetches bounds the documents that are asked for in a window: a token may name a
	// key that is not there, as often as somebody likes to send one.
	fetches     = 10
	fetchWindow = time.Minute
)

// issuer is one provider as its documents say.
type issuer struct {
	name        string
	created     int64
	thumbprints []string
	now         func() time.Time
	client      *http.Client

	mu      sync.Mutex // a leaf
	current *oidc.Provider
	fetched time.Time // current
	window  time.Time // when the count began
	count   int
}

func newIssuer(name string, p *iam.Provider, now func() time.Time) *issuer {
	x := &issuer{name: name, created: p.Created, thumbprints: slices.Clone(p.Thumbprints), now: now}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyConnection: x.trusts} //nolint:gosec // trusts verifies
	t.MaxConnsPerHost, t.MaxResponseHeaderBytes = 2, 16<<10
	x.client = &http.Client{Transport: x.bounded(t), Timeout: fetchTime, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("redirects are not followed")
	}}
	return x
}

// trusts verifies a certificate by the roots of the system, or else by one of its chain
// whose fingerprint the provider has.
func (x *issuer) trusts(s tls.ConnectionState) error {
	chain := x509.VerifyOptions{DNSName: s.ServerName, Intermediates: x509.NewCertPool(), CurrentTime: x.now()}
	for _, c := range s.PeerCertificates[1:] {
		chain.Intermediates.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(chain)
	if err == nil {
		return nil
	}
	chain.Roots = x509.NewCertPool()
	for _, c := range s.PeerCertificates {
		sum := sha1.Sum(c.Raw)
		if slices.Contains(x.thumbprints, hex.EncodeToString(sum[:])) {
			chain.Roots.AddCert(c)
		}
	}
	if _, byPrint := s.PeerCertificates[0].Verify(chain); byPrint == nil {
		return nil
	}
	return err
}

// roundTrip is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// bounded asks at most so often, by https, and reads no more than maxDocument.
func (x *issuer) bounded(t http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Scheme != "https" {
			return nil, fmt.Errorf("%w: %s is not https", ErrUnreachable, r.URL)
		}
		if !x.mayFetch() {
			return nil, fmt.Errorf("%w: it was asked %d times in %s", ErrUnreachable, fetches, fetchWindow)
		}
		a, err := t.RoundTrip(r)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		a.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(a.Body, maxDocument), a.Body}
		return a, nil
	})
}

func (x *issuer) mayFetch() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if now := x.now(); now.Sub(x.window) >= fetchWindow {
		x.window, x.count = now, 0
	}
	x.count++
	return x.count <= fetches
}

// verifier returns what verifies tokens of the issuer.
func (x *issuer) verifier(ctx context.Context, now func() time.Time) (*oidc.IDTokenVerifier, error) {
	x.mu.Lock()
	p := x.current
	if x.now().Sub(x.fetched) >= maxAge {
		p = nil
	}
	x.mu.Unlock()
	if p == nil {
		// The client goes with the provider, and asks for keys later.
		var err error
		if p, err = oidc.NewProvider(oidc.ClientContext(ctx, x.client), x.name); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		x.mu.Lock()
		x.current, x.fetched = p, x.now()
		x.mu.Unlock()
	}
	return p.Verifier(&oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: algorithms, Now: now}), nil
}

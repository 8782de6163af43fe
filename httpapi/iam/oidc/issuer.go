package oidc

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/sync/singleflight"

	"ogw/vfs/iam"
)

const (
	// fetchTime bounds one document that is fetched: who waits is a request.
	fetchTime = 5 * time.Second
	// maxDocument bounds a discovery document or a set of keys; the largest known
	// has 20 KiB.
	maxDocument = 256 << 10
	// fetchPause is between two fetches of a document: a token may name a key that is
	// not there, as often as somebody likes to send one. Who comes meanwhile waits
	// for the next fetch, which all share, so that a key is known that soon after its
	// provider began to use it, whoever else asks for what.
	fetchPause = 2 * time.Second
)

// issuer is one provider as its documents say.
type issuer struct {
	name        string
	created     int64
	thumbprints []string
	now         func() time.Time
	pause       time.Duration
	client      *http.Client
	discovery   singleflight.Group // one fetch of the discovery document at a time

	mu      sync.Mutex // a leaf
	current oidc.KeySet
	fetched time.Time // current
	// next is when the discovery document, and the keys, may be fetched again.
	next [2]time.Time
}

func newIssuer(name string, p *iam.Provider, now func() time.Time, pause time.Duration) *issuer {
	x := &issuer{name: name, created: p.Created, thumbprints: slices.Clone(p.Thumbprints), now: now, pause: pause}
	x.client = &http.Client{Transport: x.bounded(), Timeout: fetchTime}
	return x
}

// transport is for one request to a host. A connection lasts no longer: documents are
// seldom fetched, and what verifies its certificate knows that host.
func (x *issuer) transport(host string) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, //nolint:gosec // trusts verifies
		VerifyConnection: func(s tls.ConnectionState) error { return x.trusts(s, host) }}
	t.DisableKeepAlives, t.MaxResponseHeaderBytes = true, 16<<10
	return t
}

// trusts verifies a certificate for a host by the roots of the system, or else by one of
// its chain whose fingerprint the provider has.
func (x *issuer) trusts(s tls.ConnectionState, host string) error {
	// TLS has no server name for an address, and another than the host for a proxy.
	name := cmp.Or(s.ServerName, host)
	if name == "" { // x509 would take any
		return errors.New("the URL names no host")
	}
	chain := x509.VerifyOptions{DNSName: name, Intermediates: x509.NewCertPool(), CurrentTime: x.now()}
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

// bounded asks by https, with a pause before it asks again, and answers with a whole
// document or ErrUnreachable.
func (x *issuer) bounded() http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Scheme != "https" {
			return nil, fmt.Errorf("%w: %s is not https", ErrUnreachable, r.URL)
		}
		if err := x.turn(r); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		a, err := x.transport(r.URL.Hostname()).RoundTrip(r)
		if err == nil {
			err = whole(a)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		return a, nil
	})
}

// whole reads the document that is answered with. What is none, a redirect among that,
// is the provider's fault and not that of a token, as which go-oidc would report it.
func whole(a *http.Response) error {
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", a.Status)
	}
	b, err := io.ReadAll(io.LimitReader(a.Body, maxDocument+1))
	if err != nil {
		return err
	}
	if len(b) > maxDocument {
		return fmt.Errorf("it answers with more than %d bytes", maxDocument)
	}
	var object struct{}
	if err := json.Unmarshal(b, &object); err != nil {
		return fmt.Errorf("it answers with no JSON object: %w", err)
	}
	a.Body = io.NopCloser(bytes.NewReader(b))
	return nil
}

// turn waits until the document that r asks for may be fetched. Few wait: fetches of
// the discovery document, and of one set of keys, are shared.
func (x *issuer) turn(r *http.Request) error {
	document := 0
	if strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration") {
		document = 1
	}
	x.mu.Lock()
	now := time.Now()
	at := x.next[document]
	if at.Before(now) {
		at = now
	}
	x.next[document] = at.Add(x.pause)
	x.mu.Unlock()
	t := time.NewTimer(at.Sub(now))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

// keySet is that of an issuer, for one token: it keeps its error, of which go-oidc
// reports the text alone.
type keySet struct {
	oidc.KeySet
	err error
}

// VerifySignature implements oidc.KeySet.
func (k *keySet) VerifySignature(ctx context.Context, token string) (payload []byte, err error) {
	payload, k.err = k.KeySet.VerifySignature(ctx, token)
	return payload, k.err
}

// verify returns what a token says if the issuer signed it and its time is right.
func (x *issuer) verify(ctx context.Context, token string) (*oidc.IDToken, error) {
	shared, err := x.keys(ctx)
	if err != nil {
		return nil, err
	}
	keys := &keySet{KeySet: shared}
	id, err := oidc.NewVerifier(x.name, keys, &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: algorithms, Now: x.now}).Verify(ctx, token)
	if keys.err != nil {
		err = keys.err
	}
	if err != nil {
		return nil, refusal(err)
	}
	return id, nil
}

// keys returns the issuer's as its discovery document names them, which all who wait for
// it share.
func (x *issuer) keys(ctx context.Context) (oidc.KeySet, error) {
	x.mu.Lock()
	keys := x.current
	if x.now().Sub(x.fetched) >= maxAge {
		keys = nil
	}
	x.mu.Unlock()
	if keys != nil {
		return keys, nil
	}
	got := x.discovery.DoChan("", func() (any, error) { return x.discover(context.WithoutCancel(ctx)) })
	var mismatch *oidc.IssuerMismatchError
	select {
	case r := <-got:
		if errors.As(r.Err, &mismatch) {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, r.Err)
		}
		if r.Err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, r.Err)
		}
		return r.Val.(oidc.KeySet), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, ctx.Err())
	}
}

// discover fetches the discovery document. The client goes with the keys, and asks for
// them later.
func (x *issuer) discover(ctx context.Context) (oidc.KeySet, error) {
	ctx = oidc.ClientContext(ctx, x.client)
	p, err := oidc.NewProvider(ctx, x.name)
	if err != nil {
		return nil, err
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&document); err != nil {
		return nil, err
	}
	keys := oidc.NewRemoteKeySet(ctx, document.Keys)
	x.mu.Lock()
	x.current, x.fetched = keys, x.now()
	x.mu.Unlock()
	return keys, nil
}

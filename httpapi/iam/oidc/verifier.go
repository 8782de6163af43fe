package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"ogw/vfs"
	"ogw/vfs/iam"
)

const (
	// MaxToken bounds a token (STS).
	MaxToken = 20000
	// maxAge is how long the keys of an issuer are taken without asking again: one
	// that was withdrawn is refused after that.
	maxAge = 15 * time.Minute
	// maxClaim bounds a claim that policies go by.
	maxClaim = 255
)

// Errors of Verify.
var (
	ErrInvalid     = errors.New("the web identity token is not valid")
	ErrExpired     = errors.New("the web identity token has expired")
	ErrUnreachable = errors.New("the identity provider could not be asked")
	ErrRejected    = errors.New("the identity provider does not vouch for this audience")
)

// algorithms are those of signatures: neither "none" nor such as need a shared secret.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// Claims are what a token says that was found right.
type Claims struct {
	Provider string // URL without "https://"
	Subject  string
	Audience string
}

// Providers returns the provider of an issuer; vfs.ErrNotExist.
type Providers func(ctx context.Context, issuer string) (iam.Provider, error)

// Verifier verifies tokens. It is safe for concurrent use.
type Verifier struct {
	now     func() time.Time
	pause   time.Duration // between fetches of one document
	mu      sync.Mutex
	issuers map[string]*issuer // by the issuer as tokens write it
}

// New returns a Verifier that goes by a clock.
func New(now func() time.Time) *Verifier {
	return &Verifier{now: now, pause: fetchPause, issuers: map[string]*issuer{}}
}

// Verify returns what a token of a provider says.
func (v *Verifier) Verify(ctx context.Context, token string, providers Providers) (Claims, error) {
	name, err := issuerOf(token)
	if err != nil {
		return Claims{}, err
	}
	p, err := providers(ctx, name)
	if errors.Is(err, vfs.ErrNotExist) || errors.Is(err, vfs.ErrInvalid) {
		return Claims{}, fmt.Errorf("%w: no provider of the store is its issuer", ErrInvalid)
	}
	if err != nil {
		return Claims{}, err
	}
	id, err := v.issuer(name, &p).verify(ctx, token)
	if err != nil {
		return Claims{}, err
	}
	return claimsOf(id, &p)
}

// refusal puts an error of the library in terms of this package.
func refusal(err error) error {
	var expired *oidc.TokenExpiredError
	switch {
	case errors.As(err, &expired) && expired.Expiry.IsZero():
		return fmt.Errorf("%w: it has no claim exp", ErrInvalid)
	case errors.As(err, &expired):
		return fmt.Errorf("%w at %s", ErrExpired, expired.Expiry.UTC().Format(time.RFC3339))
	case errors.Is(err, ErrUnreachable):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}

// claimsOf takes a token that was found right for an audience of the provider. An
// authorized party stands for the audience, as at AWS.
func claimsOf(id *oidc.IDToken, p *iam.Provider) (Claims, error) {
	var more struct {
		Party string `json:"azp"`
	}
	if err := id.Claims(&more); err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	audiences := id.Audience
	if more.Party != "" {
		audiences = []string{more.Party}
	}
	i := slices.IndexFunc(audiences, func(a string) bool { return slices.Contains(p.Audiences, a) })
	if i < 0 {
		return Claims{}, ErrRejected
	}
	if id.Subject == "" || len(id.Subject) > maxClaim {
		return Claims{}, fmt.Errorf("%w: its subject has %d bytes, 1 to %d are allowed", ErrInvalid, len(id.Subject), maxClaim)
	}
	return Claims{Provider: p.URL, Subject: id.Subject, Audience: audiences[i]}, nil
}

// issuerOf returns the issuer that a token names, which nobody vouches for yet.
func issuerOf(token string) (string, error) {
	if len(token) > MaxToken {
		return "", fmt.Errorf("%w: it has more than %d bytes", ErrInvalid, MaxToken)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("%w: it is no JSON web token", ErrInvalid)
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", fmt.Errorf("%w: it is no JSON web token", ErrInvalid)
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil || claims.Issuer == "" {
		return "", fmt.Errorf("%w: it names no issuer", ErrInvalid)
	}
	return claims.Issuer, nil
}

// issuer returns the cached issuer of a name, which a provider of the store has: there
// are at most two names of each, with and without a slash at the end.
func (v *Verifier) issuer(name string, p *iam.Provider) *issuer {
	v.mu.Lock()
	defer v.mu.Unlock()
	x := v.issuers[name]
	if x == nil || x.created != p.Created || !slices.Equal(x.thumbprints, p.Thumbprints) {
		x = newIssuer(name, p, v.now, v.pause)
		v.issuers[name] = x
	}
	return x
}

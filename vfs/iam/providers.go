package iam

import (
	"context"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// Provider is who signs web identities (OpenID Connect).
type Provider = record.Provider

// Bounds of providers (IAM).
const (
	maxProviderURL = 255
	maxAudiences   = 100
	maxAudience    = 255
	maxThumbprints = 5
	sha1Digits     = 40
	// maxProviders bounds those of a store.
	maxProviders = 100
)

// providerURL returns the URL of an issuer without "https://", which it must have. But
// for a slash at its end, no other text is the same URL: tokens bring theirs, and each
// is asked for its documents.
func providerURL(text string) (string, error) {
	invalid := fault(ValidationError, "Invalid Open ID Connect Provider URL")
	given, ok := strings.CutPrefix(text, "https://")
	if !ok || len(text) > maxProviderURL || strings.ContainsAny(text, "*?# ") {
		return "", invalid
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return "", invalid
	}
	name := u.Host + strings.TrimSuffix(u.EscapedPath(), "/")
	if name != strings.TrimSuffix(given, "/") {
		return "", invalid // something is escaped that need not be, or is not
	}
	return name, nil
}

// ProviderOfARN returns the URL of the provider of an ARN.
func ProviderOfARN(arn string) (string, error) {
	u, ok := strings.CutPrefix(arn, providerARN)
	if !ok {
		return "", fault(ValidationError, "Invalid ARN for Open ID Connect Provider")
	}
	return u, nil
}

func validProvider(p *Provider) error {
	if len(p.Audiences) > maxAudiences || slices.ContainsFunc(p.Audiences, func(s string) bool { return s == "" || len(s) > maxAudience }) {
		return fault(LimitExceeded, "Cannot exceed quota for ClientIdsPerOpenIdConnectProvider: %d", maxAudiences)
	}
	if len(p.Thumbprints) > maxThumbprints {
		return fault(LimitExceeded, "Thumbprint list must contain fewer than %d entries.", maxThumbprints)
	}
	for i, t := range p.Thumbprints {
		if _, err := hex.DecodeString(t); err != nil || len(t) != sha1Digits {
			return fault(ValidationError, "Invalid thumbprint: %d hexadecimal digits are needed", sha1Digits)
		}
		p.Thumbprints[i] = strings.ToLower(t)
	}
	return nil
}

func noProvider(u string) error {
	return fault(NoSuchEntity, "OpenIDConnect Provider not found for arn %s", ProviderARN(u))
}

// CreateProvider has web identities of an issuer, such as
// "https://id.example.com/realm", accepted for some audiences (IAM
// CreateOpenIDConnectProvider).
func (d *Directory) CreateProvider(ctx context.Context, issuer string, audiences, thumbprints []string) (p Provider, err error) {
	p = Provider{Audiences: audiences, Thumbprints: thumbprints}
	if p.URL, err = providerURL(issuer); err == nil {
		err = validProvider(&p)
	}
	if err != nil {
		return p, err
	}
	err = d.update(ctx, about("iam:CreateOpenIDConnectProvider", ProviderARN(p.URL)), func(t cluster.Txn, nowNS int64) error {
		had, err := t.Get(record.ProviderKey(p.URL))
		if err != nil {
			return err
		}
		if had != nil {
			return fault(EntityAlreadyExists, "Provider with url %s already exists.", issuer)
		}
		list, err := providers(t)
		if err != nil {
			return err
		}
		if len(list) >= maxProviders {
			return fault(LimitExceeded, "Cannot exceed quota for OpenIdConnectProvidersPerAccount: %d", maxProviders)
		}
		p.Created = nowNS
		return t.Set(record.ProviderKey(p.URL), p.Encode())
	})
	return p, err
}

func providers(r cluster.Reader) (list []Provider, err error) {
	from, to := record.Table(record.TabProvider)
	err = r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
		p, err := record.DecodeProvider(string(k[1:]), v)
		list = append(list, p)
		return err
	})
	return list, err
}

// ProviderOf returns the provider of an issuer for the door that verifies its tokens,
// regardless of the caller; ErrNotExist.
func (d *Directory) ProviderOf(ctx context.Context, issuer string) (p Provider, err error) {
	u, err := providerURL(issuer)
	if err != nil {
		return p, err
	}
	err = d.store.View(ctx, func(r cluster.Reader) (err error) {
		p, err = getProvider(r, u)
		return err
	})
	return p, err
}

func getProvider(r cluster.Reader, u string) (Provider, error) {
	v, err := r.Get(record.ProviderKey(u))
	if err == nil && v == nil {
		err = noProvider(u)
	}
	if err != nil {
		return Provider{}, err
	}
	return record.DecodeProvider(u, v)
}

// Provider returns a provider (IAM GetOpenIDConnectProvider).
func (d *Directory) Provider(ctx context.Context, u string) (p Provider, err error) {
	err = d.view(ctx, about("iam:GetOpenIDConnectProvider", ProviderARN(u)), func(r cluster.Reader) (err error) {
		p, err = getProvider(r, u)
		return err
	})
	return p, err
}

// Providers returns all in order of their URLs (IAM ListOpenIDConnectProviders).
func (d *Directory) Providers(ctx context.Context) (list []Provider, err error) {
	err = d.view(ctx, about("iam:ListOpenIDConnectProviders", ProviderARN("*")), func(r cluster.Reader) (err error) {
		list, err = providers(r)
		return err
	})
	return list, err
}

// ChangeProvider changes audiences or thumbprints (IAM
// AddClientIDToOpenIDConnectProvider and the like).
func (d *Directory) ChangeProvider(ctx context.Context, action, u string, change func(*Provider)) error {
	return d.update(ctx, about("iam:"+action, ProviderARN(u)), func(t cluster.Txn, _ int64) error {
		p, err := getProvider(t, u)
		if err != nil {
			return err
		}
		change(&p)
		if err := validProvider(&p); err != nil {
			return err
		}
		return t.Set(record.ProviderKey(u), p.Encode())
	})
}

// DeleteProvider removes a provider, with which the sessions end that it vouched for
// (IAM DeleteOpenIDConnectProvider).
func (d *Directory) DeleteProvider(ctx context.Context, u string) error {
	return d.update(ctx, about("iam:DeleteOpenIDConnectProvider", ProviderARN(u)), func(t cluster.Txn, _ int64) error {
		if _, err := getProvider(t, u); err != nil {
			return err
		}
		return t.Delete(record.ProviderKey(u))
	})
}

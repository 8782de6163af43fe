package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"ogw/vfs/iam"
)

// issueCert returns a certificate for names and addresses, and the fingerprint of the
// authority that signed it, which is in the chain.
func issueCert(t *testing.T, names []string, ips ...net.IP) (chain tls.Certificate, thumbprint string) {
	t.Helper()
	sign := func(c, parent *x509.Certificate, key *ecdsa.PrivateKey, by *ecdsa.PrivateKey) []byte {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	var keys [2]*ecdsa.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: names, IPAddresses: ips, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	caDER := sign(ca, ca, keys[0], keys[0])
	sum := sha1.Sum(caDER)
	return tls.Certificate{Certificate: [][]byte{sign(leaf, ca, keys[1], keys[0]), caDER}, PrivateKey: keys[1]}, hex.EncodeToString(sum[:])
}

// TestCertificateOfAnotherHost: an authority vouches for the hosts that it names, also
// where the issuer's URL has an address, for which TLS sends no name.
func TestCertificateOfAnotherHost(t *testing.T) {
	local := net.IPv4(127, 0, 0, 1)
	for _, c := range []struct {
		what  string
		names []string
		ips   []net.IP
		trust bool
	}{
		{"its address", nil, []net.IP{local}, true},
		{"another name", []string{"other.example"}, nil, false},
		{"another address", nil, []net.IP{net.IPv4(127, 0, 0, 2)}, false},
		{"its address as a name", []string{"127.0.0.1"}, nil, false},
	} {
		p := &idp{}
		chain, thumbprint := issueCert(t, c.names, c.ips...)
		p.Server = httptest.NewUnstartedServer(p)
		p.TLS = &tls.Config{Certificates: []tls.Certificate{chain}}
		p.StartTLS()
		key := p.rotate(t, "k")
		provider := iam.Provider{URL: strings.TrimPrefix(p.URL, "https://"), Audiences: []string{"ogw"}, Thumbprints: []string{thumbprint}}
		token := oidctest.SignIDToken(key, "k", "ES256", fmt.Sprintf(`{"iss":%q,"aud":"ogw","sub":"s","exp":%d}`, p.URL, time.Now().Add(time.Hour).Unix()))
		_, err := New(time.Now).Verify(t.Context(), token, func(context.Context, string) (iam.Provider, error) { return provider, nil })
		if c.trust && err != nil || !c.trust && !errors.Is(err, ErrUnreachable) {
			t.Errorf("a certificate for %s: %v", c.what, err)
		}
		p.Close()
	}
}

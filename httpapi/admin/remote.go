package admin

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// pinPrefix begins a pin, as in curl's --pinnedpubkey and in RFC 7469.
const pinPrefix = "sha256//"

// Errors of Remote.
var (
	// ErrInClear means that a token would cross a network unprotected.
	ErrInClear = errors.New("the token would cross the network in clear")
	errPin     = errors.New("the server's public key is not the pinned one")
)

// RemoteConfig is whom a client of another machine trusts.
type RemoteConfig struct {
	Token string
	// CA is a file with certificates of authorities; "" for the system's.
	CA string
	// Pin is the public key of the server; it stands instead of authorities,
	// names and times.
	Pin string
	// InClear sends the token over http, too, and not to this machine alone.
	InClear bool
}

// Remote returns a client of a Server on TCP; base is its URL.
func Remote(base string, c RemoteConfig) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" && !c.InClear && !isLoopback(u.Hostname()) {
		return nil, fmt.Errorf("%w: use https://%s, or set admin.insecure", ErrInClear, u.Host)
	}
	trust, err := c.tls()
	if err != nil {
		return nil, err
	}
	return &Client{base: base, token: c.Token, http: &http.Client{
		Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true},
		// The API redirects nowhere; who answers so is not it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// tls returns how the server is recognised.
func (c RemoteConfig) tls() (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		text, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, err
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate", c.CA)
		}
	}
	if c.Pin == "" {
		return out, nil
	}
	want, err := ParsePin(c.Pin)
	if err != nil {
		return nil, err
	}
	// The key alone counts: VerifyConnection is called for resumed sessions, too.
	out.InsecureSkipVerify = true
	out.VerifyConnection = func(s tls.ConnectionState) error {
		got := sha256.Sum256(s.PeerCertificates[0].RawSubjectPublicKeyInfo)
		if !bytes.Equal(got[:], want) {
			return fmt.Errorf("%w: it is %s", errPin, pinPrefix+base64.StdEncoding.EncodeToString(got[:]))
		}
		return nil
	}
	return out, nil
}

// ParsePin reads sha256//BASE64, the digest of a SubjectPublicKeyInfo.
func ParsePin(s string) ([]byte, error) {
	text, ok := strings.CutPrefix(s, pinPrefix)
	sum, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("%q is not %s and the base64 of 32 bytes", s, pinPrefix)
	}
	return sum, nil
}

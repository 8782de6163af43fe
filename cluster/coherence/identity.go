package coherence

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"ogw/cluster"
)

// identity is a key that a client has for as long as it runs. The others know it by the
// store, and go by nothing else: its certificate says nothing.
type identity struct {
	key  ed25519.PublicKey
	cert tls.Certificate
}

func newIdentity() (*identity, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	from := time.Unix(0, 0) // clocks are not relied on
	text := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: from.AddDate(200, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, &text, &text, public, private)
	if err != nil {
		return nil, err
	}
	return &identity{key: public, cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}}, nil
}

var errStranger = errors.New("it is not the gateway that the store names")

// config is for a connection to whom known accepts by its key.
func (i *identity) config(known func(key []byte) error) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{i.cert},
		ClientAuth:   tls.RequireAnyClientCert,
		// The chain says nothing: VerifyConnection compares the key, which the handshake
		// proves that the other one has.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errStranger
			}
			key, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			if !ok {
				return errStranger
			}
			return known(key)
		},
		SessionTicketsDisabled: true, // a resumed session proves no key
	}
}

// dial connects to p.
func (i *identity) dial(ctx context.Context, p cluster.Peer) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	d := tls.Dialer{Config: i.config(func(key []byte) error {
		if !bytes.Equal(key, p.Key) {
			return errStranger
		}
		return nil
	})}
	conn, err := d.DialContext(ctx, "tcp", p.Address)
	if err != nil {
		return nil, fmt.Errorf("gateway at %s: %w", p.Address, err)
	}
	return conn, nil
}

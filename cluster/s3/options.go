package s3

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/occ"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// DefaultPrefix begins the keys of a store that has the bucket to itself.
	DefaultPrefix = "ogw/"
	// MaxPrefixBytes leaves room for the names of blobs within the 1,024 bytes
	// that S3 gives to a key.
	MaxPrefixBytes = 512

	// stallTimeout is the silence after which a connection is given up.
	stallTimeout = 20 * time.Second
	// dialTimeout is for a connection, without TLS.
	dialTimeout = 5 * time.Second
	// maxConns is far above what the uploads and reads of one process use at a
	// time at full speed; the rest wait.
	maxConns = 256
	// idleTimeout ends before stallTimeout, which an idle connection would meet.
	idleTimeout = stallTimeout / 2
)

// Options of a client of one store.
type Options struct {
	// Endpoint is a URL without path, such as https://s3.example.com.
	Endpoint string
	// Bucket exists already and keeps no versions.
	Bucket string
	// Prefix begins all keys of the store; DefaultPrefix if empty.
	Prefix string
	// Region that requests are signed for; asked for if empty.
	Region string
	// AccessKey and SecretKey; without, what the AWS tools would take: the
	// environment, the shared file, the role of the machine.
	AccessKey, SecretKey string
	// TLS returns how an endpoint of https is spoken to over a connection that begins
	// now (through a proxy, over all); nil trusts the system's authorities.
	TLS func() *tls.Config
}

func (o *Options) check() (*url.URL, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return nil, fmt.Errorf("%w: the S3 endpoint %q is not a URL such as https://s3.example.com", cluster.ErrInvalid, o.Endpoint)
	}
	if o.Bucket == "" {
		return nil, fmt.Errorf("%w: no bucket of the S3 endpoint", cluster.ErrInvalid)
	}
	if (o.AccessKey == "") != (o.SecretKey == "") {
		return nil, fmt.Errorf("%w: of access key and secret key of the S3 endpoint, one is missing", cluster.ErrInvalid)
	}
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if len(o.Prefix) > MaxPrefixBytes {
		return nil, fmt.Errorf("%w: prefix of %d bytes in the S3 bucket, at most %d are allowed", cluster.ErrInvalid, len(o.Prefix), MaxPrefixBytes)
	}
	return u, nil
}

// Open returns the blobs of a store. It returns ErrUnfit if the endpoint or the
// bucket cannot hold one, and ErrUnavailable if the endpoint does not answer,
// the bucket is missing, or the credentials are refused.
func Open(ctx context.Context, o Options) (*Blobs, error) {
	u, err := o.check()
	if err != nil {
		return nil, err
	}
	transport := newTransport(o.TLS)
	client, err := minio.New(u.Host, &minio.Options{
		Secure: u.Scheme == "https", Transport: transport, MaxRetries: maxTries, Region: o.Region, Creds: o.credentials(transport),
	})
	if err != nil {
		return nil, fmt.Errorf("%w: S3 endpoint %s: %w", cluster.ErrInvalid, o.Endpoint, err)
	}
	b := &Blobs{
		client: &minio.Core{Client: client}, transport: transport, gate: occ.NewGate(),
		endpoint: u, bucket: o.Bucket, prefix: o.Prefix,
	}
	if err := b.probe(ctx); err != nil {
		transport.CloseIdleConnections()
		return nil, fmt.Errorf("bucket %s at %s: %w", o.Bucket, u, err)
	}
	b.tries.patient = true
	return b, nil
}

func (o *Options) credentials(transport *http.Transport) *credentials.Credentials {
	if o.AccessKey != "" {
		return credentials.NewStaticV4(o.AccessKey, o.SecretKey, "")
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
		&credentials.IAM{Client: &http.Client{Transport: transport, Timeout: dialTimeout}},
	})
}

// greet makes a connection to an address one of TLS.
func greet(ctx context.Context, conn net.Conn, addr string, config *tls.Config) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err == nil {
		config.ServerName = host
		secure := tls.Client(conn, config)
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		if err = secure.HandshakeContext(ctx); err == nil {
			return secure, nil
		}
	}
	_ = conn.Close()
	return nil, err
}

func newTransport(config func() *tls.Config) *http.Transport {
	if config == nil {
		config = func() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12} }
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return stallConn{conn, stallTimeout}, nil
	}
	return &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: dial,
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return greet(ctx, conn, addr, config())
		},
		TLSClientConfig:     config(), // through a proxy
		TLSHandshakeTimeout: dialTimeout,
		MaxConnsPerHost:     maxConns,
		MaxIdleConnsPerHost: maxConns,
		IdleConnTimeout:     idleTimeout,
		DisableCompression:  true,
	}
}

// stallConn fails when no byte moves for limit.
type stallConn struct {
	net.Conn
	limit time.Duration
}

func (c stallConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write moves the deadline of a Read that waits, too: HTTP waits for the answer from the
// beginning of a connection on, and none comes before an upload is whole.
func (c stallConn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if n > 0 {
		// What fails here, fails the Read.
		_ = c.SetReadDeadline(time.Now().Add(c.limit))
	}
	return n, err
}

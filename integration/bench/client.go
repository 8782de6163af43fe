package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// client drives HTTP with as little work of its own as it can: the two cores
// are shared with the server that is measured.
type client struct {
	http   *http.Client
	signer *v4.Signer
	creds  aws.Credentials
	bufs   sync.Pool
}

func newClient() *client {
	return &client{
		http: &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: 256, DisableCompression: true,
			ReadBufferSize: 256 << 10, WriteBufferSize: 256 << 10,
		}},
		signer: v4.NewSigner(),
		bufs:   sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }},
	}
}

// sign signs r for S3 with an unsigned payload, as SDKs do over HTTPS.
func (c *client) sign(r *http.Request) error {
	const unsigned = "UNSIGNED-PAYLOAD"
	r.Header.Set("X-Amz-Content-Sha256", unsigned)
	return c.signer.SignHTTP(r.Context(), c.creds, r, unsigned, "s3", "us-east-1", time.Now(),
		func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
}

func (c *client) do(r *http.Request, sign bool) (int, error) {
	if sign {
		if err := c.sign(r); err != nil {
			return 0, err
		}
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		return 0, fmt.Errorf("%s %s: %s: %s", r.Method, r.URL.Path, resp.Status, b)
	}
	buf := c.bufs.Get().(*[]byte)
	defer c.bufs.Put(buf)
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{resp.Body}, *buf)
	return int(n), err
}

func (c *client) get(ctx context.Context, url string, sign *bool) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	return c.do(r, sign != nil && *sign)
}

func (c *client) send(ctx context.Context, method, url string, body []byte) (int, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if _, err := c.do(r, true); err != nil {
		return 0, err
	}
	return len(body), nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// client is a plain HTTP client for what cannot be prepared ahead: pages of a
// listing, and setting up.
type client struct {
	http   *http.Client
	signer *v4.Signer
	creds  aws.Credentials
}

func newClient() *client {
	return &client{
		http: &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: 64, DisableCompression: true, ReadBufferSize: rawBufferBytes,
		}},
		signer: v4.NewSigner(),
	}
}

// do signs a request, payload aside, and appends the answer's body to into.
func (c *client) do(r *http.Request, into []byte) ([]byte, error) {
	r.Header.Set("X-Amz-Content-Sha256", unsignedPayload)
	err := c.signer.SignHTTP(r.Context(), c.creds, r, unsignedPayload, "s3", "us-east-1", time.Now(),
		func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b := bytes.NewBuffer(into)
	if _, err := io.Copy(b, resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %.1000s", r.Method, r.URL.Path, resp.Status, b.Bytes())
	}
	return b.Bytes(), nil
}

func (c *client) send(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return c.do(r, nil)
}

// createBucket makes a bucket; acl is a canned one, or "".
func (c *client) createBucket(ctx context.Context, url string) error {
	return c.putEmpty(ctx, url, "")
}

// putACL gives an object a canned ACL.
func (c *client) putACL(ctx context.Context, url, acl string) error {
	return c.putEmpty(ctx, url+"?acl=", acl)
}

func (c *client) putEmpty(ctx context.Context, url, acl string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, nil)
	if err != nil {
		return err
	}
	if acl != "" {
		r.Header.Set("X-Amz-Acl", acl)
	}
	_, err = c.do(r, nil)
	return err
}

var errCutShort = errors.New("an XML element without an end")

// element returns the text of the first element of that name in doc, and
// what follows it. The names and texts that the benchmark asks for need no
// unescaping.
func element(doc []byte, name string) (text, rest []byte, err error) {
	_, after, ok := bytes.Cut(doc, []byte("<"+name+">"))
	if !ok {
		return nil, nil, nil
	}
	text, rest, ok = bytes.Cut(after, []byte("</"+name+">"))
	if !ok {
		return nil, nil, errCutShort
	}
	return text, rest, nil
}

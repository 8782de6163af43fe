package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const unsignedPayload = "UNSIGNED-PAYLOAD"

// signed makes requests as they go over the wire, their signatures computed
// ahead. They hold for 15 minutes.
type signed struct {
	addr  string
	creds aws.Credentials
	hash  bool // sign the body's SHA-256 instead of leaving it unsigned
}

func (s signed) request(method, path string, body []byte, want int64) (rawRequest, error) {
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+s.addr+path, nil)
	if err != nil {
		return rawRequest{}, err
	}
	payload := unsignedPayload
	if s.hash {
		sum := sha256.Sum256(body)
		payload = hex.EncodeToString(sum[:])
	}
	r.Header.Set("X-Amz-Content-Sha256", payload)
	err = v4.NewSigner().SignHTTP(r.Context(), s.creds, r, payload, "s3", "us-east-1", time.Now(),
		func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err != nil {
		return rawRequest{}, err
	}
	return rawRequest{head: wireHead(r, len(body)), body: body, isHead: method == http.MethodHead, want: want}, nil
}

// anonymous makes a request without a signature.
func anonymous(addr, method, path string, want int64) rawRequest {
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n\r\n", method, path, addr)
	return rawRequest{head: []byte(head), isHead: method == http.MethodHead, want: want}
}

func wireHead(r *http.Request, length int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.URL.RequestURI(), r.Host)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", length)
	}
	names := make([]string, 0, len(r.Header))
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\r\n", name, r.Header.Get(name))
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

package s3

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"hash"
	"strings"

	"ogw/httpapi/sigv4"
	"ogw/vfs"
)

// payload is the body of a request, decoded, with the checksum that the
// client stated or announced.
type payload struct {
	body    *sigv4.Body
	md5     []byte     // Content-MD5
	alg     *algorithm // nil: the client states no checksum
	sum     hash.Hash
	want    []byte // nil: it comes in the trailer
	size    int64
	trailed bool
}

// openPayload checks what the headers say of the body. Close must be called.
func (q *request) openPayload() (*payload, error) {
	h := q.r.Header
	p := &payload{}
	var err error
	if v, given := h["Content-Md5"]; given {
		v := strings.Join(v, ",")
		if p.md5, err = base64.StdEncoding.DecodeString(v); err != nil || len(p.md5) != md5.Size {
			return nil, newError(codeInvalidDigest).with("Content-MD5", v)
		}
	}
	if p.alg, p.want, err = headerChecksum(h); err != nil {
		return nil, err
	}
	trailed, err := trailerChecksum(h)
	if err != nil {
		return nil, err
	}
	if trailed != nil {
		if p.alg != nil {
			return nil, newError(codeInvalidRequest).withMessage("Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
		}
		p.alg, p.trailed = trailed, true
	}
	if v := h.Get("X-Amz-Sdk-Checksum-Algorithm"); v != "" {
		a, err := findAlgorithm(v)
		if err != nil {
			return nil, err
		}
		if p.alg == nil {
			return nil, newError(codeInvalidRequest).withMessage("x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.")
		}
		if a != p.alg {
			return nil, newError(codeInvalidRequest).withMessage("Value for x-amz-sdk-checksum-algorithm header is invalid.")
		}
	}
	if p.alg != nil {
		p.sum = p.alg.make()
	}
	if p.body, err = sigv4.NewBody(q.sig, q.r, q.r.Body); err != nil {
		return nil, err
	}
	p.size = p.body.Size
	if p.size < 0 {
		p.close()
		return nil, newError(codeMissingLength)
	}
	return p, nil
}

// Read implements io.Reader.
func (p *payload) Read(b []byte) (int, error) {
	n, err := p.body.Read(b)
	if p.sum != nil {
		p.sum.Write(b[:n])
	}
	return n, err
}

// finish is PutOptions.Finish: all of the body was read; now it must prove
// to be what was signed and stated.
func (p *payload) finish() ([]vfs.Checksum, error) {
	if err := p.body.Finish(); err != nil {
		return nil, err
	}
	if p.alg == nil {
		return nil, nil
	}
	want := p.want
	if p.trailed {
		var err error
		if want, err = p.alg.decode(p.body.Trailer().Get(p.alg.header)); err != nil {
			return nil, err
		}
	}
	got := p.sum.Sum(nil)
	if !bytes.Equal(got, want) {
		return nil, p.alg.mismatch()
	}
	return []vfs.Checksum{{Algorithm: p.alg.name, Value: got}}, nil
}

// algorithm is what PutOptions.Stated wants.
func (p *payload) algorithm() vfs.ChecksumAlgorithm {
	if p.alg == nil {
		return ""
	}
	return p.alg.name
}

func (p *payload) close() {
	if p.body != nil {
		p.body.Close()
	}
}

package sigv4

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// chunkBufferBytes is the buffer of a chunked body: it must hold one line of
// the encoding; data larger than it passes by without a copy.
const chunkBufferBytes = 8 << 10

var chunkBuffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, chunkBufferBytes) }}

// Body is the decoded payload of a request. Read returns io.EOF only when all
// of it was found right. Close must be called.
type Body struct {
	// Size is the decoded length in bytes, or -1 if the client did not say.
	Size int64

	src     io.Reader
	sum     hash.Hash // of a hashed payload
	want    [sha256.Size]byte
	chunks  *chunkReader
	err     error // sticky
	trailer http.Header
}

// NewBody returns the payload of r, read from src (r.Body, or a wrapper that
// watches it). s is nil for an anonymous request, and else verified.
func NewBody(s *Signature, r *http.Request, src io.Reader) (*Body, error) {
	var p Payload
	var err error
	if s != nil {
		p = s.Payload
	} else if p, err = ParsePayload(r.Header); err != nil {
		return nil, err
	}
	b := &Body{Size: r.ContentLength, src: src}
	switch p.Kind {
	case Unsigned:
		return b, nil
	case Hashed:
		b.sum, b.want = sha256.New(), p.sum
		return b, nil
	}
	if p.Kind != StreamUnsignedTrailer && (s == nil || s.signingKey == nil) {
		return nil, wrapf(ErrBadSHA256, "signed chunks need a signed request")
	}
	b.Size, err = strconv.ParseInt(r.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64)
	if err != nil || b.Size < 0 {
		return nil, ErrNoDecodedLength
	}
	br := chunkBuffers.Get().(*bufio.Reader)
	br.Reset(src)
	b.chunks = newChunkReader(br, s, p.Kind, b.Size, r.Header.Values("X-Amz-Trailer"))
	return b, nil
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.chunks != nil {
		n, err := b.chunks.Read(p)
		b.err = err
		if errors.Is(err, io.EOF) {
			b.trailer = b.chunks.trailer
		}
		return n, err
	}
	n, err := b.src.Read(p)
	if b.sum != nil {
		b.sum.Write(p[:n])
		if errors.Is(err, io.EOF) {
			err = b.checkSum()
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrIncompleteBody
	}
	b.err = err
	return n, err
}

// checkSum is io.EOF if all of the body has the hash that was stated.
func (b *Body) checkSum() error {
	got := b.sum.Sum(nil)
	if subtle.ConstantTimeCompare(got, b.want[:]) == 1 {
		return io.EOF
	}
	return detailed(ErrSHA256Mismatch, "The provided 'x-amz-content-sha256' header does not match what was computed.",
		"ClientComputedContentSHA256", hex.EncodeToString(b.want[:]), "S3ComputedContentSHA256", hex.EncodeToString(got))
}

// Finish checks that the end was reached and all was right; the caller has
// read Size bytes. It must be called before anything is published.
func (b *Body) Finish() error {
	var one [1]byte
	for b.err == nil {
		if n, _ := b.Read(one[:]); n > 0 {
			b.err = ErrIncompleteBody
		}
	}
	if !errors.Is(b.err, io.EOF) {
		return b.err
	}
	return nil
}

// Trailer returns the trailing headers; nil before Finish.
func (b *Body) Trailer() http.Header { return b.trailer }

// Close gives the buffer back. The source stays the caller's.
func (b *Body) Close() {
	if b.chunks == nil {
		return
	}
	if b.err == nil {
		b.err = io.ErrClosedPipe
	}
	br := b.chunks.br
	b.chunks.br = nil
	b.chunks = nil
	br.Reset(nil)
	chunkBuffers.Put(br)
}

package sigv4

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"strings"
)

const (
	// maxTrailerBytes bounds all trailing headers: a checksum and a
	// signature are under 300 bytes.
	maxTrailerBytes = 4 << 10
	// maxChunkDigits bounds the hexadecimal size of a chunk: 2^52 bytes are
	// beyond any object, and the number cannot overflow.
	maxChunkDigits = 13

	signatureExt     = "chunk-signature="
	trailerSignature = "x-amz-trailer-signature"
	// emptySHA256 is the SHA-256 of no bytes, part of every chunk's text.
	emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// chunkReader decodes aws-chunked bodies:
//
//	hex-size[;chunk-signature=64 hex]\r\n data \r\n ... 0[;chunk-signature=64 hex]\r\n
//	[name:value\r\n]... [x-amz-trailer-signature:64 hex\r\n] \r\n
//
// Each signature covers the one before. A chunk's bytes are handed on before
// its signature is checked, so that a chunk of any size needs no memory; the
// error comes in place of the following bytes or of io.EOF.
type chunkReader struct {
	br        *bufio.Reader
	kind      PayloadKind
	remaining int64 // decoded bytes that must still come
	chunk     int64 // bytes left of the current chunk
	inChunk   bool
	declared  []string // trailers announced in x-amz-trailer
	trailer   http.Header
	err       error

	// of signed chunks
	mac       hash.Hash // keyed with the signing key
	sum       hash.Hash // of the current chunk
	preface   []byte    // algorithm-independent part: timestamp and scope
	previous  [2 * sha256.Size]byte
	signature [2 * sha256.Size]byte // that the current chunk claims
	text      []byte                // reused
	digest    [sha256.Size]byte
}

func newChunkReader(br *bufio.Reader, s *Signature, kind PayloadKind, size int64, trailers []string) *chunkReader {
	c := &chunkReader{br: br, kind: kind, remaining: size}
	for _, line := range trailers {
		for _, name := range strings.Split(line, ",") {
			if name = strings.ToLower(strings.TrimSpace(name)); name != "" {
				c.declared = append(c.declared, name)
			}
		}
	}
	if c.signed() {
		c.mac = hmac.New(sha256.New, s.signingKey.key)
		c.sum = sha256.New()
		c.preface = []byte("\n" + s.timestamp + "\n" + s.scope + "\n")
		hex.Encode(c.previous[:], s.mac)
		c.text = make([]byte, 0, 512)
	}
	return c
}

func (c *chunkReader) signed() bool { return c.kind != StreamUnsignedTrailer }

// Read fills p from as many chunks as are at hand.
func (c *chunkReader) Read(p []byte) (int, error) {
	n := 0
	for c.err == nil && n < len(p) {
		if !c.inChunk {
			if n > 0 && c.br.Buffered() == 0 {
				return n, nil // do not wait for more
			}
			c.err = c.begin()
			continue
		}
		if c.chunk == 0 {
			c.err = c.end()
			continue
		}
		if n > 0 && c.br.Buffered() == 0 {
			return n, nil
		}
		part := p[n:]
		if int64(len(part)) > c.chunk {
			part = part[:c.chunk]
		}
		m, err := c.br.Read(part)
		if c.sum != nil {
			c.sum.Write(part[:m])
		}
		n += m
		c.chunk -= int64(m)
		c.remaining -= int64(m)
		if err != nil {
			c.err = endOfBody(err)
		}
	}
	if n > 0 && errors.Is(c.err, io.EOF) {
		return n, nil // the next call returns the error
	}
	return n, c.err
}

// begin reads the header of a chunk; of the last one, all that follows.
func (c *chunkReader) begin() error {
	line, err := c.line()
	if err != nil {
		return err
	}
	size, ext, _ := bytes.Cut(line, []byte{';'})
	n, ok := parseChunkSize(size)
	if !ok {
		return wrapf(ErrMalformedChunk, "chunk size %.20q", size)
	}
	if c.signed() {
		sig, ok := bytes.CutPrefix(ext, []byte(signatureExt))
		if !ok || len(sig) != len(c.signature) {
			return wrapf(ErrMalformedChunk, "no chunk signature")
		}
		copy(c.signature[:], sig)
		c.sum.Reset()
	}
	if n > c.remaining {
		return wrapf(ErrIncompleteBody, "more bytes than x-amz-decoded-content-length")
	}
	if n > 0 {
		c.chunk, c.inChunk = n, true
		return nil
	}
	if c.remaining > 0 {
		return wrapf(ErrIncompleteBody, "%d bytes fewer than x-amz-decoded-content-length", c.remaining)
	}
	if err := c.checkChunk(); err != nil {
		return err
	}
	return c.readTrailer()
}

// end reads the line break behind a chunk's data and checks its signature.
func (c *chunkReader) end() error {
	c.inChunk = false
	line, err := c.line()
	if err != nil {
		return err
	}
	if len(line) != 0 {
		return wrapf(ErrMalformedChunk, "no line break behind a chunk")
	}
	return c.checkChunk()
}

func (c *chunkReader) checkChunk() error {
	if !c.signed() {
		return nil
	}
	b := append(c.text[:0], "AWS4-HMAC-SHA256-PAYLOAD"...)
	b = append(b, c.preface...)
	b = append(b, c.previous[:]...)
	b = append(b, "\n"+emptySHA256+"\n"...)
	b = hex.AppendEncode(b, c.sum.Sum(c.digest[:0]))
	return c.compare(b)
}

// compare checks the claimed signature of text, which becomes the previous one.
func (c *chunkReader) compare(text []byte) error {
	c.text = text
	c.mac.Reset()
	c.mac.Write(text)
	hex.Encode(c.previous[:], c.mac.Sum(c.digest[:0]))
	if !hmac.Equal(c.previous[:], c.signature[:]) {
		return ErrMismatch
	}
	return nil
}

// readTrailer reads to the end of the body. Clients differ in the line breaks
// here, some leave out the last one, so blank lines are skipped.
func (c *chunkReader) readTrailer() error {
	c.trailer = http.Header{}
	var canonical []byte
	signature := ""
	for total := 0; ; {
		line, err := c.line()
		if errors.Is(err, ErrIncompleteBody) && len(line) == 0 {
			break
		}
		if err != nil {
			return err
		}
		if total += len(line) + 2; total > maxTrailerBytes {
			return wrapf(ErrMalformedTrailer, "more than %d bytes", maxTrailerBytes)
		}
		if len(line) == 0 {
			continue
		}
		name, value, ok := strings.Cut(string(line), ":")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		if !ok || signature != "" || c.kind == StreamSigned {
			return wrapf(ErrMalformedTrailer, "unexpected line %.60q", line)
		}
		if name == trailerSignature {
			signature = value
			continue
		}
		if c.trailer.Get(name) != "" {
			return wrapf(ErrMalformedTrailer, "%.60q given twice", name)
		}
		c.trailer.Set(name, value)
		canonical = append(canonical, name+":"+value+"\n"...)
	}
	return c.checkTrailer(canonical, signature)
}

// checkTrailer wants exactly the announced headers, signed if chunks are.
func (c *chunkReader) checkTrailer(canonical []byte, signature string) error {
	if len(c.trailer) != len(c.declared) {
		return wrapf(ErrMalformedTrailer, "%d headers, x-amz-trailer announces %d", len(c.trailer), len(c.declared))
	}
	for _, name := range c.declared {
		if c.trailer.Get(name) == "" {
			return wrapf(ErrMalformedTrailer, "%.60s was announced and did not come", name)
		}
	}
	if c.kind == StreamSignedTrailer {
		if len(signature) != len(c.signature) {
			return wrapf(ErrMalformedTrailer, "no trailer signature")
		}
		copy(c.signature[:], signature)
		sum := sha256.Sum256(canonical)
		b := append(c.text[:0], "AWS4-HMAC-SHA256-TRAILER"...)
		b = append(b, c.preface...)
		b = append(b, c.previous[:]...)
		b = append(b, '\n')
		if err := c.compare(hex.AppendEncode(b, sum[:])); err != nil {
			return err
		}
	} else if signature != "" {
		return wrapf(ErrMalformedTrailer, "a signature of an unsigned trailer")
	}
	return io.EOF
}

// line returns the next line without its break, valid until the next read.
// At the end of the body it returns what is left and ErrIncompleteBody.
func (c *chunkReader) line() ([]byte, error) {
	line, err := c.br.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, wrapf(ErrMalformedChunk, "line longer than %d bytes", chunkBufferBytes)
	}
	if err != nil {
		return bytes.TrimRight(line, "\r\n"), endOfBody(err)
	}
	line = line[:len(line)-1]
	return bytes.TrimSuffix(line, []byte{'\r'}), nil
}

func parseChunkSize(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > maxChunkDigits {
		return 0, false
	}
	var n int64
	for _, ch := range b {
		switch {
		case '0' <= ch && ch <= '9':
			n = n<<4 | int64(ch-'0')
		case 'a' <= ch && ch <= 'f':
			n = n<<4 | int64(ch-'a'+10)
		case 'A' <= ch && ch <= 'F':
			n = n<<4 | int64(ch-'A'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// endOfBody turns an early end into ErrIncompleteBody and keeps the rest.
func endOfBody(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrIncompleteBody
	}
	return err
}

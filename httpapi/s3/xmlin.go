package s3

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/xml"
	"errors"
	"hash"
	"io"
)

// Documents are decoded while they arrive, within bounds, and nothing of them
// is kept but what they say: a client can neither make this door hold what it
// will refuse, nor have it work on after the client left.

const (
	// maxXMLDepth bounds how deep elements nest; the deepest of S3's is an
	// ACL's grantee at 5.
	maxXMLDepth = 16
	// maxXMLTokenBytes bounds one text, tag or comment: a key of 1024 bytes
	// with each of them written as a reference of six characters, and space.
	maxXMLTokenBytes = 16 << 10
	// maxPartBytes bounds one part of a CompleteMultipartUpload on average: 780
	// bytes with all ten checksums and quotes written as references, and fourteen
	// line breaks indented by sixteen.
	maxPartBytes = 1 << 10
	// listedBytes and elementBytes are what one element may cost decoded, with its
	// part of a list that grows: a part of CompleteMultipartUpload has 168 bytes, a
	// text 16.
	listedBytes, elementBytes = 384, 96
	// freeXMLBytes of a document need no share of maxDocumentBytes, and more are
	// taken xmlStepBytes at a time: most documents take no lock for it.
	freeXMLBytes, xmlStepBytes = 16 << 10, 64 << 10
)

// xmlBounds are the limits of one kind of document.
type xmlBounds struct {
	bytes    int64
	elements int
	listed   int // depth of the elements that become a list
}

var (
	// deleteBounds: 1000 keys of 1024 bytes, escaped at up to six characters
	// each, with up to five elements in each object.
	deleteBounds = xmlBounds{8 << 20, 2 + 6*maxDeleteKeys, 2}
	// completeBounds: as many parts as there may be, each with its number, its
	// ETag and all checksums.
	completeBounds = xmlBounds{maxParts*maxPartBytes + maxConfigBytes, 2 + 13*maxParts, 2}
	// corsBounds: as many rules, with as many values, as the bytes hold.
	corsBounds = xmlBounds{maxConfigBytes, maxConfigBytes / 8, 2}
	// configBounds are those of every other body; the longest is an ACL of
	// 100 grants.
	configBounds = xmlBounds{maxConfigBytes, 1000, 3}
)

// xmlTokens feeds a decoder with the tokens of a document, within bounds.
type xmlTokens struct {
	src    *bufio.Reader
	raw    *xml.Decoder
	bounds xmlBounds // elements: still allowed
	depth  int
	token  int // bytes read since the last token
	// What has been decoded may cost, how much of it was taken, and what takes
	// more; nil needs none.
	cost, taken int64
	take        func(n int64) error
}

var (
	errXMLBounds  = errors.New("the document exceeds a limit")
	errXMLOutside = errors.New("something stands outside of the document's element")
)

// Token implements xml.TokenReader.
func (t *xmlTokens) Token() (xml.Token, error) {
	t.token = 0
	token, err := t.raw.RawToken()
	switch token := token.(type) {
	case xml.StartElement:
		t.bounds.elements--
		t.depth++
		if t.cost += elementBytes; t.depth == t.bounds.listed {
			t.cost += listedBytes - elementBytes
		}
	case xml.EndElement:
		t.depth--
	case xml.CharData:
		if t.depth == 0 && len(bytes.TrimSpace(token)) > 0 {
			return nil, errXMLOutside
		}
	}
	if t.bounds.elements < 0 || t.depth > maxXMLDepth {
		return nil, errXMLBounds
	}
	if t.cost += int64(t.token); t.cost > t.taken && t.take != nil {
		n := max(t.cost-t.taken, xmlStepBytes)
		if err := t.take(n); err != nil {
			return nil, err
		}
		t.taken += n
	}
	return token, err
}

// ReadByte implements io.ByteReader, by which a decoder reads.
func (t *xmlTokens) ReadByte() (byte, error) {
	if t.token++; t.token > maxXMLTokenBytes {
		return 0, errXMLBounds
	}
	return t.src.ReadByte()
}

// Read implements io.Reader, which a decoder wants and does not call.
func (t *xmlTokens) Read(p []byte) (int, error) { return t.src.Read(p) }

// parseXML decodes a document. io.EOF means that there is none. What is decoded may
// cost more than taken bytes if take allows it, or if that is nil.
func parseXML(src io.Reader, b xmlBounds, taken int64, take func(n int64) error, into any) error {
	t := &xmlTokens{src: bufio.NewReader(src), bounds: b, taken: max(taken, freeXMLBytes), take: take}
	t.raw = xml.NewDecoder(t)
	d := xml.NewTokenDecoder(t)
	if err := d.Decode(into); err != nil {
		return err
	}
	for { // nothing may follow but space and comments
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch token.(type) {
		case xml.CharData, xml.Comment, xml.ProcInst:
		default:
			return errXMLOutside
		}
	}
}

// readXML reads, checks and decodes an XML body.
func (q *request) readXML(b xmlBounds, into any) error {
	p, err := q.openPayload()
	if err != nil {
		return err
	}
	defer p.close()
	if p.size > b.bytes {
		return newError(codeMaxMessageLength).with("MaxMessageLengthBytes", itoa(b.bytes))
	}
	if p.size > maxConfigBytes {
		if err := q.takeMemory(p.size); err != nil {
			return err
		}
	}
	body := &checkedBody{src: p}
	if p.md5 != nil {
		body.md5 = md5.New()
	}
	err = parseXML(body, b, q.memory, q.takeDecoded, into)
	if body.err != nil {
		return body.err // the body's fault, not that of the XML
	}
	if isCode(err, codeSlowDown) {
		return err
	}
	none := errors.Is(err, io.EOF)
	if err != nil && !none {
		return &apiError{code: codeMalformedXML, cause: err}
	}
	if err := body.finish(p); err != nil {
		return err
	}
	if none {
		return newError(codeMissingRequestBody)
	}
	return nil
}

// checkedBody is a body on its way into a decoder.
type checkedBody struct {
	src io.Reader
	md5 hash.Hash // nil: none was stated
	n   int64
	err error // of reading, besides io.EOF
}

// Read implements io.Reader.
func (b *checkedBody) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	b.n += int64(n)
	if b.md5 != nil {
		b.md5.Write(p[:n])
	}
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// finish checks that all of the body came and is what was signed and stated.
func (b *checkedBody) finish(p *payload) error {
	if b.n < p.size {
		return io.ErrUnexpectedEOF
	}
	if _, err := p.finish(); err != nil {
		return err
	}
	if b.md5 != nil && !bytes.Equal(b.md5.Sum(nil), p.md5) {
		return newError(codeBadDigest)
	}
	return nil
}

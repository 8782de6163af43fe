package s3

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/xml"
	"errors"
	"hash"
	"io"

	"ogw/vfs"
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
)

// xmlBounds are the limits of one kind of document.
type xmlBounds struct {
	bytes    int64
	elements int
}

var (
	// deleteBounds: 1000 keys of 1024 bytes, escaped at up to six characters
	// each, with up to five elements in each object.
	deleteBounds = xmlBounds{8 << 20, 2 + 6*maxDeleteKeys}
	// completeBounds: as many parts as there may be, each with its number, its
	// ETag and all checksums.
	completeBounds = xmlBounds{vfs.MaxParts*maxPartBytes + maxConfigBytes, 2 + 13*vfs.MaxParts}
	// corsBounds: as many rules, with as many values, as the bytes hold.
	corsBounds = xmlBounds{maxConfigBytes, maxConfigBytes / 8}
	// configBounds are those of every other body; the longest is an ACL of
	// 100 grants.
	configBounds = xmlBounds{maxConfigBytes, 1000}
)

// xmlTokens feeds a decoder with the tokens of a document, within bounds.
type xmlTokens struct {
	src      *bufio.Reader
	raw      *xml.Decoder
	elements int // still allowed
	depth    int
	token    int // bytes read since the last token
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
		t.elements--
		t.depth++
	case xml.EndElement:
		t.depth--
	case xml.CharData:
		if t.depth == 0 && len(bytes.TrimSpace(token)) > 0 {
			return nil, errXMLOutside
		}
	}
	if t.elements < 0 || t.depth > maxXMLDepth {
		return nil, errXMLBounds
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

// parseXML decodes a document. io.EOF tells that there is none.
func parseXML(src io.Reader, elements int, into any) error {
	t := &xmlTokens{src: bufio.NewReader(src), elements: elements}
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
	err = parseXML(body, b.elements, into)
	if body.err != nil {
		return body.err // the body's fault, not that of the XML
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

package sigv4

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

func hexOf(b []byte) string    { return hex.EncodeToString(b) }
func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// The two streaming examples of the Amazon S3 API reference.
func streamRequest(t *testing.T, trailer bool) (*Signature, *http.Request, []byte) {
	h := map[string]string{
		"X-Amz-Date": "20130524T000000Z", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY", "Content-Encoding": "aws-chunked",
		"X-Amz-Decoded-Content-Length": "66560", "X-Amz-Content-Sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
		"Authorization": docAuth("content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class",
			"4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"),
	}
	sigs := []string{"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
		"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
		"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"}
	end := "\r\n"
	if trailer {
		h["X-Amz-Content-Sha256"] = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
		h["X-Amz-Trailer"] = "x-amz-checksum-crc32c"
		h["Authorization"] = docAuth("content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;x-amz-trailer",
			"106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e")
		sigs = []string{"b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
			"1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
			"2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"}
		end = "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n"
	}
	r := request("PUT", "http://s3.amazonaws.com/examplebucket/chunkObject.txt", h)
	r.ContentLength = 66824
	s, err := check(at(docTime), r, docSecret)
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	for i, n := range []int{65536, 1024, 0} {
		fmt.Fprintf(&body, "%x;chunk-signature=%s\r\n%s", n, sigs[i], strings.Repeat("a", n))
		if n > 0 {
			body.WriteString("\r\n")
		}
	}
	body.WriteString(end)
	return s, r, body.Bytes()
}

// decode reads all as a caller does that stops after Size bytes.
func decode(s *Signature, r *http.Request, src io.Reader) ([]byte, *Body, error) {
	b, err := NewBody(s, r, src)
	if err != nil {
		return nil, nil, err
	}
	defer b.Close()
	var buf bytes.Buffer
	if _, err := io.CopyN(&buf, b, b.Size); err != nil {
		return buf.Bytes(), b, err
	}
	return buf.Bytes(), b, b.Finish()
}

func TestReferenceStreams(t *testing.T) {
	for _, trailer := range []bool{false, true} {
		s, r, body := streamRequest(t, trailer)
		for name, src := range map[string]io.Reader{
			"whole": bytes.NewReader(body), "bytewise": iotest.OneByteReader(bytes.NewReader(body)), "data with error": iotest.DataErrReader(bytes.NewReader(body)),
		} {
			got, b, err := decode(s, r, src)
			if err != nil || len(got) != 66560 {
				t.Fatalf("%s: %d bytes, %v", name, len(got), err)
			}
			if trailer && b.Trailer().Get("X-Amz-Checksum-Crc32c") != "sOO8/Q==" {
				t.Errorf("trailer %v", b.Trailer())
			}
		}
		// Every single flipped bit of the last 400 bytes, and some before, is
		// refused; so is every cut.
		for i := 0; i < len(body); i++ {
			if i > 200 && i < len(body)-400 && i%997 != 0 {
				continue
			}
			bad := bytes.Clone(body)
			bad[i] ^= 4
			if got, _, err := decode(s, r, bytes.NewReader(bad)); err == nil && body[i] != '\r' && i < len(body)-2 { // a tab for a return is space as well
				t.Fatalf("trailer %v: bit flipped at %d of %d (%q) was taken, %d bytes", trailer, i, len(body), body[i], len(got))
			}
			if _, _, err := decode(s, r, bytes.NewReader(body[:i])); err == nil && i < len(body)-2 {
				t.Fatalf("trailer %v: cut at %d of %d was taken", trailer, i, len(body))
			}
		}
		if _, _, err := decode(nil, r, bytes.NewReader(body)); !errors.Is(err, ErrBadSHA256) {
			t.Errorf("anonymous: %v", err)
		}
	}
}

func unsignedRequest(decoded, trailer string) *http.Request {
	h := map[string]string{"X-Amz-Content-Sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "X-Amz-Decoded-Content-Length": decoded}
	if trailer != "" {
		h["X-Amz-Trailer"] = trailer
	}
	return request("PUT", "/b/k", h)
}

func TestUnsignedStream(t *testing.T) {
	const crc = "x-amz-checksum-crc32"
	long := strings.Repeat("y", 20000)
	for name, c := range map[string]struct {
		length, trailer, body, data string
		want                        error
	}{
		"plain":            {"5", crc, "5\r\nhello\r\n0\r\n" + crc + ":NhCmhg==\r\n\r\n", "hello", nil},
		"many chunks":      {"5", crc, "1\r\nh\r\n3\r\nell\r\n1\r\no\r\n0\r\n" + crc + ":NhCmhg==\r\n\r\n", "hello", nil},
		"bare line feeds":  {"5", crc, "5\r\nhello\r\n0\r\n" + crc + ":NhCmhg==\n\r\n\r\n", "hello", nil},
		"no last break":    {"5", crc, "5\r\nhello\r\n0\r\n" + crc + ":NhCmhg==\r\n", "hello", nil},
		"empty":            {"0", crc, "0\r\n" + crc + ":AAAAAA==\r\n\r\n", "", nil},
		"no trailer":       {"5", "", "5\r\nhello\r\n0\r\n\r\n", "hello", nil},
		"long":             {"20000", "", "4e20\r\n" + long + "\r\n0\r\n\r\n", long, nil},
		"missing trailer":  {"5", crc, "5\r\nhello\r\n0\r\n\r\n", "hello", ErrMalformedTrailer},
		"extra trailer":    {"5", "", "5\r\nhello\r\n0\r\nx-a:b\r\n\r\n", "hello", ErrMalformedTrailer},
		"other trailer":    {"5", crc, "5\r\nhello\r\n0\r\nx-a:b\r\n\r\n", "hello", ErrMalformedTrailer},
		"trailer twice":    {"5", crc, "5\r\nhello\r\n0\r\n" + crc + ":a\r\n" + crc + ":a\r\n\r\n", "hello", ErrMalformedTrailer},
		"no colon":         {"5", crc, "5\r\nhello\r\n0\r\n" + crc + "\r\n\r\n", "hello", ErrMalformedTrailer},
		"huge trailer":     {"5", crc, "5\r\nhello\r\n0\r\n" + strings.Repeat("\r\n", 4000) + "\r\n\r\n", "hello", ErrMalformedTrailer},
		"long header":      {"5", crc, strings.Repeat("0", 20000), "", ErrMalformedChunk},
		"short data":       {"5", crc, "5\r\nhel", "hel", ErrIncompleteBody},
		"fewer chunks":     {"5", crc, "3\r\nhel\r\n0\r\n" + crc + ":a\r\n\r\n", "hel", ErrIncompleteBody},
		"more chunks":      {"5", crc, "5\r\nhello\r\n1\r\n!\r\n0\r\n" + crc + ":a\r\n\r\n", "hello", ErrIncompleteBody},
		"one large chunk":  {"5", crc, "6\r\nhello!\r\n0\r\n\r\n", "", ErrIncompleteBody},
		"no break":         {"5", crc, "5\r\nhelloX\r\n0\r\n\r\n", "hello", ErrMalformedChunk},
		"bad size":         {"5", crc, "zz\r\nhello\r\n", "", ErrMalformedChunk},
		"empty size":       {"5", crc, "\r\nhello\r\n", "", ErrMalformedChunk},
		"negative size":    {"5", crc, "-5\r\nhello\r\n", "", ErrMalformedChunk},
		"overflowing size": {"5", crc, "ffffffffffffffffff\r\nhello\r\n", "", ErrMalformedChunk},
		"no length":        {"", crc, "5\r\nhello\r\n0\r\n\r\n", "", ErrNoDecodedLength},
		"negative length":  {"-1", crc, "5\r\nhello\r\n0\r\n\r\n", "", ErrNoDecodedLength},
	} {
		got, _, err := decode(nil, unsignedRequest(c.length, c.trailer), strings.NewReader(c.body))
		if string(got) != c.data || !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: got %.20q %v, want %.20q %v", name, got, err, c.data, c.want)
		}
	}
}

func TestHashedBody(t *testing.T) {
	sum := sha256.Sum256([]byte("hello"))
	r := request("PUT", "/b/k", map[string]string{"X-Amz-Content-Sha256": hexOf(sum[:])})
	for body, want := range map[string]error{"hello": nil, "hellO": ErrSHA256Mismatch} {
		r.ContentLength = 5
		if _, _, err := decode(nil, r, strings.NewReader(body)); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestChunksDoNotAllocate(t *testing.T) {
	s, r, body := streamRequest(t, false)
	b, err := NewBody(s, r, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 1024)
	if n := testing.AllocsPerRun(60, func() { _, _ = io.ReadFull(b, p) }); n > 0 {
		t.Errorf("%v allocations per read", n)
	}
}

func FuzzChunks(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n"), 5, true)
	f.Add([]byte("0\r\n\r\n"), 0, false)
	f.Fuzz(func(t *testing.T, body []byte, size int, trailer bool) {
		name := ""
		if trailer {
			name = "x-amz-checksum-crc32"
		}
		whole, _, err1 := decode(nil, unsignedRequest(fmt.Sprint(size), name), bytes.NewReader(body))
		split, _, err2 := decode(nil, unsignedRequest(fmt.Sprint(size), name), iotest.OneByteReader(bytes.NewReader(body)))
		if (err1 == nil) != (err2 == nil) || !bytes.Equal(whole, split) {
			t.Fatalf("%v, %v; %q, %q", err1, err2, whole, split)
		}
		if err1 == nil && len(whole) != size {
			t.Fatalf("%d bytes of %d without an error", len(whole), size)
		}
	})
}

func FuzzAuthorization(f *testing.F) {
	f.Add(docGet().Header.Get("Authorization"), "X-Amz-Signature=a")
	f.Add("AWS a:b", "AWSAccessKeyId=a&Signature=b&Expires=1")
	f.Fuzz(func(t *testing.T, auth, query string) {
		r := docGet()
		r.Header.Set("Authorization", auth)
		r.URL.RawQuery = query
		c := at(docTime)
		c.V2 = V2All
		if _, err := check(c, r, "not the secret"); err == nil {
			t.Fatal("verified without the secret")
		}
	})
}

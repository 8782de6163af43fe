package rest

import (
	"crypto/md5"  //nolint:gosec // what clients send
	"crypto/sha1" //nolint:gosec // what clients send
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"strings"

	"ogw/httpapi/apierr"
	"ogw/vfs"
)

// digests are what a client says about the bytes that it sends.
type digests struct {
	md5 []byte   // verified by the store, which computes it anyway
	sum []digest // one of each algorithm: they are computed while the body comes
}

// digest is one hash to verify on the way.
type digest struct {
	algorithm string // as in RFC 9530
	want      []byte
	hash      hash.Hash
}

// hashes by the algorithm names of Content-Digest (RFC 9530) and, where they
// differ, of Digest (RFC 3230). Unknown ones are ignored, as both ask.
var hashes = map[string]func() hash.Hash{
	"sha":     sha1.New,
	"sha-256": sha256.New,
	"sha-512": sha512.New,
}

// parseDigests reads Content-MD5, Content-Digest, Repr-Digest and Digest.
func parseDigests(h http.Header) (digests, error) {
	var d digests
	if v := h.Get("Content-Md5"); v != "" {
		if err := d.add("md5", v); err != nil {
			return d, fmt.Errorf("%w in Content-MD5", err)
		}
	}
	for _, name := range []string{"Content-Digest", "Repr-Digest", "Digest"} {
		for _, line := range h.Values(name) {
			if err := d.addList(line, name != "Digest"); err != nil {
				return d, fmt.Errorf("%w in %s", err, name)
			}
		}
	}
	return d, nil
}

// addList reads "alg=:base64:, …" if structured, else "ALG=base64, …".
func (d *digests) addList(list string, structured bool) error {
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		algorithm, value, ok := strings.Cut(item, "=")
		if structured {
			value, _, _ = strings.Cut(value, ";") // parameters mean nothing here
			ok = ok && len(value) >= 2 && value[0] == ':' && value[len(value)-1] == ':'
			value = strings.Trim(value, ":")
		}
		if !ok {
			return fmt.Errorf("%w: malformed digest", apierr.ErrBadRequest)
		}
		if err := d.add(strings.ToLower(algorithm), value); err != nil {
			return err
		}
	}
	return nil
}

func (d *digests) add(algorithm, value string) error {
	size := md5.Size
	make := hashes[algorithm]
	if algorithm != "md5" {
		if make == nil {
			return nil
		}
		size = make().Size()
	}
	sum, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(sum) != size {
		return fmt.Errorf("%w: malformed %s digest", apierr.ErrBadRequest, algorithm)
	}
	if algorithm == "md5" {
		if d.md5 != nil && string(d.md5) != string(sum) {
			return fmt.Errorf("%w: two md5 digests", vfs.ErrBadDigest)
		}
		d.md5 = sum
		return nil
	}
	if i := slices.IndexFunc(d.sum, func(s digest) bool { return s.algorithm == algorithm }); i >= 0 {
		if string(d.sum[i].want) != string(sum) {
			return fmt.Errorf("%w: two %s digests", vfs.ErrBadDigest, algorithm)
		}
		return nil
	}
	d.sum = append(d.sum, digest{algorithm, sum, make()})
	return nil
}

// reader returns body so that all digests see what is read.
func (d *digests) reader(body io.Reader) io.Reader {
	for _, s := range d.sum {
		body = io.TeeReader(body, s.hash)
	}
	return body
}

// finish compares; the SHA checksums that S3 knows are stored.
func (d *digests) finish() ([]vfs.Checksum, error) {
	var out []vfs.Checksum
	for _, s := range d.sum {
		got := s.hash.Sum(nil)
		if string(got) != string(s.want) {
			return nil, fmt.Errorf("%w: the %s of what arrived is %s", vfs.ErrBadDigest,
				s.algorithm, base64.StdEncoding.EncodeToString(got))
		}
		switch s.algorithm {
		case "sha-256":
			out = append(out, vfs.Checksum{Algorithm: vfs.ChecksumSHA256, Value: got})
		case "sha":
			out = append(out, vfs.Checksum{Algorithm: vfs.ChecksumSHA1, Value: got})
		}
	}
	return out, nil
}

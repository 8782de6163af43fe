package s3

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"

	"github.com/minio/crc64nvme"

	"ogw/vfs"
)

// algorithm is a checksum algorithm of S3.
type algorithm struct {
	name   vfs.ChecksumAlgorithm
	header string // canonical name of the header
	xml    string // name of the XML element
	size   int    // bytes
	make   func() hash.Hash
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// algorithms in S3's order of preference.
var algorithms = []algorithm{
	{vfs.ChecksumCRC64NVME, "X-Amz-Checksum-Crc64nvme", "ChecksumCRC64NVME", 8, func() hash.Hash { return crc64nvme.New() }},
	{vfs.ChecksumCRC32, "X-Amz-Checksum-Crc32", "ChecksumCRC32", 4, func() hash.Hash { return crc32.NewIEEE() }},
	{vfs.ChecksumCRC32C, "X-Amz-Checksum-Crc32c", "ChecksumCRC32C", 4, func() hash.Hash { return crc32.New(castagnoli) }},
	{vfs.ChecksumSHA1, "X-Amz-Checksum-Sha1", "ChecksumSHA1", sha1.Size, sha1.New},
	{vfs.ChecksumSHA256, "X-Amz-Checksum-Sha256", "ChecksumSHA256", sha256.Size, sha256.New},
}

// findAlgorithm returns the algorithm by its S3 name, in any case.
func findAlgorithm(name string) (*algorithm, error) {
	for i := range algorithms {
		if strings.EqualFold(string(algorithms[i].name), name) {
			return &algorithms[i], nil
		}
	}
	return nil, newError(codeInvalidRequest).withMessage("Checksum algorithm provided is unsupported. Please try again with any of the valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]")
}

// headerChecksum returns the one checksum that h states for a body, and its
// decoded value; nil if there is none.
func headerChecksum(h http.Header) (*algorithm, []byte, error) {
	var found *algorithm
	var value []byte
	for i := range algorithms {
		a := &algorithms[i]
		v := h.Get(a.header)
		if v == "" {
			continue
		}
		if found != nil {
			return nil, nil, newError(codeInvalidRequest).withMessage("Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
		}
		b, err := a.decode(v)
		if err != nil {
			return nil, nil, err
		}
		found, value = a, b
	}
	return found, value, nil
}

// trailerChecksum returns the algorithm that x-amz-trailer announces.
func trailerChecksum(h http.Header) (*algorithm, error) {
	var found *algorithm
	for _, line := range h.Values("X-Amz-Trailer") {
		for _, name := range strings.Split(line, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			if name == "" {
				continue
			}
			a := algorithmOfHeader(name)
			if a == nil || found != nil {
				return nil, newError(codeInvalidRequest).withMessage("The value specified in the x-amz-trailer header is not supported")
			}
			found = a
		}
	}
	return found, nil
}

func algorithmOfHeader(name string) *algorithm {
	for i := range algorithms {
		if algorithms[i].header == name {
			return &algorithms[i]
		}
	}
	return nil
}

func (a *algorithm) decode(v string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(v)
	if err != nil || len(b) != a.size {
		return nil, newError(codeInvalidRequest).withMessage("Value for %s header is invalid.", strings.ToLower(a.header))
	}
	return b, nil
}

func (a *algorithm) mismatch() error {
	return newError(codeBadDigest).withMessage("The %s you specified did not match the calculated checksum.", a.name)
}

// shownChecksum picks the checksum that S3 would have of an object: the
// client's, else CRC64NVME.
func shownChecksum(sums []vfs.Checksum) (*algorithm, vfs.Checksum, bool) {
	var best *algorithm
	var sum vfs.Checksum
	for _, s := range sums {
		a, err := findAlgorithm(string(s.Algorithm))
		if err == nil && (best == nil || best.name == vfs.ChecksumCRC64NVME) {
			best, sum = a, s
		}
	}
	return best, sum, best != nil
}

// checksumText is base64, with -N for a composite.
func checksumText(s vfs.Checksum) string {
	t := base64.StdEncoding.EncodeToString(s.Value)
	if s.Parts > 0 {
		t += "-" + strconv.Itoa(s.Parts)
	}
	return t
}

func checksumType(composite bool) string {
	if composite {
		return "COMPOSITE"
	}
	return "FULL_OBJECT"
}

// setChecksum puts the object's checksum in the response headers.
func setChecksum(h http.Header, sums []vfs.Checksum) {
	if a, sum, ok := shownChecksum(sums); ok {
		h.Set(a.header, checksumText(sum))
		h.Set("X-Amz-Checksum-Type", checksumType(sum.Parts > 0))
	}
}

// checksum writes the object's checksum elements.
func (x *xmlWriter) checksum(sums []vfs.Checksum, withType bool) {
	if a, sum, ok := shownChecksum(sums); ok {
		x.str(a.xml, checksumText(sum))
		if withType {
			x.str("ChecksumType", checksumType(sum.Parts > 0))
		}
	}
}

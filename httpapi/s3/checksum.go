package s3

import (
	"encoding/base64"
	"errors"
	"hash"
	"net/http"
	"strconv"
	"strings"

	"ogw/vfs"
)

// algorithm is a checksum algorithm of S3.
type algorithm struct {
	name   vfs.ChecksumAlgorithm
	header string // canonical name of the header
	xml    string // name of the XML element
}

// algorithms in S3's order of preference.
var algorithms = []algorithm{
	{vfs.ChecksumCRC64NVME, "X-Amz-Checksum-Crc64nvme", "ChecksumCRC64NVME"},
	{vfs.ChecksumCRC32, "X-Amz-Checksum-Crc32", "ChecksumCRC32"},
	{vfs.ChecksumCRC32C, "X-Amz-Checksum-Crc32c", "ChecksumCRC32C"},
	{vfs.ChecksumSHA1, "X-Amz-Checksum-Sha1", "ChecksumSHA1"},
	{vfs.ChecksumSHA256, "X-Amz-Checksum-Sha256", "ChecksumSHA256"},
	{vfs.ChecksumSHA512, "X-Amz-Checksum-Sha512", "ChecksumSHA512"},
	{vfs.ChecksumMD5, "X-Amz-Checksum-Md5", "ChecksumMD5"},
	{vfs.ChecksumXXHASH64, "X-Amz-Checksum-Xxhash64", "ChecksumXXHASH64"},
	{vfs.ChecksumXXHASH3, "X-Amz-Checksum-Xxhash3", "ChecksumXXHASH3"},
	{vfs.ChecksumXXHASH128, "X-Amz-Checksum-Xxhash128", "ChecksumXXHASH128"},
}

const checksumPrefix = "X-Amz-Checksum-"

// notChecksums begin with the prefix and state none.
func notChecksum(header string) bool {
	return header == "X-Amz-Checksum-Algorithm" || header == "X-Amz-Checksum-Type" || header == "X-Amz-Checksum-Mode"
}

// make returns a hash.
func (a *algorithm) make() hash.Hash {
	h, err := a.name.New()
	if err != nil {
		panic(err) // the table names what vfs has: TestChecksumAlgorithms
	}
	return h
}

// findAlgorithm returns the algorithm by its S3 name, in any case.
func findAlgorithm(name string) (*algorithm, error) {
	for i := range algorithms {
		if strings.EqualFold(string(algorithms[i].name), name) {
			return &algorithms[i], nil
		}
	}
	return nil, newError(codeInvalidRequest).withMessage("Checksum algorithm provided is unsupported. Please try again with any of the valid types: [CRC32, CRC32C, CRC64NVME, MD5, SHA1, SHA256, SHA512, XXHASH128, XXHASH3, XXHASH64]")
}

// headerChecksum returns the one checksum that h states for a body, and its
// decoded value; nil if there is none. One of an algorithm that is not known is
// refused: it would be taken for verified.
func headerChecksum(h http.Header) (*algorithm, []byte, error) {
	found, v, err := statedChecksum(h)
	if found == nil || err != nil {
		return nil, nil, err
	}
	b, err := found.decode(v)
	return found, b, err
}

// statedChecksum finds the one checksum header of h and its text.
func statedChecksum(h http.Header) (found *algorithm, v string, err error) {
	for name, values := range h {
		if !strings.HasPrefix(name, checksumPrefix) || notChecksum(name) {
			continue
		}
		a := algorithmOfHeader(name)
		if a == nil {
			return nil, "", newError(codeInvalidRequest).withMessage("The algorithm type you specified in x-amz-checksum- header is invalid.")
		}
		if found != nil {
			return nil, "", newError(codeInvalidRequest).withMessage("Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
		}
		found, v = a, strings.Join(values, ",")
	}
	return found, v, nil
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
	if err != nil || len(b) != a.name.Size() {
		return nil, a.invalid()
	}
	return b, nil
}

func (a *algorithm) invalid() error {
	return newError(codeInvalidRequest).withMessage("Value for %s header is invalid.", strings.ToLower(a.header))
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

// checksumError puts what an upload says of checksums in S3's words; nil for
// any other error.
func checksumError(err error) *apiError {
	var other *vfs.ChecksumTypeError
	var missing *vfs.MissingChecksumError
	switch {
	case errors.As(err, &other):
		got := strings.ToLower(string(other.Got))
		if got == "" {
			got = "null"
		}
		return newError(codeInvalidRequest).withMessage("Checksum Type mismatch occurred, expected checksum Type: %s, actual checksum Type: %s", strings.ToLower(string(other.Want)), got)
	case errors.As(err, &missing):
		return newError(codeInvalidRequest).withMessage("The upload was created using a %s checksum. The complete request must include the checksum for each part. It was missing for part %d in the request.",
			strings.ToLower(string(missing.Algorithm)), missing.Part)
	}
	return nil
}

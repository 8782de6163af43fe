package naming

import "strings"

const (
	minBucketNameBytes = 3
	maxBucketNameBytes = 255 // S3's old limit; 63 only binds DNS
)

// ValidBucket reports whether name is legal for a bucket: 3 to 255 of
// a-z 0-9 . - _, not beginning or ending with one of the last three, and not
// formatted as an IPv4 address.
func ValidBucket(name string) bool {
	if len(name) < minBucketNameBytes || len(name) > maxBucketNameBytes {
		return false
	}
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case c == '.' || c == '-' || c == '_':
			if i == 0 || i == len(name)-1 {
				return false
			}
		default:
			return false
		}
	}
	return !formattedAsIPv4(name)
}

// formattedAsIPv4 reports whether name is four decimal numbers with dots
// between, whatever their size.
func formattedAsIPv4(name string) bool {
	dots, digits := 0, 0
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case '0' <= c && c <= '9':
			digits++
		case c == '.' && digits > 0:
			dots, digits = dots+1, 0
		default:
			return false
		}
	}
	return dots == 3 && digits > 0
}

// Reserved reports whether name is one of those of a list, or ends in a dot and one.
func Reserved(name string, list []string) bool {
	for _, r := range list {
		if rest, ok := strings.CutSuffix(name, r); ok && (rest == "" || strings.HasSuffix(rest, ".")) {
			return true
		}
	}
	return false
}

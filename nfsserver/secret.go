package nfsserver

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MinSecret is the least length of an export's secret, in bytes: a mount is an
// unsalted guess at it, and shorter words can be found in lists.
const MinSecret = 16

// SecretSum is what remains of a secret that is not kept: a digest.
func SecretSum(secret string) string {
	sum := sha256.Sum256([]byte("ogw nfs export\x00" + secret))
	return hex.EncodeToString(sum[:])
}

// cutSecret divides the path of a MNT call at the @ before a secret.
func cutSecret(dirpath string) (dir, secret string) {
	if i := strings.LastIndexByte(dirpath, '@'); i >= 0 {
		return dirpath[:i], dirpath[i+1:]
	}
	return dirpath, ""
}

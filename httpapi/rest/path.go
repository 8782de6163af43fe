package rest

import (
	"fmt"
	"net/url"
	"strings"

	"ogw/httpapi/apierr"
	"ogw/vfs"
)

var errNoPath = fmt.Errorf("%w: the request names no path", apierr.ErrBadRequest)

// maxPathBytes bounds a path: the name of a bucket, and the longest key in it.
const maxPathBytes = vfs.MaxNameBytes + 1 + vfs.MaxKeyBytes

// keyOf returns the key that a URL names: the path as the client escaped it,
// decoded once, without the first slash.
func keyOf(u *url.URL) (string, error) {
	path, err := url.PathUnescape(u.EscapedPath())
	if err != nil {
		return "", fmt.Errorf("%w: %w", apierr.ErrBadRequest, err)
	}
	key, ok := strings.CutPrefix(path, "/")
	if !ok {
		return "", errNoPath
	}
	if len(key) > maxPathBytes {
		return "", fmt.Errorf("%w: %d bytes, at most %d", vfs.ErrKeyTooLong, len(key), maxPathBytes)
	}
	return key, nil
}

// pathOf is the inverse of keyOf: the escaped path of a key. A second slash
// is escaped, because a reference that begins with two names a host.
func pathOf(key string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(key) + 1)
	b.WriteByte('/')
	for i := 0; i < len(key); i++ {
		c := key[i]
		if plain(c) && (c != '/' || i > 0) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

// plain reports whether c stands for itself in a path: RFC 3986's unreserved
// characters and the slash.
func plain(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("/-._~", c) >= 0
}

// isDir reports whether a key names a directory.
func isDir(key string) bool { return key == "" || strings.HasSuffix(key, "/") }

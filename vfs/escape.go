package vfs

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

// How stored names look through the POSIX doors; see the package
// documentation.
const (
	reservedPrefix = ".ogw~"
	escapedPrefix  = reservedPrefix + "e~"
	shadowPrefix   = reservedPrefix + "f~"
	hashPrefix     = reservedPrefix + "h~"

	// nameHashBytes is 160 bits of SHA-256: no two names collide, and the
	// shown form stays short.
	nameHashBytes = 20
)

var hashEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// posixName is what a name of the POSIX doors stands for.
type posixName struct {
	stored string
	// file: the name stands for the file only, also beside a directory.
	file bool
	// hash is set instead of stored when key 'h' knows the name.
	hash []byte
}

// parsePosixName decodes a shown name. It returns ErrNameTooLong, and
// ErrInvalid for a name that no entry can have: "", ".", "..", one with a
// slash or NUL, or one with the reserved prefix that is no escape.
func parsePosixName(name string) (posixName, error) {
	if len(name) > MaxPosixNameBytes {
		return posixName{}, ErrNameTooLong
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return posixName{}, ErrInvalid
	}
	if !strings.HasPrefix(name, reservedPrefix) {
		return posixName{stored: name}, nil
	}
	bad := func() (posixName, error) {
		return posixName{}, fmt.Errorf("%w: %q stands for no name", ErrInvalid, name)
	}
	switch {
	case strings.HasPrefix(name, escapedPrefix):
		s, ok := unescapePercent(name[len(escapedPrefix):])
		if !ok || !mustEscape(s) {
			return bad()
		}
		return posixName{stored: s}, nil
	case strings.HasPrefix(name, shadowPrefix):
		s, ok := unescapePercent(name[len(shadowPrefix):])
		if !ok || s == "" {
			return bad()
		}
		return posixName{stored: s, file: true}, nil
	case strings.HasPrefix(name, hashPrefix):
		h, err := hashEncoding.DecodeString(name[len(hashPrefix):])
		if err != nil || len(h) != nameHashBytes || hashPrefix+hashEncoding.EncodeToString(h) != name {
			return bad()
		}
		return posixName{hash: h}, nil
	}
	return bad()
}

// mustEscape tells whether POSIX cannot express a stored name, whatever its
// length.
func mustEscape(stored string) bool {
	return stored == "" || stored == "." || stored == ".." ||
		strings.HasPrefix(stored, reservedPrefix) || strings.IndexByte(stored, 0) >= 0
}

// shownName returns the name under which the POSIX doors show an entry.
// shadowed tells that it is a file beside a directory of the same name.
func shownName(stored string, dir, shadowed bool) string {
	s := fullForm(stored, shadowed && !dir)
	if len(s) > MaxPosixNameBytes {
		h := nameHash(stored, dir)
		return hashPrefix + hashEncoding.EncodeToString(h[:])
	}
	return s
}

// fullForm is the shown form without regard to its length.
func fullForm(stored string, shadowed bool) string {
	switch {
	case shadowed:
		return shadowPrefix + escapePercent(stored)
	case mustEscape(stored):
		return escapedPrefix + escapePercent(stored)
	}
	return stored
}

// maybeHashed tells whether an entry is, or could come to be, shown under its
// hash: then key 'h' must exist.
func maybeHashed(stored string, dir bool) bool {
	if len(stored) <= MaxPosixNameBytes/3-len(shadowPrefix) {
		return false // even with every byte escaped it fits
	}
	return len(fullForm(stored, !dir)) > MaxPosixNameBytes
}

func nameHash(stored string, dir bool) (h [nameHashBytes]byte) {
	kind := byte('f')
	if dir {
		kind = 'd'
	}
	sum := sha256.Sum256(append([]byte{kind}, stored...))
	copy(h[:], sum[:])
	return h
}

// posixForms returns the names under which the POSIX doors may show a stored
// name: as a directory or sole entry, and as a shadowed file.
func posixForms(stored string) []string {
	dir, file, shadowed := shownName(stored, true, false), shownName(stored, false, false), shownName(stored, false, true)
	forms := []string{dir}
	if file != dir {
		forms = append(forms, file)
	}
	if shadowed != file {
		forms = append(forms, shadowed)
	}
	return forms
}

func escapePercent(s string) string {
	if strings.IndexByte(s, 0) < 0 && strings.IndexByte(s, '%') < 0 {
		return s
	}
	return percentEscaper.Replace(s)
}

var percentEscaper = strings.NewReplacer("\x00", "%00", "%", "%25")

// unescapePercent is the inverse of escapePercent; false for what that never
// returns.
func unescapePercent(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '%':
			b = append(b, s[i])
			continue
		case strings.HasPrefix(s[i:], "%00"):
			b = append(b, 0)
		case strings.HasPrefix(s[i:], "%25"):
			b = append(b, '%')
		default:
			return "", false
		}
		i += 2
	}
	return string(b), true
}

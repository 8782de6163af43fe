package naming

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"ogw/vfs/internal/fserr"
)

// How stored names look through the POSIX doors; see the package
// documentation.
const (
	reservedPrefix = ".ogw~"
	escapedPrefix  = reservedPrefix + "e~"
	shadowPrefix   = reservedPrefix + "f~"
	hashPrefix     = reservedPrefix + "h~"

	// MaxPosixBytes is NAME_MAX of the POSIX doors.
	MaxPosixBytes = 255

	// nameHashBytes is 160 bits of SHA-256: no two names collide, and the
	// shown form stays short.
	nameHashBytes = 20
)

var hashEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Posix is what a name of the POSIX doors stands for.
type Posix struct {
	Stored string
	// File: the name stands for the file only, also beside a directory.
	File bool
	// Hash is set instead of stored when key 'h' knows the name.
	Hash []byte
}

// IsHashOf reports whether p is the hash of an entry's name.
func (p Posix) IsHashOf(stored string, dir bool) bool {
	h := Hash(stored, dir)
	return bytes.Equal(p.Hash, h[:])
}

// IsUnknown reports whether p is a hash of which no name is known.
func (p Posix) IsUnknown() bool { return p.Hash != nil && p.Stored == "" }

// ParsePosix decodes a shown name. It returns fserr.ErrNameTooLong, and
// fserr.ErrInvalid for a name that no entry can have: "", ".", "..", one with a
// slash or NUL, or one with the reserved prefix that is no escape.
func ParsePosix(name string) (Posix, error) {
	if len(name) > MaxPosixBytes {
		return Posix{}, fserr.ErrNameTooLong
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return Posix{}, fserr.ErrInvalid
	}
	if !strings.HasPrefix(name, reservedPrefix) {
		return Posix{Stored: name}, nil
	}
	bad := func() (Posix, error) {
		return Posix{}, fmt.Errorf("%w: %q stands for no name", fserr.ErrInvalid, name)
	}
	switch {
	case strings.HasPrefix(name, escapedPrefix):
		s, ok := unescapePercent(name[len(escapedPrefix):])
		if !ok || !mustEscape(s) {
			return bad()
		}
		return Posix{Stored: s}, nil
	case strings.HasPrefix(name, shadowPrefix):
		s, ok := unescapePercent(name[len(shadowPrefix):])
		if !ok || s == "" {
			return bad()
		}
		return Posix{Stored: s, File: true}, nil
	case strings.HasPrefix(name, hashPrefix):
		h, err := hashEncoding.DecodeString(name[len(hashPrefix):])
		if err != nil || len(h) != nameHashBytes || hashPrefix+hashEncoding.EncodeToString(h) != name {
			return bad()
		}
		return Posix{Hash: h}, nil
	}
	return bad()
}

// mustEscape reports whether POSIX cannot express a stored name, whatever its
// length.
func mustEscape(stored string) bool {
	return stored == "" || stored == "." || stored == ".." ||
		strings.HasPrefix(stored, reservedPrefix) || strings.IndexByte(stored, 0) >= 0
}

// Shown returns the name under which the POSIX doors show an entry.
// shadowed reports whether it is a file beside a directory of the same name.
func Shown(stored string, dir, shadowed bool) string {
	s := fullForm(stored, shadowed && !dir)
	if len(s) > MaxPosixBytes {
		h := Hash(stored, dir)
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

// MaybeHashed reports whether an entry is, or could come to be, shown under its
// hash: then key 'h' must exist.
func MaybeHashed(stored string, dir bool) bool {
	if len(stored) <= MaxPosixBytes/3-len(shadowPrefix) {
		return false // even with every byte escaped it fits
	}
	return len(fullForm(stored, !dir)) > MaxPosixBytes
}

func Hash(stored string, dir bool) (h [nameHashBytes]byte) {
	kind := byte('f')
	if dir {
		kind = 'd'
	}
	sum := sha256.Sum256(append([]byte{kind}, stored...))
	copy(h[:], sum[:])
	return h
}

// PosixForms returns the names under which the POSIX doors may show a stored
// name: as a directory or sole entry, and as a shadowed file.
func PosixForms(stored string) []string {
	dir, file, shadowed := Shown(stored, true, false), Shown(stored, false, false), Shown(stored, false, true)
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

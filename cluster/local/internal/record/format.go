package record

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"

	"ogw/cluster"
)

// The file FORMAT is text:
//
//	ogw embedded store
//	version N
//	id STOREID              32 hexadecimal digits
const (
	// formatVersion is the layout of the whole folder that this code writes.
	// docs/format.md describes it.
	formatVersion = 1
	formatMagic   = "ogw embedded store"
	StoreIDBytes  = 16
)

// StoreID distinguishes one store from every other.
type StoreID [StoreIDBytes]byte

// String returns 32 hexadecimal digits.
func (id StoreID) String() string { return hex.EncodeToString(id[:]) }

// ParseFormat decodes a FORMAT file: cluster.ErrFormat for anything else, and for
// versions that are newer than this program.
func ParseFormat(data []byte) (id StoreID, err error) {
	lines := bytes.Split(data, []byte("\n"))
	if len(lines) < 4 || string(lines[0]) != formatMagic {
		return id, fmt.Errorf("%w: not an ogw store", cluster.ErrFormat)
	}
	text, ok := bytes.CutPrefix(lines[1], []byte("version "))
	version, err := strconv.Atoi(string(text))
	if !ok || err != nil || version < 1 {
		return id, fmt.Errorf("%w: the version line is damaged", cluster.ErrFormat)
	}
	if version > formatVersion {
		return id, fmt.Errorf("%w: written by a newer ogw (format %d, this one knows up to %d)", cluster.ErrFormat, version, formatVersion)
	}
	text, ok = bytes.CutPrefix(lines[2], []byte("id "))
	if !ok || hex.DecodedLen(len(text)) != StoreIDBytes || len(text) != 2*StoreIDBytes {
		return id, fmt.Errorf("%w: the store ID is damaged", cluster.ErrFormat)
	}
	if _, err := hex.Decode(id[:], text); err != nil {
		return StoreID{}, fmt.Errorf("%w: the store ID is damaged", cluster.ErrFormat)
	}
	return id, nil
}

// EncodeFormat returns the FORMAT file of a store.
func EncodeFormat(id StoreID) []byte {
	return fmt.Appendf(nil, "%s\nversion %d\nid %s\n", formatMagic, formatVersion, id)
}

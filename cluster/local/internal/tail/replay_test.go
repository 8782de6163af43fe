package tail

import (
	"encoding/binary"
	"testing"

	"ogw/cluster/local/internal/record"
)

// FuzzParseHalf: no bytes of a file are trusted.
func FuzzParseHalf(f *testing.F) {
	good := []byte(record.TailMagic)
	good = binary.LittleEndian.AppendUint64(good, 1)
	f.Add(append(good, make([]byte, 100)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, r := range parseHalf(b, 1, func(uint64) bool { return true }) {
			if len(r.Batch) > len(b) {
				t.Error("longer than the file")
			}
		}
	})
}

package record

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"ogw/vfs/internal/checksum"
)

// TestCompletedRecord: what is no record, or one of a later version, says nothing of an upload;
// the longest one is as short as docs/format.md says.
func TestCompletedRecord(t *testing.T) {
	c := Completed{Digest: [16]byte{1}, TimeNS: math.MaxInt64, UID: math.MaxUint32, User: UserID("AIDA" + strings.Repeat("X", 17)),
		Size: math.MaxInt64, Sum: [16]byte{2}, NParts: 10000, Checksums: []checksum.Sum{
			{Algorithm: checksum.SHA512, Value: make([]byte, checksum.SHA512.Size()), Parts: 10000},
			{Algorithm: checksum.CRC64NVME, Value: make([]byte, checksum.CRC64NVME.Size())},
		}}
	b := c.Encode()
	if got, ok := DecodeCompleted(b); !ok || !reflect.DeepEqual(got, c) {
		t.Errorf("%+v %v, want %+v", got, ok, c)
	}
	if len(b) >= 200 {
		t.Errorf("%d bytes", len(b))
	}
	for what, b := range map[string][]byte{
		"none": nil, "cut": b[:len(b)-1], "longer": append(b[:len(b):len(b)], 0), "of a later version": append([]byte{completedVersion + 1}, b[1:]...),
	} {
		if _, ok := DecodeCompleted(b); ok {
			t.Errorf("%s: is taken for a record", what)
		}
	}
}

package backup

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// A pack of the longest keys, which are longer than their values, can be read.
func TestPackOfLongKeys(t *testing.T) {
	p, value := packBuilder{}, make([]byte, smallValue+1)
	key := append([]byte{keyPair}, bytes.Repeat([]byte{0, 0xff}, 1034)...)
	for n := uint32(0); n < packBytes/smallValue; n++ {
		k := binary.BigEndian.AppendUint32(bytes.Clone(key), n)
		if !p.fits(k, len(value)) {
			break
		}
		p.add(k, value, valueSum(value))
	}
	x, err := parseIndex(p.build())
	if err != nil {
		t.Fatal(err)
	}
	if len(x.pieces) < 1000 || len(x.pieces) != len(p.index.pieces) {
		t.Errorf("%d pieces, of %d", len(x.pieces), len(p.index.pieces))
	}
}

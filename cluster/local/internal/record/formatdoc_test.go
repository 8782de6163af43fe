package record

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/integration/testenv/formatdoc"

	"github.com/minio/crc64nvme"
)

// docs/format.md shows the engine's own keys and files byte for byte.
func TestFormatDocument(t *testing.T) {
	const path = "../../../../docs/format.md"
	documented, err := formatdoc.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	const sampleNS = 1700000000000000000
	store := StoreID{0: 0xaa, 15: 0xbb}
	id := cluster.BlobID{Content: 19, Seq: 20}
	data := []byte("abc")
	inFile := Place{Size: 3, Modified: time.Unix(0, sampleNS)}
	inSegment := inFile
	inSegment.Segment, inSegment.Offset, inSegment.Blocks = 2, 4096, []uint64{crc64nvme.Checksum(data)}
	r := Record{Store: store, ID: id, Segment: 2, Offset: 4096, Size: 3, Blocks: inSegment.Blocks}
	footer := make([]byte, FooterBytes(r.Size))
	r.PutFooter(footer)
	m := Mark{Store: store, State: 5, Files: map[string]Print{"000004.sst": {1000, 0x1122334455667788}}}
	state := binary.LittleEndian.AppendUint64(nil, m.State)
	h := TailHeader{Epoch: 9, Generation: 1, Files: 6, Half: 4096}
	half := TailRecord{Version: 7, Batch: []byte("batch")}.Append(h.Encode(), h)
	var stamp [StampBytes]byte
	samples := map[string]struct{ key, value []byte }{
		"blob in a file":    {BlobKey(id), inFile.Encode()},
		"blob in a segment": {BlobKey(id), inSegment.Encode()},
		"store ID":          {StoreKey, store[:]},
		"state":             {MarkKey, state},
		"commit":            {VersionKey, PutStamp(&stamp, 9, 7)},
		"damaged segment":   {DoubtKey(2), nil},
		"erased":            {EraseKey, nil},
		"FORMAT":            {nil, EncodeFormat(store)},
		"MARK":              {nil, m.Encode()},
		"GATEWAYS":          {nil, (&Entered{"boot 00000000-0000-0000-0000-0000000000cc device 2049 inode 77", []uint64{0xaa, 0xbb}}).Encode()},
		"footer":            {nil, footer},
		"tail":              {nil, half},
		"segment file":      {nil, []byte(filepath.Join(SegmentDir, SegmentName(2)))},
		"blob file":         {nil, []byte(strings.TrimPrefix(BlobFile("data", id), "data/"))},
	}
	for name, s := range samples {
		if e := documented[name]; !bytes.Equal(e.Key, s.key) || !bytes.Equal(e.Value, s.value) {
			t.Errorf("%s, example %s:\n    key %x\n    %x\nthe program stores\n    key %x\n    %x", path, name, e.Key, e.Value, s.key, s.value)
		}
	}
	if folder := BlobFolder("data", 39); filepath.Dir(BlobFile("data", id)) != folder {
		t.Errorf("the blob is not in %s", folder)
	}
	for name, e := range documented {
		if _, ok := samples[name]; !ok && (len(e.Key) == 0 || e.Key[0] == 0xff) {
			t.Errorf("%s has an example %s, which this test does not know", path, name)
		}
	}
}

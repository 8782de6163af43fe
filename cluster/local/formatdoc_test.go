package local

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/integration/testenv/formatdoc"

	"github.com/minio/crc64nvme"
)

// docs/format.md shows the engine's own keys and files byte for byte.
func TestFormatDocument(t *testing.T) {
	const path = "../../docs/format.md"
	documented, err := formatdoc.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	const sampleNS = 1700000000000000000
	store := storeID{0: 0xaa, 15: 0xbb}
	id := cluster.BlobID{Content: 19, Seq: 20}
	data := []byte("abc")
	inFile := place{size: 3, modified: time.Unix(0, sampleNS)}
	inSegment := inFile
	inSegment.segment, inSegment.offset, inSegment.blocks = 2, 4096, []uint64{crc64nvme.Checksum(data)}
	r := record{store: store, id: id, segment: 2, offset: 4096, size: 3, blocks: inSegment.blocks}
	footer := make([]byte, footerBytes(r.size))
	r.putFooter(footer)
	m := mark{store: store, state: 5, files: map[string]filePrint{"000004.sst": {1000, 0x1122334455667788}}}
	state := binary.LittleEndian.AppendUint64(nil, m.state)
	h := tailHeader{epoch: 9, generation: 1, files: 6, half: 4096}
	half := tailRecord{version: 7, batch: []byte("batch")}.append(h.encode(), h)
	var stamp [stampBytes]byte
	for name, s := range map[string]struct{ key, value []byte }{
		"blob in a file":    {blobKey(id), inFile.encode()},
		"blob in a segment": {blobKey(id), inSegment.encode()},
		"store ID":          {storeKey, store[:]},
		"state":             {markKey, state},
		"commit":            {versionKey, putStamp(&stamp, 9, 7)},
		"FORMAT":            {nil, encodeFormat(store)},
		"MARK":              {nil, m.encode()},
		"footer":            {nil, footer},
		"tail":              {nil, half},
	} {
		if e := documented[name]; !bytes.Equal(e.Key, s.key) || !bytes.Equal(e.Value, s.value) {
			t.Errorf("%s, example %s:\n    key %x\n    %x\nthe program stores\n    key %x\n    %x", path, name, e.Key, e.Value, s.key, s.value)
		}
	}
}

package record

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"

	"github.com/minio/crc64nvme"
)

func testRecord(size int64) (Record, []byte) {
	data := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(size)}).Read(data)
	r := Record{Store: StoreID{1, 2, 3}, ID: cluster.BlobID{Content: 4, Seq: 5}, Segment: 6, Offset: 7 * fileio.PageBytes, Size: size}
	r.Blocks = BlockSums(nil, data)
	raw := make([]byte, Bytes(size))
	copy(raw, data)
	r.PutFooter(raw)
	return r, raw
}

func TestRecord(t *testing.T) {
	for _, size := range []int64{0, 1, fileio.PageBytes - 88, fileio.PageBytes - 87, fileio.PageBytes, cluster.BlockBytes, cluster.BlockBytes + 1, 1 << 20, cluster.MaxBlobBytes} {
		r, raw := testRecord(size)
		if len(raw)%fileio.PageBytes != 0 {
			t.Errorf("%d bytes: a record of %d", size, len(raw))
		}
		got, err := ParseFooter(raw)
		if err != nil || got.ID != r.ID || got.Size != size || got.Store != r.Store || got.Segment != r.Segment ||
			got.Offset != r.Offset || len(got.Blocks) != len(r.Blocks) {
			t.Fatalf("%d bytes: %+v, %v", size, got, err)
		}
		if got.WholeCRC() != crc64nvme.Checksum(raw[:size]) {
			t.Errorf("%d bytes: combined checksum", size)
		}
	}
}

// TestRecordDamage flips every bit of a footer.
func TestRecordDamage(t *testing.T) {
	r, raw := testRecord(3*cluster.BlockBytes + 10)
	need := int(FooterBytes(r.Size))
	for bit := range need * 8 {
		damaged := bytes.Clone(raw)
		damaged[len(raw)-need+bit/8] ^= 1 << (bit % 8)
		if _, err := ParseFooter(damaged); !errors.Is(err, cluster.ErrCorrupt) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	for cut := range need {
		if _, err := ParseFooter(raw[:len(raw)-cut-1]); err == nil {
			t.Fatalf("cut by %d was accepted", cut+1)
		}
		if cut > 0 {
			if _, err := ParseFooter(raw[len(raw)-cut:]); err == nil {
				t.Fatalf("the last %d bytes were accepted", cut)
			}
		}
	}
}

func FuzzFooter(f *testing.F) {
	for _, size := range []int64{0, 100, 3 * cluster.BlockBytes} {
		r, raw := testRecord(size)
		f.Add(raw[int64(len(raw))-FooterBytes(r.Size):])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseFooter(data)
		if err != nil {
			if !errors.Is(err, cluster.ErrCorrupt) {
				t.Errorf("error %v", err)
			}
			return
		}
		again := make([]byte, FooterBytes(r.Size))
		r.PutFooter(again)
		if !bytes.HasSuffix(data, again) {
			t.Error("another encoding of the same footer")
		}
	})
}

func TestPlace(t *testing.T) {
	for _, p := range []Place{
		{Size: 5 << 20, Modified: time.Unix(1, 2)},
		{Size: 0, Modified: time.Unix(3, 4), Segment: 1, Blocks: []uint64{}},
		{Size: 100_000, Modified: time.Unix(5, 6), Segment: 1 << 40, Offset: 17 * fileio.PageBytes, Blocks: []uint64{7, 8}},
	} {
		raw := p.Encode()
		got, err := ParsePlace(raw)
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%+v became %+v, %v", p, got, err)
		}
		for cut := range raw {
			if _, err := ParsePlace(raw[:cut]); !errors.Is(err, cluster.ErrCorrupt) {
				t.Errorf("%+v cut to %d bytes: %v", p, cut, err)
			}
		}
	}
}

func FuzzPlace(f *testing.F) {
	f.Add((&Place{Size: 5 << 20, Modified: time.Unix(1, 2)}).Encode())
	f.Add((&Place{Size: 70_000, Modified: time.Unix(1, 2), Segment: 3, Offset: 4096, Blocks: []uint64{1, 2}}).Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePlace(data)
		if err != nil {
			if !errors.Is(err, cluster.ErrCorrupt) {
				t.Errorf("error %v", err)
			}
			return
		}
		if !bytes.Equal(p.Encode(), data) {
			t.Error("another encoding of the same place")
		}
	})
}

func FuzzSegmentName(f *testing.F) {
	f.Add(SegmentName(1))
	f.Fuzz(func(t *testing.T, name string) {
		if number, ok := ParseSegmentName(name); ok && number == 0 {
			t.Error("segment 0")
		}
	})
}

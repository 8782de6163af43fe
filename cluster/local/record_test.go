package local

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

func testRecord(size int64) (record, []byte) {
	data := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(size)}).Read(data)
	r := record{store: storeID{1, 2, 3}, id: cluster.BlobID{Content: 4, Seq: 5}, segment: 6, offset: 7 * fileio.PageBytes, size: size}
	r.blocks = blockSums(nil, data)
	raw := make([]byte, recordBytes(size))
	copy(raw, data)
	r.putFooter(raw)
	return r, raw
}

func TestRecord(t *testing.T) {
	for _, size := range []int64{0, 1, fileio.PageBytes - 88, fileio.PageBytes - 87, fileio.PageBytes, cluster.BlockBytes, cluster.BlockBytes + 1, 1<<20, cluster.MaxBlobBytes} {
		r, raw := testRecord(size)
		if len(raw)%fileio.PageBytes != 0 {
			t.Errorf("%d bytes: a record of %d", size, len(raw))
		}
		got, err := parseFooter(raw)
		if err != nil || got.id != r.id || got.size != size || got.store != r.store || got.segment != r.segment ||
			got.offset != r.offset || len(got.blocks) != len(r.blocks) {
			t.Fatalf("%d bytes: %+v, %v", size, got, err)
		}
		if got.wholeCRC() != crc64nvme.Checksum(raw[:size]) {
			t.Errorf("%d bytes: combined checksum", size)
		}
	}
}

// TestRecordDamage flips every bit of a footer.
func TestRecordDamage(t *testing.T) {
	r, raw := testRecord(3*cluster.BlockBytes + 10)
	need := int(footerBytes(r.size))
	for bit := range need * 8 {
		damaged := bytes.Clone(raw)
		damaged[len(raw)-need+bit/8] ^= 1 << (bit % 8)
		if _, err := parseFooter(damaged); !errors.Is(err, cluster.ErrCorrupt) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	for cut := range need {
		if _, err := parseFooter(raw[:len(raw)-cut-1]); err == nil {
			t.Fatalf("cut by %d was accepted", cut+1)
		}
		if cut > 0 {
			if _, err := parseFooter(raw[len(raw)-cut:]); err == nil {
				t.Fatalf("the last %d bytes were accepted", cut)
			}
		}
	}
}

func FuzzFooter(f *testing.F) {
	for _, size := range []int64{0, 100, 3 * cluster.BlockBytes} {
		r, raw := testRecord(size)
		f.Add(raw[int64(len(raw))-footerBytes(r.size):])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseFooter(data)
		if err != nil {
			if !errors.Is(err, cluster.ErrCorrupt) {
				t.Errorf("error %v", err)
			}
			return
		}
		again := make([]byte, footerBytes(r.size))
		r.putFooter(again)
		if !bytes.HasSuffix(data, again) {
			t.Error("another encoding of the same footer")
		}
	})
}

func TestPlace(t *testing.T) {
	for _, p := range []place{
		{size: 5 << 20, modified: time.Unix(1, 2)},
		{size: 0, modified: time.Unix(3, 4), segment: 1, blocks: []uint64{}},
		{size: 100_000, modified: time.Unix(5, 6), segment: 1 << 40, offset: 17 * fileio.PageBytes, blocks: []uint64{7, 8}},
	} {
		raw := p.encode()
		got, err := parsePlace(raw)
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%+v became %+v, %v", p, got, err)
		}
		for cut := range raw {
			if _, err := parsePlace(raw[:cut]); !errors.Is(err, cluster.ErrCorrupt) {
				t.Errorf("%+v cut to %d bytes: %v", p, cut, err)
			}
		}
	}
}

func FuzzPlace(f *testing.F) {
	f.Add((&place{size: 5 << 20, modified: time.Unix(1, 2)}).encode())
	f.Add((&place{size: 70_000, modified: time.Unix(1, 2), segment: 3, offset: 4096, blocks: []uint64{1, 2}}).encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parsePlace(data)
		if err != nil {
			if !errors.Is(err, cluster.ErrCorrupt) {
				t.Errorf("error %v", err)
			}
			return
		}
		if !bytes.Equal(p.encode(), data) {
			t.Error("another encoding of the same place")
		}
	})
}

func FuzzSegmentName(f *testing.F) {
	f.Add(segmentName(1))
	f.Fuzz(func(t *testing.T, name string) {
		if number, ok := parseSegmentName(name); ok && number == 0 {
			t.Error("segment 0")
		}
	})
}

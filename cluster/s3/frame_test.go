package s3

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"ogw/cluster"

	"github.com/minio/crc64nvme"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestDataSize(t *testing.T) {
	for object, want := range map[int64]int64{
		0: 0, 3: 0, 8: 0, 9: 1, frameBytes: cluster.BlockBytes, frameBytes + 9: cluster.BlockBytes + 1,
		3 * frameBytes: 3 * cluster.BlockBytes, partBytes: 8 << 20,
	} {
		if got := dataSize(object); got != want {
			t.Errorf("an object of %d bytes holds %d, want %d", object, got, want)
		}
	}
}

// A frame is good for one blob, one place in it, and as its end or not.
func TestFrameBinding(t *testing.T) {
	id, data := cluster.BlobID{Content: 1, Seq: 2}, []byte("data")
	frame := func(id cluster.BlobID, block int64, last bool) []byte {
		sum := frameSum(crc64nvme.Checksum(data), id, block, last)
		out := append([]byte{}, data...)
		for shift := 56; shift >= 0; shift -= 8 {
			out = append(out, byte(sum>>shift))
		}
		return out
	}
	if got, err := openFrame(frame(id, 7, true), id, 7, true); err != nil || string(got) != "data" {
		t.Fatalf("%q, %v", got, err)
	}
	for name, other := range map[string][]byte{
		"content": frame(cluster.BlobID{Content: 2, Seq: 2}, 7, true),
		"seq":     frame(cluster.BlobID{Content: 1, Seq: 3}, 7, true),
		"block":   frame(id, 8, true),
		"end":     frame(id, 7, false),
		"short":   frame(id, 7, true)[:5],
	} {
		if _, err := openFrame(other, id, 7, true); !errors.Is(err, cluster.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A connection that stands still fails; one that moves slowly does not.
func TestStallConn(t *testing.T) {
	a, z := net.Pipe()
	defer a.Close()
	defer z.Close()
	c := stallConn{a, 50 * time.Millisecond}
	go func() {
		for range 3 {
			z.Write([]byte("x"))
		}
	}()
	for range 3 {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read of nothing: %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write to nobody: %v", err)
	}
}

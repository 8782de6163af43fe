package ring

import (
	"testing"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/fuseabi"
)

// What the kernel would never send is answered with an error.
func TestEntry(t *testing.T) {
	e, err := newEntry()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(e.memory)
	if size := unsafe.Sizeof(header{}); size != 288 {
		t.Errorf("the header has %d bytes", size)
	}
	for _, c := range []struct {
		length, payload uint32
		want            int // of the structure; -1: none
	}{
		{40, 0, 0}, {39, 0, -1}, {0, 0, -1}, {168, 0, 128}, {169, 0, -1}, {140, 100, 0}, {141, 100, 1}, {139, 100, -1},
		{40 + fuseabi.MaxRequestBytes, fuseabi.MaxRequestBytes, 0}, {41 + fuseabi.MaxRequestBytes, 1 + fuseabi.MaxRequestBytes, -1}, {^uint32(0), 0, -1}, {40, ^uint32(0), -1},
	} {
		*e.inHeader() = fuse.InHeader{Length: c.length, Opcode: fuseabi.OpWrite}
		e.header.payloadSize = c.payload
		in := e.request()
		switch {
		case (in == nil) != (c.want < 0):
			t.Errorf("length %d, payload %d: %d parts", c.length, c.payload, len(in))
		case in != nil && (len(in[0]) != fuseabi.InHeaderSize || len(in[1]) != c.want || len(in[2]) != int(c.payload)):
			t.Errorf("length %d, payload %d: parts of %d, %d and %d", c.length, c.payload, len(in[0]), len(in[1]), len(in[2]))
		}
	}
	e.fail(7, unix.EIO)
	out := (*fuse.OutHeader)(unsafe.Pointer(&e.header.inOut))
	if *out != (fuse.OutHeader{Length: 16, Status: -int32(unix.EIO), Unique: 7}) || e.header.payloadSize != 0 {
		t.Errorf("%+v", *out)
	}
}

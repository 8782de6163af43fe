package fuseabi

import (
	"testing"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// The structures begin as go-fuse's own do, after the header.
func TestLayout(t *testing.T) {
	const header = unsafe.Sizeof(fuse.InHeader{})
	if InHeaderSize != 40 || OutHeaderSize != 16 {
		t.Errorf("headers of %d and %d bytes", InHeaderSize, OutHeaderSize)
	}
	var read fuse.ReadIn
	if got, want := unsafe.Offsetof(ReadIn{}.Size), unsafe.Offsetof(read.Size)-header; got != want {
		t.Errorf("the size of a READ is at %d, want %d", got, want)
	}
	var lk fuse.LkIn
	if got, want := unsafe.Offsetof(LockIn{}.Type), unsafe.Offsetof(lk.Lk)+unsafe.Offsetof(lk.Lk.Typ)-header; got != want {
		t.Errorf("the type of a lock is at %d, want %d", got, want)
	}
}

// waits answers StatFs when it was interrupted.
type waits struct {
	fuse.RawFileSystem
	begun chan struct{}
}

func (w *waits) StatFs(cancel <-chan struct{}, _ *fuse.InHeader, _ *fuse.StatfsOut) fuse.Status {
	close(w.begun)
	<-cancel
	return fuse.EINTR
}

func TestInterrupt(t *testing.T) {
	const opStatFs, unique = 17, 7
	w := &waits{fuse.NewDefaultRawFileSystem(), make(chan struct{})}
	p := NewServer(w, &fuse.MountOptions{}, 0)
	if Interrupt(p, unique) {
		t.Error("a request was interrupted that is not there")
	}
	in := fuse.InHeader{Length: uint32(InHeaderSize), Opcode: opStatFs, Unique: unique}
	answer := make(chan fuse.OutHeader)
	go func() {
		out := make([]byte, 4096)
		p.HandleRequest([][]byte{unsafe.Slice((*byte)(unsafe.Pointer(&in)), InHeaderSize)}, [][]byte{out})
		answer <- *(*fuse.OutHeader)(unsafe.Pointer(&out[0]))
	}()
	<-w.begun
	if !Interrupt(p, unique) {
		t.Error("a request that waits was not found")
	}
	if h := <-answer; h.Unique != unique || fuse.Status(-h.Status) != fuse.EINTR {
		t.Errorf("the answer begins with %+v", h)
	}
}

package fusemount

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/fusemount/internal/fuseabi"
	"ogw/fusemount/ledger"
)

// agree has the protocol server know what was agreed upon with the kernel.
func (p *loop) agree(book *ledger.Ledger) error {
	in, want := book.Init()
	if len(in) < fuseabi.InHeaderSize || len(want) < fuseabi.OutHeaderSize+int(unsafe.Sizeof(fuse.InitOut{})) {
		return fmt.Errorf("%w: there is no INIT in it", ledger.ErrFormat)
	}
	// What the kernel offers and the answer did not take stays untaken.
	init := initOf(in)
	answer := new(fuse.InitOut)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(answer)), unsafe.Sizeof(*answer)), want[fuseabi.OutHeaderSize:])
	const extended = 1 << 30 // FUSE_INIT_EXT: Flags2 counts
	init.Flags &= answer.Flags | extended
	init.Flags2 &= answer.Flags2
	masked := unsafe.Slice((*byte)(unsafe.Pointer(init)), unsafe.Sizeof(*init))[:min(len(in), int(unsafe.Sizeof(*init)))]
	out := make([]byte, fuseabi.OutHeaderSize+4096)
	n, st := p.proto.HandleRequest([][]byte{masked}, [][]byte{out})
	if !st.Ok() {
		return fmt.Errorf("%w: INIT: %v", ErrOtherMount, st)
	}
	p.f.negotiated(want)
	p.resends = offersResend(in)
	if !bytes.Equal(out[:n], want) {
		return fmt.Errorf("%w: this version or these options would answer INIT with %x, it was %x", ErrOtherMount, out[fuseabi.OutHeaderSize:n], want[fuseabi.OutHeaderSize:])
	}
	return nil
}

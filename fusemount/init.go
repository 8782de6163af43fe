package fusemount

import (
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// initOf reads INIT, which may be shorter than it is today.
func initOf(in []byte) *fuse.InitIn {
	init := new(fuse.InitIn)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(init)), unsafe.Sizeof(*init)), in)
	return init
}

// offersResend reports whether the kernel that sent INIT can send again what was
// not answered (Linux 6.9).
func offersResend(in []byte) bool { return initOf(in).Flags64()&fuse.CAP_HAS_RESEND != 0 }

package md5lanes

import "golang.org/x/sys/cpu"

// Available reports whether the processor has what Blocks needs.
func Available() bool { return cpu.X86.HasAVX512F }

//go:generate go run ./gen

//go:noescape
func blocks16(state *[4][16]uint32, data *[16]*byte, blocks int)

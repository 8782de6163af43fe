//go:build !amd64

package md5lanes

// Available reports whether the processor has what Blocks needs.
func Available() bool { return false }

func blocks16(*[4][16]uint32, *[16]*byte, int) {}

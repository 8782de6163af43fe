// Package terminal distinguishes people from programs that read.
package terminal

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Is reports whether w is a terminal: a person looks at it, and nothing keeps what
// is written.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

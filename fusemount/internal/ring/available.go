package ring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// ErrUnavailable means that requests cannot come through io_uring.
var ErrUnavailable = errors.New("no FUSE over io_uring")

// parameter is the kernel's: whether it offers new mounts io_uring.
const parameter = "/sys/module/fuse/parameters/enable_uring"

// Offered reports whether the kernel offers new mounts io_uring.
func Offered() bool {
	on, _ := readParameter() // what cannot be read offers nothing
	return on
}

// Enable has the kernel offer io_uring to all mounts of the machine from now on,
// or returns ErrUnavailable with the reason.
func Enable() error {
	on, err := readParameter()
	switch {
	case on:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: the kernel has none; Linux 6.14 has, with CONFIG_FUSE_IO_URING", ErrUnavailable)
	}
	if err := os.WriteFile(parameter, []byte("Y"), 0); err != nil {
		return fmt.Errorf("%w: it is off, and only root turns it on (echo Y > %s): %w", ErrUnavailable, parameter, err)
	}
	return nil
}

func readParameter() (on bool, err error) {
	b, err := os.ReadFile(parameter)
	return strings.HasPrefix(string(b), "Y"), err
}

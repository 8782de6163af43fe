package fusemount

import (
	"ogw/fusemount/internal/ring"
)

// Transport is how requests come from the kernel.
type Transport int

// Transports.
const (
	// TransportAuto is io_uring where the kernel offers it, else /dev/fuse.
	TransportAuto Transport = iota
	// TransportRing is io_uring. It turns it on for the machine if need be
	// (module parameter enable_uring of fuse).
	TransportRing
	// TransportDevice is /dev/fuse.
	TransportDevice
)

// ErrNoRing means that requests cannot come through io_uring.
var ErrNoRing = ring.ErrUnavailable

package fusemount

import (
	"sync"

	"ogw/vfs"
)

// dirHandle is one open directory.
type dirHandle struct {
	*listing
	round uint64     // of the listing, when it was opened
	reads sync.Mutex // one READDIR at a time
	from  *vfs.DirStream
}

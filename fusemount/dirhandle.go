package fusemount

import (
	"sync"

	"ogw/vfs"
)

// dirHandle is one open directory.
type dirHandle struct {
	*listing
	reads sync.Mutex // one READDIR at a time
	from  *vfs.DirStream
}

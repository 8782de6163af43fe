package fusemount

import (
	"sync"

	"ogw/vfs"
)

// dirHandle is one open directory, of which the kernel keeps nothing.
type dirHandle struct {
	numbers
	ino   vfs.Ino
	reads sync.Mutex     // one READDIR at a time
	from  *vfs.DirStream // nil: opened at the server before, which may have let the kernel keep names
}
